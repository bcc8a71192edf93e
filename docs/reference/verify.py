#!/usr/bin/env python3
"""Checks one session of a Lodestar log: verify.py SESSION_DIR [LOG_KEY [OPERATOR_KEY ...]]

Prints `OK` and exits 0, or prints the first problem and exits 1. Alone it checks chain, payloads,
tree and ledger. With verify_more.py beside it, it also checks blobs, redactions and, where public
keys are given (in hexadecimal, or as `name+hash+key`), signatures. The rules are in log-format.md.
"""
import base64, hashlib, json, pathlib, re, sys

LINE = re.compile(rb'\{"head":(\{[^{}]*\}),(?:"payload":(\{.*\}),"salt":"([0-9a-f]{32})"|"tombstone":\{"redaction":(0|[1-9]\d*)\})\}')
NOTE = re.compile("(.+)\n(0|[1-9]\\d*)\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)\n\n(?:— [^ \n]+ [A-Za-z0-9+/]+=*\n)+")

def check(holds, problem):
    holds or sys.exit(print(problem) or 1)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def root(leaves):  # RFC 6962
    half = 1 << max(len(leaves) - 1, 1).bit_length() - 1
    return sha(b"\1", root(leaves[:half]), root(leaves[half:])) if leaves[1:] else (leaves + [sha()])[0]

def chain(file, prev, may_be_torn=False):
    *lines, tail = file.read_bytes().split(b"\n")
    check(may_be_torn or not tail, f"{file.name} #{len(lines)}: the file ends inside a line")
    for seq, line in enumerate(lines):
        at, match = f"{file.name} #{seq}:", LINE.fullmatch(line)
        check(match, f"{at} not a log line")
        head, payload, salt, redaction = match.groups()
        fields = json.loads(head)
        check(fields["seq"] == seq, f"{at} out of order, this is event {fields['seq']}")
        check(fields["prev"] == prev.hex(), f"{at} prev is not the hash of what comes before")
        check(redaction or sha(bytes.fromhex(salt.decode()), payload).hex() == fields["payload_hash"], f"{at} the payload was changed")
        prev = sha(b"\0", head)
        yield fields["type"], json.loads(payload or "{}"), prev, redaction and int(redaction)

def commits_to(who, size, expected, events):
    check(size <= len(events), f"{who} commits to {size} events, {len(events)} are here")
    check(root([event[2] for event in events[:size]]) == expected, f"{who} commits to other events than these {size}")

def checkpoint(who, note, origin, events):
    match = NOTE.fullmatch(note)
    check(match and match[1] == origin, f"{who} is no checkpoint of {origin}")
    commits_to(who, int(match[2]), base64.b64decode(match[3]), events)
    return int(match[2])

def verify(folder):
    origin, ledger_file = f"lodestar.log/{folder.parent.name}/", folder.parent / "ledger.ndjson"
    notes = [(folder.parent / "ledger.checkpoint").read_bytes().decode(), (folder / "checkpoint").read_bytes().decode()]
    ledger = list(chain(ledger_file, sha(origin.encode() + b"_ledger")))
    size = checkpoint("ledger.checkpoint", notes[0], origin + "_ledger", ledger)
    if size == len(ledger) - 1 and (folder.parent / "ledger.next").exists():  # an append was interrupted
        notes[0] = (folder.parent / "ledger.next").read_bytes().decode()
        size = checkpoint("ledger.next", notes[0], origin + "_ledger", ledger)
    check(size == len(ledger), f"ledger.ndjson #{size}: behind the ledger's checkpoint")
    records = [record for record in ledger if record[1].get("session") == folder.name]
    check(records and records[0][0] == "ledger.session_opened@1", f"ledger.ndjson: no session {folder.name}")
    closed = records[-1][0] == "ledger.session_closed@1"
    events = list(chain(folder / "events.ndjson", records[0][2], may_be_torn=not closed))
    sizes = [checkpoint("checkpoint", notes[1], origin + folder.name, events)]
    for kind, record, _, _ in records[1:]:
        if kind == "ledger.session_closed@1":
            sizes.append(checkpoint("the ledger", record["checkpoint"], origin + folder.name, events))
        else:
            commits_to("the ledger", record["size"], bytes.fromhex(record["root"]), events)
    check(not closed or sizes[0] == sizes[-1] == len(events), f"events.ndjson: closed with {sizes[-1]} events, {len(events)} are here")
    return events, notes, f"{len(events)} events, {sizes[0]} under the checkpoint, {sum(e[3] is not None for e in events)} redacted"

if __name__ == "__main__":
    sys.excepthook = lambda kind, error, _: print(f"{kind.__name__}: {error}")
    sys.dont_write_bytecode = True
    events, notes, summary = verify(pathlib.Path(sys.argv[1]).resolve())
    try:
        import verify_more
        summary += verify_more.verify(pathlib.Path(sys.argv[1]).resolve(), events, notes, sys.argv[2:])
    except ImportError:
        summary += "; blobs, redactions and signatures not checked"
    print("OK:", summary)
