// Adds a bearer token to every request and passes it on: the conformance suite has no option for
// headers, and the HTTP face of the proxy wants a token. Everything else goes through as it is, a
// strange Host or Origin too; only our own address becomes that of the server.
//
//   node bearer.mjs --to URL --token T [--port N]     prints `listening on http://127.0.0.1:N/mcp`

import { createServer, request } from 'node:http';

import { parse } from './peers.mjs';

const options = parse(process.argv.slice(2), { options: ['to', 'token', 'port'] });
const to = new URL(options.to);

const server = createServer((incoming, outgoing) => {
  const own = `127.0.0.1:${server.address().port}`;
  const headers = { ...incoming.headers, authorization: `Bearer ${options.token}` };
  for (const name of ['host', 'origin']) {
    headers[name] = headers[name]?.replace(own, to.host);
    if (headers[name] === undefined) delete headers[name];
  }
  const onward = request(to, { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
});
server.listen(Number(options.port ?? 0), '127.0.0.1', () => {
  process.stdout.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
});
