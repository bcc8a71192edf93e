"""What verify.py leaves out: the files beside the events, redactions, and signatures."""
import base64, hashlib, json

from verify import check, sha
from verify_ed25519 import verify as signed_by


def verify(folder, events, notes, keys):
    keys = [key_of(text) for text in keys]
    gaps, answers, erased, lost = set(), set(), {}, {}
    for seq, (kind, payload, leaf, redaction) in enumerate(events):
        at = f"events.ndjson #{seq}:"
        for name in (blob["sha256"] for blob in payload.get("blobs", [])):
            check(has_hash(folder / "blobs" / name, name), f"{at} blob {name} is missing or changed")
            erased.pop(name, None)
        if kind == "log.recovered@1" and not has_hash(folder / "recovered" / payload["kept"], payload["sha256"]):
            lost[payload["kept"]] = f"{at} what was recovered is missing or changed"
        if redaction is not None:
            gaps.add((seq, leaf.hex(), redaction))
        if kind == "log.redacted@1":
            statement = payload["statement"]
            signed = not keys[1:] or statement_is_signed(statement, "redaction", keys[1:])
            check(signed, f"{at} not signed by an operator whose key was given")
            subject = json.loads(unbase64(statement["payload"]))["subject"]
            names = subject["project"], subject["session"]
            check(names == (folder.parent.name, folder.name), f"{at} redacts another log")
            answers |= {(event["seq"], event["leaf_hash"], seq) for event in subject["events"]}
            erased.update({name: f"{at} redacted blob {name} is still there" for name in subject["blobs"]})
            for part in subject.get("recovered", []):
                lost.pop(part, None)
    for problem in lost.values():
        check(False, problem)
    for name, problem in erased.items():
        check(not (folder / "blobs" / name).exists(), problem)
    for seq, _, redaction in sorted(gaps ^ answers):
        check(False, f"events.ndjson #{seq}: payload or tombstone, and not what redaction #{redaction} says")
    for note in notes if keys else []:
        origin = note.partition("\n")[0]
        check(note_is_signed(note, origin, keys[0]), f"the checkpoint of {origin} is not signed by the log key")
    checked = ["checkpoints"] * bool(keys) + ["redactions"] * bool(keys[1:])
    return f"; signatures checked: {' and '.join(checked) or 'none'}"


def has_hash(file, expected):
    return file.is_file() and sha(file.read_bytes()).hex() == expected


def unbase64(text):
    """The bytes of base64 in its one spelling."""
    decoded = base64.b64decode(text, validate=True)
    check(base64.b64encode(decoded).decode() == text, f"not strict base64: {text}")
    return decoded


def key_of(text):
    """The 32 bytes of a public key in hexadecimal, or as `name+hash+key`."""
    return unbase64(text.strip().split("+", 2)[2])[1:] if "+" in text else bytes.fromhex(text)


def note_is_signed(note, name, key):
    """Whether a signed note (C2SP) carries the signature of this key under this name."""
    text, _, lines = note.rpartition("\n\n")
    key_hash, mark = sha(name.encode(), b"\n\x01", key)[:4], f"— {name} "
    found = [unbase64(line[len(mark):]) for line in lines.split("\n") if line.startswith(mark)]
    ours = [line[4:] for line in found if line[:4] == key_hash]
    return len(ours) == 1 and signed_by(key, text.encode() + b"\n", ours[0])


def statement_is_signed(envelope, kind, keys):
    """Whether one of these keys signed a DSSE envelope of this kind."""
    kind, payload = f"application/vnd.lodestar.{kind}.v1+json".encode(), unbase64(envelope["payload"])
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    ids = {"ed25519:" + hashlib.sha256(key).hexdigest(): key for key in keys}
    known = [signature for signature in envelope["signatures"] if signature["keyid"] in ids]
    right = [signed_by(ids[s["keyid"]], message, unbase64(s["sig"])) for s in known]
    return envelope["payloadType"].encode() == kind and bool(right) and all(right)
