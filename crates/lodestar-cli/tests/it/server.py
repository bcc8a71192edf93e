"""An MCP server whose tools stand in a file: what is in the file when it starts is what it offers."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    offered = json.load(file)

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
            "instructions": offered.get("instructions", "be kind"),
        }
    elif method == "tools/list":
        result = {"tools": offered["tools"]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "called " + params["name"]}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
