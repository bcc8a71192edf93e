// A scripted client on the official TypeScript SDK: runs a list of operations against a server and
// prints one JSON document per line for each: what came back over the wire, verbatim, what the SDK
// made of it, and which notifications and requests the server sent meanwhile.
//
//   node client.mjs [options] -- COMMAND ARGS...      a stdio server
//   node client.mjs [options] --url URL               a Streamable HTTP server
//
// The operations are a JSON array on standard input, or in the file after `--ops`; README.md has
// the list of them and of the options.

import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { need, parse } from './peers.mjs';

const options = parse(process.argv.slice(2), {
  options: ['sdk', 'revision', 'capabilities', 'url', 'token', 'ops', 'tool-prefix',
    'prompt-prefix', 'settle-ms', 'timeout-ms', 'patience-ms', 'elicit', 'name', 'cwd'],
  lists: ['set', 'env', 'header'],
});
const sdk = options.sdk ?? 'v2';
const revision = options.revision ?? '2025-11-25';
const settle = Number(options['settle-ms'] ?? 50);
const timeout = Number(options['timeout-ms'] ?? 30_000);
const patience = Number(options['patience-ms'] ?? Infinity);
const capabilities = (options.capabilities ?? '').split(',').filter(Boolean);
const modern = revision === 'auto' || revision >= '2026-07-28';
if (sdk === 'v1' && modern) {
  throw new Error(`the v1 SDK does not speak \`${revision}\`; use \`--sdk v2\``);
}

const z = need('zod');
const anything = z.looseObject({});
const known = Object.fromEntries(options.set.map((pair) => [
  pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1),
]));

// ---- What crosses the wire ---------------------------------------------------------------------

const current = new AsyncLocalStorage();
let alone;
const asked = new Map();
let seen = [];
let answering = new Map();

/** Notes every message in both directions, before the SDK reads or after it wrote it. */
function tap(transport) {
  const send = transport.send.bind(transport);
  transport.send = (message, ...more) => {
    if (message.method === 'initialize' && sdk === 'v1') {
      // This SDK offers only its newest revision, and takes whichever the server settles on.
      message = { ...message, params: { ...message.params, protocolVersion: revision } };
    }
    if (message.method !== undefined && message.id !== undefined) {
      // A further round of a call is sent from where its answer was read, outside the operation.
      const running = current.getStore();
      const into = running === undefined || running.done ? alone : running;
      asked.set(message.id, { method: message.method, into });
    } else if (message.id !== undefined && answering.has(message.id)) {
      const request = answering.get(message.id);
      answering.delete(message.id);
      Object.assign(request, message.error ? { error: message.error } : { answer: message.result });
    }
    return send(message, ...more);
  };
  transport.onmessage = (message) => {
    if (message.method === undefined) {
      const question = asked.get(message.id);
      const { result, error } = message;
      const answer = { method: question?.method ?? null, ...(error ? { error } : { result }) };
      question?.into?.answers.push(answer);
    } else if (message.id === undefined) {
      seen.push({ notification: message.method, params: message.params });
    } else {
      const request = { request: message.method, params: message.params };
      answering.set(message.id, request);
      seen.push(request);
    }
  };
  return transport;
}

// ---- The client, with handlers that give fixed answers ------------------------------------------

const ROOTS = [
  { uri: 'file:///workspace/first', name: 'first' },
  { uri: 'file:///workspace/second', name: 'second' },
];
const SAMPLED = {
  role: 'assistant',
  content: { type: 'text', text: 'A fixed answer.' },
  model: 'fixed-model',
  stopReason: 'endTurn',
};

/** Fills in a form: the default where the schema has one, else a fixed value of the right kind. */
function filled(schema = {}) {
  const value = (field) => {
    if (field.default !== undefined) return field.default;
    if (field.enum) return field.enum[0];
    if (field.oneOf) return field.oneOf[0].const;
    if (field.type === 'array') return [field.items.enum?.[0] ?? field.items.anyOf?.[0].const];
    if (field.type === 'boolean') return true;
    if (field.type === 'integer' || field.type === 'number') return field.minimum ?? 7;
    const formats = { email: 'ada@example.com', uri: 'https://example.com/', date: '1815-12-10',
      'date-time': '1815-12-10T12:00:00Z' };
    return formats[field.format] ?? 'Ada';
  };
  const fields = Object.entries(schema.properties ?? {});
  return Object.fromEntries(fields.map(([name, field]) => [name, value(field)]));
}

function elicited(params) {
  const action = options.elicit ?? 'accept';
  if (action !== 'accept' || params.mode === 'url') return { action };
  return { action, content: filled(params.requestedSchema) };
}

function declared() {
  const all = {
    roots: { listChanged: true },
    sampling: {},
    elicitation: { form: {}, url: {} },
    tasks: { list: {}, cancel: {},
      requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
  };
  for (const name of capabilities) {
    if (!(name in all)) throw new Error(`unknown capability \`${name}\``);
  }
  return Object.fromEntries(capabilities.map((name) => [name, all[name]]));
}

/** The client of the 2.x packages. */
function currentSdk() {
  const { Client, StreamableHTTPClientTransport } = need('@modelcontextprotocol/client');
  const stdio = need('@modelcontextprotocol/client/stdio');
  const client = new Client(
    { name: options.name ?? 'lodestar-peer', version: '1.0.0' },
    {
      capabilities: declared(),
      ...(modern
        ? { versionNegotiation: { mode: revision === 'auto' ? 'auto' : { pin: revision } } }
        : { supportedProtocolVersions: [revision] }),
    },
  );
  const has = (name) => capabilities.includes(name);
  if (has('roots')) client.setRequestHandler('roots/list', () => ({ roots: ROOTS }));
  if (has('sampling')) client.setRequestHandler('sampling/createMessage', () => SAMPLED);
  if (has('elicitation')) client.setRequestHandler('elicitation/create', (r) => elicited(r.params));
  return {
    client,
    stdio,
    Http: StreamableHTTPClientTransport,
    call: (params, how) => client.callTool(params, how),
  };
}

/** The client of the single 1.x package, which alone knows tasks. */
function formerSdk() {
  const { Client } = need('@modelcontextprotocol/sdk/client/index.js');
  const stdio = need('@modelcontextprotocol/sdk/client/stdio.js');
  const types = need('@modelcontextprotocol/sdk/types.js');
  const { InMemoryTaskStore } = need('@modelcontextprotocol/sdk/experimental/tasks');
  const has = (name) => capabilities.includes(name);
  const client = new Client(
    { name: options.name ?? 'lodestar-peer', version: '1.0.0' },
    { capabilities: declared(), ...(has('tasks') ? { taskStore: new InMemoryTaskStore() } : {}) },
  );
  // A request with `task` is answered with a task that is done a moment later.
  const answer = (make) => async (request, extra) => {
    const result = make(request.params);
    if (!request.params?.task || !extra.taskStore) return result;
    const task = await extra.taskStore.createTask({ ttl: request.params.task.ttl });
    setTimeout(() => extra.taskStore.storeTaskResult(task.taskId, 'completed', result), 100);
    return { task };
  };
  const handle = (schema, make) => client.setRequestHandler(schema, answer(make));
  if (has('roots')) handle(types.ListRootsRequestSchema, () => ({ roots: ROOTS }));
  if (has('sampling')) handle(types.CreateMessageRequestSchema, () => SAMPLED);
  if (has('elicitation')) handle(types.ElicitRequestSchema, elicited);
  const { StreamableHTTPClientTransport } = need(
    '@modelcontextprotocol/sdk/client/streamableHttp.js');
  return {
    client,
    stdio,
    Http: StreamableHTTPClientTransport,
    call: (params, how) => client.callTool(params, undefined, how),
  };
}

const { client, stdio, Http, call } = sdk === 'v1' ? formerSdk() : currentSdk();

function transport() {
  if (options.url) {
    const headers = Object.fromEntries(options.header.map((line) => line.split(/:\s*/, 2)));
    if (options.token) headers.Authorization = `Bearer ${options.token}`;
    return new Http(new URL(options.url), { requestInit: { headers } });
  }
  const [command, ...args] = options.rest;
  const extra = Object.fromEntries(options.env.map((pair) => [
    pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1),
  ]));
  const env = { ...stdio.getDefaultEnvironment(), ...extra };
  return new stdio.StdioClientTransport({
    command, args, env, cwd: options.cwd, maxBufferSize: 256 * 1024 * 1024,
  });
}

// ---- Operations ---------------------------------------------------------------------------------

const listening = [];

function perform(op, how) {
  const meta = op.meta ? { _meta: op.meta } : {};
  const tool = `${options['tool-prefix'] ?? ''}${op.name}`;
  const prompt = (name) => `${options['prompt-prefix'] ?? ''}${name}`;
  const page = { ...(op.cursor ? { cursor: op.cursor } : {}), ...meta };
  // A listing may be cached by the SDK; an operation is to reach the server.
  const fresh = { ...how, cacheMode: 'refresh' };
  switch (op.do) {
    case 'tools/list': return client.listTools(page, fresh);
    case 'resources/list': return client.listResources(page, fresh);
    case 'resources/templates/list': return client.listResourceTemplates(page, fresh);
    case 'prompts/list': return client.listPrompts(page, fresh);
    case 'tools/call': {
      return call({ name: tool, arguments: op.arguments ?? {}, ...meta }, how);
    }
    case 'resources/read': return client.readResource({ uri: op.uri, ...meta }, fresh);
    case 'prompts/get': {
      return client.getPrompt({ name: prompt(op.name), arguments: op.arguments, ...meta }, how);
    }
    case 'completion/complete': {
      const ref = op.ref.type === 'ref/prompt' ? { ...op.ref, name: prompt(op.ref.name) } : op.ref;
      const context = op.context ? { context: { arguments: op.context } } : {};
      return client.complete({ ref, argument: op.argument, ...context, ...meta }, how);
    }
    case 'logging/setLevel': return client.setLoggingLevel(op.level, how);
    case 'resources/subscribe': return client.subscribeResource({ uri: op.uri }, how);
    case 'resources/unsubscribe': return client.unsubscribeResource({ uri: op.uri }, how);
    case 'ping': return client.ping(how);
    case 'server/discover': return client.discover(how);
    case 'subscriptions/listen': {
      return client.listen(op.filter, how).then((one) => listening.push(one));
    }
    case 'unlisten': return listening.pop().close();
    case 'roots/changed': return client.sendRootsListChanged();
    case 'notify': return client.notification({ method: op.method, params: op.params });
    case 'request': {
      const params = { ...op.params };
      if (op.method === 'tools/call') params.name = `${options['tool-prefix'] ?? ''}${params.name}`;
      return client.request({ method: op.method, params }, anything, how);
    }
    case 'wait': return sleep(op.ms);
    default: throw new Error(`unknown operation \`${op.do}\``);
  }
}

/** Waits until the server has sent `method`, as often as wanted: what comes late belongs here too. */
async function arrived({ method, times = 1, ms = 5000 }) {
  ms = Math.min(ms, patience);
  const end = Date.now() + ms;
  const count = () => seen.filter((s) => (s.notification ?? s.request) === method).length;
  while (count() < times && Date.now() < end) await sleep(10);
}

async function run(op) {
  const running = { answers: [], done: false };
  const { answers } = running;
  alone = running;
  const how = { timeout: op.timeout_ms ?? timeout };
  if (op.progress) how.onprogress = () => {};
  if (op.cancel_after_ms !== undefined) {
    const abort = new AbortController();
    how.signal = abort.signal;
    setTimeout(() => abort.abort('the client changed its mind'), op.cancel_after_ms);
  }
  const document = {};
  await current.run(running, async () => {
    try {
      await perform(op, how);
      if (op.until) await arrived(op.until);
    } catch (error) {
      document.failure = { kind: error.constructor.name, message: String(error.message ?? error) };
      if (error.code !== undefined) document.failure.code = error.code;
    }
  });
  running.done = true;
  // An SDK may list tools of its own accord around a call.
  const wanted = op.method ?? op.do;
  const last = answers.findLast((answer) => answer.method === wanted) ?? answers.at(-1);
  if (last) Object.assign(document, last.error ? { error: last.error } : { result: last.result });
  if (answers.length > 1) document.earlier = answers.filter((answer) => answer !== last);
  for (const [name, pointer] of Object.entries(op.save ?? {})) {
    known[name] = pointer.split('/').slice(1).reduce((at, key) => at?.[key], document.result);
  }
  return document;
}

/** Puts `{name}` of `--set` and of saved results in place. */
function placed(value) {
  if (typeof value === 'string') return value.replace(/\{(\w+)\}/g, (all, name) => known[name] ?? all);
  if (Array.isArray(value)) return value.map(placed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, placed(item)]));
}

function print(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

function drain() {
  const taken = seen;
  seen = [];
  return taken.length ? { seen: taken } : {};
}

const operations = JSON.parse(readFileSync(options.ops ?? 0, 'utf8'));
const handshake = { answers: [], done: false };
try {
  await current.run(handshake, () => client.connect(tap(transport()), { timeout }));
} catch (error) {
  print({ op: 'connect', failure: { kind: error.constructor.name, message: error.message } });
  process.exit(1);
}
print({ op: 'connect', revision: client.getNegotiatedProtocolVersion?.()
    ?? handshake.answers.at(-1)?.result?.protocolVersion,
  result: handshake.answers.at(-1)?.result ?? client.getDiscoverResult?.() });
handshake.done = true;
for (const template of operations) {
  const op = placed(template);
  if (op.do === 'together') {
    const parts = await Promise.all(op.ops.map(run));
    await sleep(settle);
    print({ op, parts, ...drain() });
  } else {
    const document = await run(op);
    if (op.do !== 'wait') await sleep(settle);
    print({ op, ...document, ...drain() });
  }
}
await client.close();
print({ op: 'close', ...drain() });
process.exit(0);
