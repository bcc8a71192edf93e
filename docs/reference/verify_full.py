#!/usr/bin/env python3
"""Checks one session of a Lodestar log with its signatures, in plain Python:

verify_full.py SESSION_DIR LOG_KEY [OPERATOR_KEY ...]
verify_full.py SESSION_DIR --no-signatures

Prints `OK` and exits 0, or prints the first problem and exits 1; 2 if it was not told enough to check
everything. Public keys are given in hexadecimal or as `name+hash+key`. Beyond verify.py it checks the
hashes of blobs and recovered parts, redactions, an interrupted append to the ledger, and signatures. It
needs verify_ed25519.py beside it. It does not decompress blobs and does not look at other sessions, at
witnesses, or at the times of statements; `lodestar log verify` does. The rules are in log-format.md.
"""
import base64, hashlib, json, pathlib, re, sys

sys.dont_write_bytecode = True
from verify_ed25519 import verify as signed_by

LINE = re.compile(rb'\{"head":(\{"actor":"[\w.-]+","parents":\[[\d,]*\],"payload_hash":"[0-9a-f]{64}","prev":"[0-9a-f]{64}",'
                  rb'"project":"[\w.-]+","seq":(?:0|[1-9]\d{0,15}),"session":"[\w.-]+","time":"[\dTZ:.-]{27}","type":"[\w.@]+"\}),'
                  rb'(?:"payload":(\{.*\}),"salt":"([0-9a-f]{32})"|"tombstone":\{"redaction":(0|[1-9]\d{0,15})\})\}')
NOTE = re.compile("(.+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)\n\n(?:— [^ \n]+ [A-Za-z0-9+/]+=*\n)+")
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check(holds, problem, exit_code=1):
    holds or sys.exit(print(problem) or exit_code)


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def root(leaves):  # RFC 6962
    half = 1 << max(len(leaves) - 1, 1).bit_length() - 1
    return sha(b"\1", root(leaves[:half]), root(leaves[half:])) if leaves[1:] else (leaves + [sha()])[0]


def chain(file, session, prev, may_be_torn=False):
    """Type, payload, leaf hash and tombstone's redaction of each line."""
    project = file.parent.name if session == "_ledger" else file.parent.parent.name
    *lines, rest = file.read_bytes().split(b"\n")
    for seq, line in enumerate(lines):
        at, match = f"{file.name} #{seq}:", LINE.fullmatch(line)
        check(match, f"{at} not a log line")
        head, payload, salt, redaction = match.groups()
        fields = json.loads(head)
        check(fields["seq"] == seq, f"{at} out of order, this is event {fields['seq']}")
        check((fields["project"], fields["session"]) == (project, session), f"{at} of another log")
        check(fields["prev"] == prev.hex(), f"{at} prev is not the hash of what comes before")
        check(redaction or sha(bytes.fromhex(salt.decode()), payload).hex() == fields["payload_hash"], f"{at} the payload was changed")
        prev = sha(b"\0", head)
        yield fields["type"], json.loads(payload or "{}"), prev, redaction and int(redaction)
    check(may_be_torn or not rest, f"{file.name} #{len(lines)}: the file ends inside a line")


def commits_to(who, size, expected, events):
    check(0 <= size <= len(events), f"{who} commits to {size} events, {len(events)} are here")
    check(root([event[2] for event in events[:size]]) == expected, f"{who} commits to other events than these {size}")


def checkpoint(who, note, origin, events):
    match = NOTE.fullmatch(note)
    check(match and match[1] == origin, f"{who} is no checkpoint of {origin}")
    commits_to(who, int(match[2]), base64.b64decode(match[3]), events)
    return int(match[2])


def verify_hashes(folder):
    """Chain, payloads, trees, ledger: the session's events, and the notes whose signatures count."""
    origin, parent = f"lodestar.log/{folder.parent.name}/", folder.parent
    notes = [(parent / "ledger.checkpoint").read_bytes().decode(), (folder / "checkpoint").read_bytes().decode()]
    ledger = list(chain(parent / "ledger.ndjson", "_ledger", sha(origin.encode() + b"_ledger")))
    size = checkpoint("ledger.checkpoint", notes[0], origin + "_ledger", ledger)
    if size == len(ledger) - 1 and (parent / "ledger.next").exists():  # an append was interrupted
        notes.append((parent / "ledger.next").read_bytes().decode())
        size = checkpoint("ledger.next", notes[-1], origin + "_ledger", ledger)
    check(size == len(ledger), f"ledger.ndjson #{size}: behind the ledger's checkpoint")
    records = [record for record in ledger if record[0].startswith("ledger.session_") and record[1]["session"] == folder.name]
    opened = [i for i, record in enumerate(records) if record[0] == "ledger.session_opened@1"]
    check(opened == [0], f"ledger.ndjson: session {folder.name} was not opened, or not once")
    closed = records[-1][0] == "ledger.session_closed@1"
    events = list(chain(folder / "events.ndjson", folder.name, records[0][2], may_be_torn=not closed))
    sizes = [checkpoint("checkpoint", notes[1], origin + folder.name, events)]
    for kind, record, _, _ in records[1:]:
        if kind == "ledger.session_closed@1":
            sizes.append(checkpoint("the ledger", record["checkpoint"], origin + folder.name, events))
        elif kind == "ledger.session_reopened@1":
            commits_to("the ledger", record["size"], bytes.fromhex(record["root"]), events)
    check(not closed or sizes[0] == sizes[-1] == len(events), f"events.ndjson: closed with {sizes[-1]} events, {len(events)} are here, {sizes[0]} under the checkpoint")
    return events, notes, sizes[0]


def verify_files_and_redactions(folder, events):
    """Blobs, recovered parts, and that every gap has its redaction: the statements, by event."""
    gaps, answers, erased, lost, statements = {}, {}, {}, {}, {}
    for seq, (kind, payload, leaf, redaction) in enumerate(events):
        at = f"events.ndjson #{seq}:"
        for name in (blob["sha256"] for blob in payload.get("blobs", [])):
            check(has_hash(folder / "blobs", name, name), f"{at} blob {name} is missing or changed")
            erased.pop(name, None)
        if kind == "log.recovered@1" and not has_hash(folder / "recovered", payload["kept"], payload["sha256"]):
            lost[payload["kept"]] = f"{at} what was recovered is missing or changed"
        if redaction is not None:
            gaps[seq] = leaf.hex(), redaction
        if kind == "log.redacted@1":
            statement = payload["statement"]
            subject = json.loads(unbase64(statement["payload"]))["subject"]
            names = subject["project"], subject["session"]
            check(names == (folder.parent.name, folder.name), f"{at} redacts another log")
            check(statement["payload"] not in [s["payload"] for s in statements.values()], f"{at} a statement answers once")
            statements[seq] = statement
            for event in subject["events"]:
                check(event["seq"] < seq and event["seq"] not in answers, f"{at} redacts #{event['seq']} again, or before it was there")
                answers[event["seq"]] = event["leaf_hash"], seq
            erased.update({name: f"{at} redacted blob {name} is still there" for name in subject["blobs"]})
            for part in subject.get("recovered", []):
                lost.pop(part, None)
    for problem in lost.values():
        check(False, problem)
    for name, problem in erased.items():
        check(not (folder / "blobs" / name).exists(), problem)
    for seq in sorted(gaps.keys() | answers.keys()):
        check(gaps.get(seq) == answers.get(seq), f"events.ndjson #{seq}: payload or tombstone, and not what a redaction says")
    return statements


def verify_signatures(notes, statements, log_key, operators):
    for note in notes:
        origin = note.partition("\n")[0]
        check(note_is_signed(note, origin, log_key), f"the checkpoint of {origin} is not signed by the log key")
    check(operators or not statements, "signatures of redactions NOT checked: give the operators' keys", 2)
    for seq, statement in statements.items():
        signed = statement_is_signed(statement, "redaction", [key for key in operators if key != log_key])
        check(signed, f"events.ndjson #{seq}: not signed by an operator whose key was given")


def has_hash(folder, name, expected):
    file = folder / name
    return bool(NAME.fullmatch(name)) and file.is_file() and sha(file.read_bytes()).hex() == expected


def unbase64(text):
    """The bytes of base64 in its one spelling."""
    decoded = base64.b64decode(text, validate=True)
    check(base64.b64encode(decoded).decode() == text, f"not strict base64: {text}")
    return decoded


def key_of(text):
    """The 32 bytes of a public key in hexadecimal, or as `name+hash+key`."""
    try:
        key = base64.b64decode(text.strip().split("+", 2)[2])[1:] if "+" in text else bytes.fromhex(text)
    except (ValueError, IndexError):
        key = b""
    check(len(key) == 32, f"not a public key: {text}", 2)
    return key


def note_is_signed(note, name, key):
    """Whether a signed note (C2SP) carries the signature of this key under this name."""
    text, _, lines = note.rpartition("\n\n")
    key_hash, mark = sha(name.encode(), b"\n\x01", key)[:4], f"— {name} "
    found = [unbase64(line[len(mark):]) for line in lines.split("\n") if line.startswith(mark)]
    ours = [line[4:] for line in found if line[:4] == key_hash]
    return len(ours) == 1 and signed_by(key, text.encode() + b"\n", ours[0])


def statement_is_signed(envelope, kind, keys):
    """Whether one of these keys, the one that the statement names, signed a DSSE envelope of this kind."""
    kind, payload = f"application/vnd.lodestar.{kind}.v1+json".encode(), unbase64(envelope["payload"])
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    ids = {"ed25519:" + hashlib.sha256(key).hexdigest(): key for key in keys}
    known = [signature for signature in envelope["signatures"] if signature["keyid"] in ids]
    named = json.loads(payload)["key_id"] in [signature["keyid"] for signature in known]
    right = [signed_by(ids[s["keyid"]], message, unbase64(s["sig"])) for s in known]
    return envelope["payloadType"].encode() == kind and named and all(right)


def main(arguments):
    unsigned = "--no-signatures" in arguments
    folder, *keys = [argument for argument in arguments if argument != "--no-signatures"] or [None]
    check(folder and not folder.startswith("-") and not (unsigned and keys), __doc__.strip(), 2)
    folder, keys = pathlib.Path(folder).resolve(), [key_of(text) for text in keys]
    events, notes, proven = verify_hashes(folder)
    statements = verify_files_and_redactions(folder, events)
    summary = f"{len(events)} events, {proven} under the checkpoint, {sum(e[3] is not None for e in events)} redacted"
    if unsigned:
        print(f"OK: {summary}; signatures NOT checked")
        return
    check(keys, f"{summary}; signatures NOT checked: give the log's key, or --no-signatures", 2)
    verify_signatures(notes, statements, keys[0], keys[1:])
    print(f"OK: {summary}; signatures checked: checkpoints{' and redactions' if statements else ''}")


if __name__ == "__main__":
    sys.excepthook = lambda kind, error, _: print(f"not a log that can be read: {kind.__name__}: {error}")
    main(sys.argv[1:])
