"""Compares two runs of a scripted client and prints every difference as one JSON document per line.

    python3 compare.py [--rules normalise.json] [--intended intended.json] [--revision R] [--called NAME=TEXT]... ONE OTHER

ONE and OTHER are what `client.mjs` or `client.py` printed. What differs from run to run of one and
the same server is listed with reasons in `normalise.json` and evened out first; exit code 1 means
that something else differs. `--called` does the same for a text that only the caller knows, such as
the path of a scratch folder. With `--intended`, differences that a proxy makes on purpose are only
counted: the last line says how many there are of each; rules with a `revision` count for that of
`--revision` only. Python 3 with its standard library only.
"""

import argparse
import base64
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def even(item, rules, path=""):
    """One document with what differs from run to run put to fixed values."""
    for rule in rules:
        if "path" in rule and re.search(rule["path"], path):
            if rule["kind"] == "forget":
                return "<" + rule["name"] + ">"
            if rule["kind"] == "unordered" and isinstance(item, list):
                parts = [even(part, rules, f"{path}/{at}") for at, part in enumerate(item)]
                return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True))
            if rule["kind"] == "base64" and isinstance(item, str):
                item = base64.b64decode(item).decode("utf-8", "replace")
    if isinstance(item, str):
        for rule in rules:
            if rule["kind"] == "replace":
                item = re.sub(rule["pattern"], "<" + rule["name"] + ">", item)
        return item
    if isinstance(item, list):
        return [even(part, rules, f"{path}/{at}") for at, part in enumerate(item)]
    if isinstance(item, dict):
        return {key: even(part, rules, step(path, key)) for key, part in item.items()}
    return item


def step(path, key):
    """The path one key further, written as in RFC 6901."""
    return path + "/" + key.replace("~", "~0").replace("/", "~1")


def differences(one, other, path=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in other:
                yield {"path": step(path, key), "one": one[key]}
            elif key not in one:
                yield {"path": step(path, key), "other": other[key]}
            else:
                yield from differences(one[key], other[key], step(path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other)):
            yield from differences(left, right, f"{path}/{at}")
    elif type(one) is not type(other) or one != other:
        yield {"path": path, "one": one, "other": other}


def intent(row, rules):
    """What a difference is meant to be; None if nobody meant it."""
    for rule in rules:
        if not re.search(rule["path"], row["path"]) or not re.search(rule.get("op", ""), row["op"]):
            continue
        if "without" in rule:
            is_meant = without(row, "one", rule) == without(row, "other", rule)
        elif rule.get("prefixed"):
            is_meant = re.sub(r"^[\w-]+?__", "", row["other"]) == row["one"]
        else:
            is_meant = all(side_fits(row, side, rule) for side in ("one", "other"))
        if is_meant:
            return rule["what"]
    return None


def side_fits(row, side, rule):
    if side not in rule:
        return True
    if rule[side] is None or side not in row:
        return rule[side] is None and side not in row
    text = json.dumps(row[side], ensure_ascii=False, sort_keys=True)
    return re.search(rule[side], text) is not None


def without(row, side, rule):
    """What was seen on one side, but for some notifications."""
    return [seen for seen in row.get(side, []) if seen.get("notification") not in rule["without"]]


def title(op):
    """A short name for an operation, as in `tools/call echo`."""
    if isinstance(op, str):
        return op
    what = op.get("method", op["do"]) if op["do"] == "request" else op["do"]
    which = op.get("name") or op.get("uri") or op.get("params", {}).get("name") or ""
    return f"{what} {which}".strip()


def run(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", default=os.path.join(HERE, "normalise.json"))
    parser.add_argument("--intended")
    parser.add_argument("--revision")
    parser.add_argument("--called", action="append", default=[])
    parser.add_argument("one")
    parser.add_argument("other")
    options = parser.parse_args()
    with open(options.rules, encoding="utf-8") as file:
        rules = json.load(file)["rules"]
    intended = []
    if options.intended:
        with open(options.intended, encoding="utf-8") as file:
            intended = json.load(file)["rules"]
    intended = [rule for rule in intended if rule.get("revision") in (None, options.revision)]
    for pair in options.called:
        name, text = pair.split("=", 1)
        rules.insert(0, {"kind": "replace", "name": name, "pattern": re.escape(text)})
    one, other = run(options.one), run(options.other)
    found, meant = 0, {}
    if len(one) != len(other):
        found += 1
        print(json.dumps({"op": None, "path": "", "one": len(one), "other": len(other)}))
    for at, (left, right) in enumerate(zip(one, other)):
        for difference in differences(even(left, rules), even(right, rules)):
            row = {"at": at, "op": title(left["op"]), **difference}
            what = intent(row, intended)
            if what is None:
                found += 1
                print(json.dumps(row, ensure_ascii=False))
            else:
                meant[what] = meant.get(what, 0) + 1
    if options.intended:
        print(json.dumps({"intended": meant}))
    sys.exit(1 if found else 0)


main()
