"""An OTLP receiver over HTTP, built on the official protobufs.

    python otlp_receiver.py FILE [ANSWER...]

prints its port, takes POSTs of `ExportTraceServiceRequest`, and appends each to FILE as one line of JSON
with path, headers and what was decoded. It gives the answers in turn, and the last of them from then on:
`ok`, `json`, `remark`, `partial`.
"""

import base64
import http.server
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

out = open(sys.argv[1], "a", encoding="utf-8")
answers = sys.argv[2:] or ["ok"]


def hexed(value):
    """Ids as OTLP writes them in JSON."""
    if isinstance(value, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64decode(item).hex() if key in ids else hexed(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [hexed(item) for item in value]
    return value


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        # What cannot be said in protobuf was not understood.
        assert request.SerializeToString() and not request.DiscardUnknownFields()
        decoded = hexed(MessageToDict(request, use_integers_for_enums=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = {"path": self.path, "headers": headers, "request": decoded}
        out.write(json.dumps(line) + "\n")
        out.flush()
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        response = ExportTraceServiceResponse()
        if answer == "remark":
            response.partial_success.error_message = "the clock of this host is odd"
        if answer == "partial":
            response.partial_success.rejected_spans = 3
            response.partial_success.error_message = "too old \x1b[2J"
        kind, text = "application/x-protobuf", response.SerializeToString()
        if answer == "json":
            kind, text = "application/json", b'{"partialSuccess":{}}'
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
server.serve_forever()
