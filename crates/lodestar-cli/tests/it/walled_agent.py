"""An agent that tries to help itself, and tells what came of it; then it asks through the proxy."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request

lodestar, world, tcp, udp, tester = sys.argv[1:6]
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, act):
    try:
        came = act()
        print(f"{name}\t{'did' if came is None else came}", flush=True)
    except Exception as problem:
        print(f"{name}\trefused: {type(problem).__name__}: {problem}".replace("\n", " "), flush=True)


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def by_link():
    link = os.path.join(tempfile.gettempdir(), "link")
    os.symlink(f"{world}/config/keys/log.key", link)
    open(link).read()


def unix():
    s = socket.socket(socket.AF_UNIX)
    s.connect(f"{world}/config/some.sock")


def send():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"out", ("127.0.0.1", int(udp)))
    # In a network of its own this goes nowhere; whoever listens outside says whether it arrived.
    raise OSError("sent, and nobody is there")


def through_variable():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{tcp}"}))
    opener.open("http://example.invalid/", timeout=3)


def approve():
    done = subprocess.run([lodestar, "approve", "keygen", "mallory", "--no-passphrase"], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(done.stderr.strip())


def program():
    assert subprocess.run(["/bin/echo", "hi"], capture_output=True, text=True).stdout == "hi\n"


def temporary():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("x")


def mcp():
    proxy = subprocess.Popen(
        [lodestar, "guard", "mcp-proxy", "--config", "whatever.toml"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(number, method, params):
        proxy.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        proxy.stdin.flush()
        while True:
            answer = json.loads(proxy.stdout.readline())
            if answer.get("id") == number:
                return answer["result"]

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    ask(1, "initialize", about)
    proxy.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    said = ask(2, "tools/call", {"name": "one__echo", "arguments": {"text": "hello"}})
    proxy.stdin.close()
    proxy.wait()
    if said["content"][0]["text"] != "hello":
        return json.dumps(said)


attempt("read_key", lambda: open(f"{world}/config/keys/log.key").read() and None)
attempt("read_key_by_link", by_link)
attempt("read_lodestar", lambda: os.listdir(".lodestar") and None)
attempt("write_lodestar", lambda: open(".lodestar/x", "w").close())
attempt("read_outside", lambda: open(f"{world}/outside.txt").read() and None)
attempt("write_outside", lambda: open(f"{world}/planted.txt", "w").close())
attempt("write_project", lambda: open("planted.txt", "w").close())
attempt("write_client_configuration", lambda: open(".mcp.json", "w").close())
attempt("move_project", lambda: os.rename("notes.md", "moved.md"))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", int(tcp)), timeout=3).close())
attempt("udp", send)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("unix", unix)
attempt("by_proxy_variable", through_variable)
attempt("ptrace", lambda: call(101, 16, int(tester), 0, 0))
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("mount", lambda: call(165, b"tmpfs", b"/tmp", b"tmpfs", 0, None))
attempt("approve", approve)
attempt("read_project", lambda: open("notes.md").read() and None)
attempt("write_temporary", temporary)
attempt("run_a_program", program)
attempt("mcp", mcp)
