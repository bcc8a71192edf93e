// Starts server-everything over Streamable HTTP on loopback. The package listens on all interfaces
// and has no option against it, so the host is put in where Node's `listen` is called.
//
//   node everything-http.mjs [PORT]        prints `listening on http://127.0.0.1:PORT/mcp`

import { Server } from 'node:net';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

import { home } from './peers.mjs';

// What is printed there is for people; standard output carries our one line.
console.log = console.error;

const listen = Server.prototype.listen;
Server.prototype.listen = function onLoopback(port, ...rest) {
  const callback = rest.find((part) => typeof part === 'function');
  this.once('listening', () => {
    process.stdout.write(`listening on http://127.0.0.1:${this.address().port}/mcp\n`);
  });
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, callback);
};

process.env.PORT = process.argv[2] ?? '0';
process.argv[2] = 'streamableHttp';
const entry = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js';
await import(pathToFileURL(join(home, entry)));
