"""A scripted client on the official Python SDK.

It takes the same operations and options as `client.mjs` and prints the same documents; README.md
describes both. It is run with the Python of the environment that `LODESTAR_PEERS` names.

    python client.py [options] -- COMMAND ARGS...      a stdio server
    python client.py [options] --url URL               a Streamable HTTP server
"""

import argparse
import contextvars
import json
import re
import sys
import time
import warnings
from contextlib import asynccontextmanager

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

# Half of what is tested here is deprecated in the newest revision.
warnings.simplefilter("ignore")


def command_line():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--revision", default="2025-11-25")
    parser.add_argument("--capabilities", default="")
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--ops")
    parser.add_argument("--tool-prefix", default="")
    parser.add_argument("--prompt-prefix", default="")
    parser.add_argument("--settle-ms", type=int, default=50)
    parser.add_argument("--timeout-ms", type=int, default=30_000)
    parser.add_argument("--patience-ms", type=int)
    parser.add_argument("--elicit", default="accept")
    parser.add_argument("--name", default="lodestar-peer")
    parser.add_argument("--log-level")
    parser.add_argument("--cwd")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--header", action="append", default=[])
    own, server = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, server = own[:at], own[at + 1 :]
    options = parser.parse_args(own)
    options.server = server
    return options


OPTIONS = command_line()
KNOWN = dict(pair.split("=", 1) for pair in OPTIONS.set)
CAPABILITIES = [name for name in OPTIONS.capabilities.split(",") if name]

# ---- What crosses the wire -----------------------------------------------------------------------

current = contextvars.ContextVar("answers of the operation", default=None)
asked = {}
seen = []
answering = {}


def plain(message):
    return json.loads(message.model_dump_json(by_alias=True, exclude_unset=True))


class TappedReader:
    """Notes every message before the SDK reads it."""

    def __init__(self, inner):
        self.inner = inner

    def note(self, item):
        if isinstance(item, Exception):
            seen.append({"unreadable": str(item)})
            return item
        message = plain(item.message)
        if "method" not in message:
            method, into = asked.get(message.get("id"), (None, None))
            if into is not None:
                kind = "error" if "error" in message else "result"
                into.append({"method": method, kind: message[kind]})
        elif "id" not in message:
            seen.append({"notification": message["method"], **params_of(message)})
        else:
            request = {"request": message["method"], **params_of(message)}
            answering[message["id"]] = request
            seen.append(request)
        return item

    async def receive(self):
        return self.note(await self.inner.receive())

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self):
        await self.inner.aclose()

    def close(self):
        self.inner.close()

    async def __aenter__(self):
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *why):
        return await self.inner.__aexit__(*why)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class TappedWriter(TappedReader):
    """Notes every message that the SDK wrote."""

    async def send(self, item):
        message = plain(item.message)
        if "method" in message and "id" in message:
            asked[message["id"]] = (message["method"], current.get())
            if message["method"] == "initialize" and OPTIONS.revision != "auto":
                # This SDK offers only its newest revision, and takes whichever the server settles on.
                item.message.params["protocolVersion"] = OPTIONS.revision
        elif "method" not in message and message.get("id") in answering:
            kind = "error" if "error" in message else "result"
            request = answering.pop(message["id"])
            request["error" if kind == "error" else "answer"] = message[kind]
        await self.inner.send(item)


def params_of(message):
    return {"params": message["params"]} if "params" in message else {}


@asynccontextmanager
async def tapped(transport):
    async with transport as (reader, writer):
        yield TappedReader(reader), TappedWriter(writer)


# ---- The client, with handlers that give fixed answers --------------------------------------------

ROOTS = [
    {"uri": "file:///workspace/first", "name": "first"},
    {"uri": "file:///workspace/second", "name": "second"},
]


async def roots(_context):
    return types.ListRootsResult.model_validate({"roots": ROOTS})


async def sampled(_context, _params):
    return types.CreateMessageResult(
        role="assistant",
        content=types.TextContent(type="text", text="A fixed answer."),
        model="fixed-model",
        stop_reason="endTurn",
    )


FORMATS = {
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "date": "1815-12-10",
    "date-time": "1815-12-10T12:00:00Z",
}


def value(field):
    """The default where the schema has one, else a fixed value of the right kind."""
    if "default" in field:
        return field["default"]
    if "enum" in field:
        return field["enum"][0]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    kind = field.get("type")
    if kind == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return field.get("minimum", 7)
    return FORMATS.get(field.get("format"), "Ada")


async def elicited(_context, params):
    if OPTIONS.elicit != "accept" or params.mode == "url":
        return types.ElicitResult(action=OPTIONS.elicit)
    fields = params.requested_schema.get("properties", {})
    return types.ElicitResult(
        action="accept", content={name: value(field) for name, field in fields.items()}
    )


def transport():
    if OPTIONS.url:
        headers = dict(re.split(r":\s*", line, maxsplit=1) for line in OPTIONS.header)
        if OPTIONS.token:
            headers["Authorization"] = f"Bearer {OPTIONS.token}"
        http = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300))
        return streamable_http_client(OPTIONS.url, http_client=http)
    command, *arguments = OPTIONS.server
    env = dict(pair.split("=", 1) for pair in OPTIONS.env)
    return stdio_client(
        StdioServerParameters(command=command, args=arguments, env=env, cwd=OPTIONS.cwd)
    )


def connection():
    handlers = {
        "roots": {"list_roots_callback": roots},
        "sampling": {"sampling_callback": sampled},
        "elicitation": {"elicitation_callback": elicited},
    }
    declared = {}
    for name in CAPABILITIES:
        if name not in handlers:
            sys.exit(f"unknown capability `{name}`; this SDK has {', '.join(handlers)}")
        declared.update(handlers[name])
    modern = OPTIONS.revision == "auto" or OPTIONS.revision >= "2026-07-28"
    return Client(
        tapped(transport()),
        mode=OPTIONS.revision if modern else "legacy",
        client_info=types.Implementation(name=OPTIONS.name, version="1.0.0"),
        read_timeout_seconds=OPTIONS.timeout_ms / 1000,
        log_level=OPTIONS.log_level,
        # An operation is to reach the server.
        cache=None,
        **declared,
    )


# ---- Operations ----------------------------------------------------------------------------------


async def ignored(_progress, _total=None, _message=None):
    pass


class Listening:
    """Open `subscriptions/listen` streams, the newest last."""

    def __init__(self):
        self.streams = []

    async def open(self, client, filter):
        names = {
            "toolsListChanged": "tools_list_changed",
            "promptsListChanged": "prompts_list_changed",
            "resourcesListChanged": "resources_list_changed",
            "resourceSubscriptions": "resource_subscriptions",
        }
        stream = client.listen(**{names[key]: wanted for key, wanted in filter.items()})
        await stream.__aenter__()
        self.streams.append(stream)

    async def close(self):
        await self.streams.pop().__aexit__(None, None, None)


listening = Listening()


async def perform(client, op):
    meta, what = op.get("meta"), op["do"]
    tool = OPTIONS.tool_prefix + op.get("name", "")
    prompt = OPTIONS.prompt_prefix + op.get("name", "")
    page = {"cursor": op.get("cursor"), "meta": meta}
    if what == "tools/list":
        await client.list_tools(**page)
    elif what == "resources/list":
        await client.list_resources(**page)
    elif what == "resources/templates/list":
        await client.list_resource_templates(**page)
    elif what == "prompts/list":
        await client.list_prompts(**page)
    elif what == "tools/call":
        progress = ignored if op.get("progress") else None
        seconds = op.get("timeout_ms", OPTIONS.timeout_ms) / 1000
        await client.call_tool(tool, op.get("arguments", {}), seconds, progress, meta=meta)
    elif what == "resources/read":
        await client.read_resource(op["uri"], meta=meta)
    elif what == "prompts/get":
        await client.get_prompt(prompt, op.get("arguments"), meta=meta)
    elif what == "completion/complete":
        await client.complete(reference(op["ref"]), op["argument"], op.get("context"))
    elif what == "logging/setLevel":
        await client.set_logging_level(op["level"])
    elif what == "resources/subscribe":
        await client.subscribe_resource(op["uri"])
    elif what == "resources/unsubscribe":
        await client.unsubscribe_resource(op["uri"])
    elif what == "ping":
        await client.send_ping()
    elif what == "server/discover":
        await client.session.send_discover(client.protocol_version)
    elif what == "subscriptions/listen":
        await listening.open(client, op["filter"])
    elif what == "unlisten":
        await listening.close()
    elif what == "roots/changed":
        await client.send_roots_list_changed()
    elif what == "request":
        params = dict(op.get("params") or {})
        if op["method"] == "tools/call":
            params["name"] = OPTIONS.tool_prefix + params["name"]
        request = types.Request[dict, str](method=op["method"], params=params)
        await client.session.send_request(request, TypeAdapter(dict))
    elif what == "wait":
        await anyio.sleep(op["ms"] / 1000)
    else:
        sys.exit(f"unknown operation `{what}`")


def reference(ref):
    if ref["type"] == "ref/prompt":
        return types.PromptReference(type="ref/prompt", name=OPTIONS.prompt_prefix + ref["name"])
    return types.ResourceTemplateReference(type="ref/resource", uri=ref["uri"])


async def arrived(method, times=1, ms=5000):
    """Waits until the server has sent `method`, as often as wanted: what comes late belongs here too."""
    if OPTIONS.patience_ms is not None:
        ms = min(ms, OPTIONS.patience_ms)
    end = time.monotonic() + ms / 1000

    def count():
        return sum(method in (s.get("notification"), s.get("request")) for s in seen)

    while count() < times and time.monotonic() < end:
        await anyio.sleep(0.01)


async def run(client, op):
    answers, document = [], {}
    token = current.set(answers)
    try:
        after = op.get("cancel_after_ms")
        with anyio.move_on_after(None if after is None else after / 1000) as scope:
            await perform(client, op)
            if "until" in op:
                await arrived(**op["until"])
        if scope.cancelled_caught:
            document["failure"] = {"kind": "Cancelled", "message": "the client changed its mind"}
    except MCPError as error:
        document["failure"] = {
            "kind": "MCPError",
            "message": error.error.message,
            "code": error.error.code,
        }
    except Exception as error:
        document["failure"] = {"kind": type(error).__name__, "message": str(error)}
    finally:
        current.reset(token)
    # The SDK lists tools of its own accord after the first call of one that it does not know.
    wanted = op.get("method", op["do"])
    last = next((a for a in reversed(answers) if a["method"] == wanted), answers[-1] if answers else None)
    if last is not None:
        document.update({k: v for k, v in last.items() if k != "method"})
    if len(answers) > 1:
        document["earlier"] = [answer for answer in answers if answer is not last]
    for name, pointer in op.get("save", {}).items():
        at = document.get("result")
        for key in pointer.split("/")[1:]:
            at = at.get(key) if isinstance(at, dict) else None
        KNOWN[name] = at
    return document


def placed(item):
    """Puts `{name}` of `--set` and of saved results in place."""
    if isinstance(item, str):
        return re.sub(r"\{(\w+)\}", lambda m: str(KNOWN.get(m[1]) or m[0]), item)
    if isinstance(item, list):
        return [placed(part) for part in item]
    if isinstance(item, dict):
        return {key: placed(part) for key, part in item.items()}
    return item


def drain():
    taken = seen[:]
    del seen[: len(taken)]
    return {"seen": taken} if taken else {}


def show(document):
    print(json.dumps(document, ensure_ascii=False, separators=(",", ":")), flush=True)


async def together(client, ops):
    parts = [None] * len(ops)

    async def one(at, op):
        parts[at] = await run(client, op)

    async with anyio.create_task_group() as group:
        for at, op in enumerate(ops):
            group.start_soon(one, at, op)
    return parts


async def main():
    with open(OPTIONS.ops) if OPTIONS.ops else sys.stdin as file:
        operations = json.load(file)
    handshake = []
    current.set(handshake)
    async with connection() as client:
        result = handshake[-1].get("result") if handshake else None
        show({"op": "connect", "revision": client.protocol_version, "result": result})
        for template in operations:
            op = placed(template)
            if op["do"] == "together":
                document = {"parts": await together(client, op["ops"])}
            else:
                document = await run(client, op)
            if op["do"] != "wait":
                await anyio.sleep(OPTIONS.settle_ms / 1000)
            show({"op": op, **document, **drain()})
        while listening.streams:
            await listening.close()
    show({"op": "close", **drain()})


def first_cause(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


try:
    anyio.run(main)
except Exception as error:
    cause = first_cause(error)
    show({"op": "connect", "failure": {"kind": type(cause).__name__, "message": str(cause)}})
    sys.exit(1)
