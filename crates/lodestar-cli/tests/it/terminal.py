"""Plays the person at a terminal, or takes the terminal away.

The request is one JSON argument. With "steps", a list of [wait for, type], the command runs on a
pseudo-terminal of 80 columns; with null it runs in a session of its own that has none.
The report is JSON on stdout.
"""

import fcntl, json, os, pty, select, struct, subprocess, sys, termios, time

request = json.loads(sys.argv[1])
argv, env, cwd, steps = (request[k] for k in ("argv", "env", "cwd", "steps"))

if steps is None:
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, start_new_session=True, timeout=60)
    print(json.dumps({"code": done.returncode, "stdout": done.stdout.decode(),
                      "stderr": done.stderr.decode()}))
    sys.exit()

child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    os.chdir(cwd)
    os.execve(argv[0], argv, env)

screen, deadline = b"", time.monotonic() + 60
seen = 0
while time.monotonic() < deadline:
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        screen += data
    if steps and steps[0][0].encode() in screen[seen:]:
        wait, typed = steps.pop(0)
        seen = screen.index(wait.encode(), seen) + len(wait.encode())
        os.write(terminal, typed.encode())
else:
    os.kill(child, 9)
    sys.exit("no end in time; on the screen: %r" % screen)
_, status = os.waitpid(child, 0)
if steps:
    sys.exit("never asked for %r; on the screen: %r" % (steps[0][0], screen))
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "screen": screen.decode()}))
