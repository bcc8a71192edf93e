"""Tries the ways out of a cell that an interpreter has, and those that it was granted; see escape.c."""

import ctypes
import errno
import multiprocessing
import os
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request

E = os.environ
PROJECT, OUTSIDE, TMP, KEY = E["E_PROJECT"], E["E_OUTSIDE"], E["TMPDIR"], E["E_KEY"]
PARENT = int(E["E_PARENT"])
libc = ctypes.CDLL(None, use_errno=True)


def say(name, attempt):
    try:
        did = attempt()
        number = 0
        if did is False:
            raise OSError(ctypes.get_errno() or errno.EIO, "")
        print(name, "did", 0, flush=True)
    except subprocess.CalledProcessError as problem:
        print(name, "refused", problem.returncode, flush=True)
    except OSError as problem:
        number = problem.errno
        reason = getattr(problem, "reason", None)
        if number is None and isinstance(reason, OSError):
            number = reason.errno
        print(name, "refused", number or 0, flush=True)


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path, mode="xb"):
    with open(path, mode) as file:
        file.write(b"escaped\n")


def call(number, *arguments):
    def attempt():
        ctypes.set_errno(0)
        return libc.syscall(number, *arguments) >= 0

    return attempt


def stream(family, address):
    def attempt():
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(3)
            one.connect(address)

    return attempt


def datagram(family, address):
    def attempt():
        with socket.socket(family, socket.SOCK_DGRAM) as one:
            one.sendto(b"escaped", address)

    return attempt


def made(family, kind, protocol=0):
    return lambda: socket.socket(family, kind, protocol).close()


def linked(target, how, use):
    def attempt():
        link = os.path.join(TMP, "py-link")
        how(target, link)
        try:
            use(link)
        finally:
            os.unlink(link)

    return attempt


def child(*words, **more):
    return lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def in_child(part):
    """Whether a part succeeds in a process of its own."""

    def attempt():
        pid = os.fork()
        if pid == 0:
            try:
                part()
                os._exit(0)
            except OSError as problem:
                os._exit(problem.errno)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            raise OSError(code, "")

    return attempt


def through_proxy():
    with urllib.request.urlopen("http://example.invalid/escaped", timeout=3) as answer:
        answer.read()


def threads():
    seen = []
    one = threading.Thread(target=lambda: seen.append(1))
    one.start()
    one.join()
    return bool(seen)


def workers():
    with multiprocessing.Pool(2) as pool:
        return pool.map(abs, [-1, -2]) == [1, 2]


def loopback():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        with socket.create_connection(listener.getsockname(), timeout=3):
            pass


def setuid_program():
    told = subprocess.run([E["E_SUID"], "-u"], capture_output=True, text=True, check=True)
    if int(told.stdout) == os.geteuid():
        raise OSError(errno.EPERM, "")


def files():
    say("read_project", lambda: read(f"{PROJECT}/src/a.txt"))
    say("list_project", lambda: os.listdir(PROJECT))
    say("read_system", lambda: read("/etc/passwd"))
    say("exec_system", child("/usr/bin/true"))
    say("exec_own", child(f"{PROJECT}/own.sh"))
    say("write_tmp", lambda: tempfile.NamedTemporaryFile().close())
    say("write_old", lambda: write(f"{PROJECT}/README", "ab"))
    say("write_top", lambda: write(f"{PROJECT}/py-new"))
    say("write_sub", lambda: write(f"{PROJECT}/src/py-new"))
    say("mkdir_sub", lambda: os.mkdir(f"{PROJECT}/src/py-folder"))
    say("rename_sub", lambda: os.rename(f"{PROJECT}/src/py-folder", f"{PROJECT}/src/py-moved"))
    say("read_key", lambda: read(KEY))
    say("list_keys", lambda: os.listdir(E["E_KEYS"]))
    say("list_lodestar", lambda: os.listdir(f"{PROJECT}/.lodestar"))
    say("stat_read_lodestar", lambda: read(f"{PROJECT}/.lodestar/state.db"))
    say("append_lodestar", lambda: write(f"{PROJECT}/.lodestar/state.db", "ab"))
    say("write_lodestar", lambda: write(f"{PROJECT}/.lodestar/py-new"))
    say("read_outside", lambda: read(f"{OUTSIDE}/secret"))
    say("write_outside", lambda: write(f"{OUTSIDE}/py-new"))
    say("append_outside", lambda: write(f"{OUTSIDE}/secret", "ab"))
    say("truncate_outside", lambda: os.truncate(f"{OUTSIDE}/secret", 3))
    say("remove_outside", lambda: os.unlink(f"{OUTSIDE}/py-prey"))
    say("chmod_outside", lambda: os.chmod(f"{OUTSIDE}/secret", 0o666))
    say("chmod_key", lambda: os.chmod(KEY, 0o644))
    say("utime_outside", lambda: os.utime(f"{OUTSIDE}/secret"))
    say("xattr_outside", lambda: os.setxattr(f"{OUTSIDE}/secret", "user.escaped", b"1"))
    say("read_client", lambda: read(f"{PROJECT}/.mcp.json"))
    say("write_client", lambda: write(f"{PROJECT}/.mcp.json", "wb"))
    say("replace_client", lambda: os.replace(f"{PROJECT}/src/b.txt", f"{PROJECT}/.mcp.json"))
    say("read_credentials", lambda: read(f"{E['HOME']}/.config/git/credentials"))
    say("read_home_secret", lambda: read(f"{E['HOME']}/.ssh/id"))
    say("write_home", lambda: write(f"{E['HOME']}/py-new"))
    say("read_key_by_symlink", linked(KEY, os.symlink, read))
    say("write_outside_by_symlink", linked(f"{OUTSIDE}/secret", os.symlink, lambda to: write(to, "ab")))
    say("read_key_by_hard_link", linked(KEY, os.link, read))
    hook = f"{PROJECT}/.git/hooks/pre-commit"
    say("write_hook_by_hard_link", linked(hook, os.link, lambda to: write(to, "ab")))
    say("write_hook", lambda: write(hook, "ab"))
    say("make_hook", lambda: write(f"{PROJECT}/.git/hooks/post-commit"))
    say("write_git_config", lambda: write(f"{PROJECT}/.git/config", "ab"))
    say("move_git", lambda: os.rename(f"{PROJECT}/.git", f"{PROJECT}/src/py-git"))
    say("move_hooks", lambda: os.rename(f"{PROJECT}/.git/hooks", f"{PROJECT}/src/py-hooks"))
    say("move_claude", lambda: os.rename(f"{PROJECT}/.claude", f"{PROJECT}/src/py-claude"))
    say("write_settings", lambda: write(f"{PROJECT}/.claude/settings.json", "ab"))
    say("self_root_key", lambda: read(f"/proc/self/root{KEY}"))
    say("self_cwd_lodestar", lambda: read("/proc/self/cwd/.lodestar/state.db"))


def parent():
    def memory():
        with open(f"/proc/{PARENT}/mem", "rb", buffering=0) as file:
            file.seek(int(E["E_ADDRESS"]))
            file.read(8)

    say("parent_root", lambda: read(f"/proc/{PARENT}/root/etc/passwd"))
    say("parent_cwd", lambda: os.listdir(f"/proc/{PARENT}/cwd"))
    say("parent_environ", lambda: read(f"/proc/{PARENT}/environ"))
    say("parent_mem", memory)
    say("parent_fd", lambda: os.readlink(f"/proc/{PARENT}/fd/{E['E_FD']}"))
    say("parent_fd_numbers", lambda: os.listdir(f"/proc/{PARENT}/fd"))
    say("parent_maps", lambda: read(f"/proc/{PARENT}/maps"))
    say("parent_open_fd", lambda: read(f"/proc/{PARENT}/fd/{E['E_FD']}"))
    say("inherited_descriptor", lambda: os.fstat(int(E["E_FD"])))
    say("ptrace", call(101, 0x4206, PARENT, 0, 0))
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_size_t * 2)(int(E["E_ADDRESS"]), 8)
    say("vm_read", call(310, PARENT, here, 1, there, 1, 0))
    say("signal", lambda: os.kill(PARENT, signal.SIGURG))
    say("signal_nothing", lambda: os.kill(PARENT, 0))
    say("pidfd_signal", lambda: signal.pidfd_send_signal(os.pidfd_open(PARENT), signal.SIGURG))
    say("pidfd_getfd", lambda: call(438, os.pidfd_open(PARENT), int(E["E_FD"]), 0)())


def network():
    say("tcp4", stream(socket.AF_INET, ("127.0.0.1", int(E["E_TCP4"]))))
    say("tcp6", stream(socket.AF_INET6, ("::1", int(E["E_TCP6"]))))
    say("tcp_port", stream(socket.AF_INET, ("127.0.0.1", int(E["E_TCP_PORT"]))))
    say("udp4", datagram(socket.AF_INET, ("127.0.0.1", int(E["E_UDP4"]))))
    say("udp6", datagram(socket.AF_INET6, ("::1", int(E["E_UDP6"]))))
    say("raw", made(socket.AF_INET, socket.SOCK_RAW, 1))
    say("packet", made(socket.AF_PACKET, socket.SOCK_DGRAM))
    say("vsock", made(socket.AF_VSOCK, socket.SOCK_STREAM))
    say("netlink_diag", made(socket.AF_NETLINK, socket.SOCK_RAW, 4))
    say("unix_stream", stream(socket.AF_UNIX, E["E_STREAM"]))
    say("unix_abstract", stream(socket.AF_UNIX, "\0" + E["E_ABSTRACT"][1:]))

    def by_pair():
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with one, other:
            one.sendto(b"escaped", E["E_DATAGRAM"])

    say("unix_pair_datagram", by_pair)
    say("proxy_variable", through_proxy)


def calls():
    block = ctypes.create_string_buffer(256)
    say("io_uring", call(425, 1, block))
    say("keyctl", call(250, 0, -3, 0))
    say("bpf", in_child(lambda: call(321, 0, (ctypes.c_uint * 16)(2, 4, 4, 1), 64)() or oops()))
    say("unshare_user", in_child(lambda: call(272, 0x10000000 | 0x20000)() or oops()))
    say("unshare_mount", in_child(lambda: call(272, 0x20000)() or oops()))
    say("chroot", in_child(lambda: os.chroot(OUTSIDE)))
    say("setsid", in_child(os.setsid))
    say("setuid_program", setuid_program)


def oops():
    raise OSError(ctypes.get_errno(), "")


def granted():
    say("pipe", os.pipe)
    say("socketpair", lambda: socket.socketpair()[0].close())
    say("thread", threads)
    say("workers", workers)
    say("loopback", loopback)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    files()
    parent()
    network()
    calls()
    granted()
    say("plant_gemini", lambda: (os.mkdir(f"{PROJECT}/.gemini"), write(f"{PROJECT}/.gemini/settings.json")))
    say("plant_commondir", lambda: write(f"{PROJECT}/.git/commondir"))
