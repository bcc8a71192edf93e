#!/usr/bin/env python3
"""Checks one session of a Lodestar log: verify.py SESSION_DIR

Prints `OK: N events` and exits 0, or prints the first problem and exits 1. It checks the form of lines,
numbering, chain, payloads, trees, and what the checkpoint and the ledger say of the session.

It does NOT check signatures, blobs, recovered parts or redaction statements: whoever computes every
hash anew, also those in checkpoints and ledger, gets past it. verify_full.py checks these too, and
`lodestar log verify` all there is to check. The rules are in log-format.md.
"""
import base64, hashlib, json, pathlib, re, sys

LINE = re.compile(rb'\{"head":(\{"actor":"[\w.-]+","parents":\[[\d,]*\],"payload_hash":"([0-9a-f]{64})","prev":"([0-9a-f]{64})",'
                  rb'"project":"([\w.-]+)","seq":(\d+),"session":"([\w.-]+)","time":"[\dTZ:.-]{27}","type":"([\w.@]+)"\}),'
                  rb'(?:"payload":(\{.*\}),"salt":"([0-9a-f]{32})"|"tombstone":\{"redaction":\d+\})\}')

def check(holds, problem): return holds or sys.exit(problem)
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()

def root(leaves):  # RFC 6962
    half = 1 << max(len(leaves) - 1, 1).bit_length() - 1
    return sha(b"\1", root(leaves[:half]), root(leaves[half:])) if leaves[1:] else (leaves + [sha()])[0]

def chain(file, session, prev, may_be_torn=False):  # type, payload and leaf hash of each line
    *lines, rest = file.read_bytes().split(b"\n")
    for seq, line in enumerate(lines):
        head, payload_hash, *place, kind, payload, salt = check(LINE.fullmatch(line), f"{file.name} #{seq}: not a line of a log").groups()
        check(place == [prev.hex().encode(), PROJECT, b"%d" % seq, session.encode()], f"{file.name} #{seq}: does not continue the chain")
        check(not salt or sha(bytes.fromhex(salt.decode()), payload).hex().encode() == payload_hash, f"{file.name} #{seq}: payload changed")
        yield kind, payload, (prev := sha(b"\0", head))
    check(may_be_torn or not rest, f"{file.name} #{len(lines)}: the file ends inside a line")

def covered(events, origin, note):  # how many events a checkpoint commits to, if it commits to these
    size = int(note.split("\n")[1])
    body = f"{origin}\n{size}\n{base64.b64encode(root([leaf for _, _, leaf in events[:size]])).decode()}\n\n— "
    check(0 <= size <= len(events) and note.startswith(body), f"{origin}: events #0 to #{len(events) - 1} are not what a checkpoint or the ledger has")
    return size

sys.excepthook = lambda kind, error, _: print(f"not a log that can be read: {kind.__name__}: {error}")  # and exit 1
folder = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else sys.exit(print(__doc__.splitlines()[0]) or 2)
PROJECT, ORIGIN = folder.parent.name.encode(), f"lodestar.log/{folder.parent.name}/"
ledger = list(chain(folder.parent / "ledger.ndjson", "_ledger", sha(ORIGIN.encode(), b"_ledger")))
size = covered(ledger, ORIGIN + "_ledger", (folder.parent / "ledger.checkpoint").read_bytes().decode())
check(size == len(ledger), f"ledger.ndjson #{size}: behind ledger.checkpoint, an interrupted append or a forged record")
records = [(kind, json.loads(payload), leaf) for kind, payload, leaf in ledger if kind.startswith(b"ledger.session_")]
kinds, said, leaves = zip(*check([record for record in records if record[1]["session"] == folder.name], f"ledger.ndjson: no {folder.name}"))
check(kinds.index(b"ledger.session_opened@1") == 0, f"ledger.ndjson: {folder.name} was not opened first")
closed = kinds[-1] == b"ledger.session_closed@1"
events = list(chain(folder / "events.ndjson", folder.name, leaves[0], may_be_torn=not closed))
notes = [record.get("checkpoint") or f"{ORIGIN}{folder.name}\n{record['size']}\n{base64.b64encode(bytes.fromhex(record['root'])).decode()}\n\n— "
         for record in said[1:]]  # closings have a checkpoint, reopenings size and root
sizes = [covered(events, ORIGIN + folder.name, note) for note in notes + [(folder / "checkpoint").read_bytes().decode()]]
check(not closed or sizes[-2:] == [len(events)] * 2, f"events.ndjson #{min(sizes[-2:])}: behind the closing checkpoint")
print(f"OK: {len(events)} events")
