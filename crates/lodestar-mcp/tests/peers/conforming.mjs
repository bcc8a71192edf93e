// A server on the official TypeScript SDK with the tools, resources and prompts that the MCP
// project's conformance suite asks for by name. The suite is run against it directly, and through
// the proxy in front of it: what passes the one way has to pass the other.
//
//   node conforming.mjs                                  stdio
//   node conforming.mjs --http [--port N] [--token T]    Streamable HTTP on loopback; prints
//                                                        `listening on http://127.0.0.1:N/mcp`
//
// It serves the revisions with a handshake and 2026-07-28, whichever the client opens with.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { need, parse } from './peers.mjs';

const z = need('zod');
const {
  McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler,
  createRequestStateCodec, fromJsonSchema, inputRequired, inputResponse, isLegacyRequest,
} = need('@modelcontextprotocol/server');
const { serveStdio } = need('@modelcontextprotocol/server/stdio');
const {
  NodeStreamableHTTPServerTransport, localhostHostValidation, localhostOriginValidation,
  toNodeHandler, toWebRequest,
} = need('@modelcontextprotocol/node');

const options = parse(process.argv.slice(2), { options: ['port', 'token'], flags: ['http'] });

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const object = (properties = {}, required = Object.keys(properties)) => (
  { type: 'object', properties, required });

// ---- Tools that just answer -----------------------------------------------------------------------

function addPlainTools(tool) {
  tool('test_simple_text', 'Returns text', {}, () => text('This is a simple text response for testing.'));
  tool('test_image_content', 'Returns an image', {}, () => (
    { content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] }));
  tool('test_audio_content', 'Returns a sound', {}, () => (
    { content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }));
  tool('test_embedded_resource', 'Returns a resource', {}, () => ({
    content: [{ type: 'resource', resource: { uri: 'test://embedded-resource',
      mimeType: 'text/plain', text: 'This is an embedded resource content.' } }],
  }));
  tool('test_multiple_content_types', 'Returns text, an image and a resource', {}, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'test://mixed-content-resource',
        mimeType: 'application/json', text: '{"test":"data","value":123}' } },
    ],
  }));
  tool('test_error_handling', 'Fails', {}, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  tool('json_schema_2020_12_tool', 'Has a schema with keywords of JSON Schema 2020-12', {
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      ...object({
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      }, []),
      $defs: { address: { $anchor: 'addressDef', type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } } } },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  }, (args) => text(`Received ${JSON.stringify(args)}`));
  tool('test_custom_headers', 'Has a parameter that travels in a header too', {
    schema: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
  }, ({ region }) => text(`Region: ${region}`));
}

// ---- Tools that tell something while they work ----------------------------------------------------

function addTalkingTools(tool, changed) {
  const logging = async (_args, ctx) => {
    for (const words of ['started', 'processing data', 'completed']) {
      await ctx.mcpReq.log('info', `Tool execution ${words}`);
      await sleep(50);
    }
    return text('Logged three messages.');
  };
  tool('test_tool_with_logging', 'Logs three messages', {}, logging);
  tool('test_logging_tool', 'Logs three messages', {}, logging);
  tool('test_tool_with_progress', 'Reports progress', {}, async (_args, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: 'notifications/progress',
          params: { progressToken, progress, total: 100 } });
      }
      await sleep(50);
    }
    return text('Reported progress.');
  });
  tool('test_reconnection', 'Closes its stream before it answers', {}, async (_args, ctx) => {
    await sleep(50);
    ctx.http?.closeSSE?.();
    await sleep(200);
    return text('Answered after the stream was closed.');
  });
  tool('test_trigger_tool_change', 'Announces that the tools changed', {}, (_args, ctx) => {
    changed('tools', ctx);
    return text('Announced.');
  });
  tool('test_trigger_prompt_change', 'Announces that the prompts changed', {}, (_args, ctx) => {
    changed('prompts', ctx);
    return text('Announced.');
  });
}

// ---- Tools that ask back ---------------------------------------------------------------------------
// On the revisions with a handshake the SDK makes requests to the client out of these.

const state = createRequestStateCodec({ key: randomUUID() + randomUUID() });
const question = (message, properties, required) => inputRequired.elicit({
  message, requestedSchema: object(properties, required) });
const sampling = (words, maxTokens = 100) => inputRequired.createMessage({
  messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens });
const name = { name: { type: 'string' } };

/** The answer to an elicitation, whatever it was, or nothing yet. */
function answered(ctx, key) {
  const view = inputResponse(ctx.mcpReq.inputResponses, key);
  return view.kind === 'elicit' ? view : undefined;
}

/** The text of a sampled message, or nothing yet. */
function sampledText(ctx, key) {
  const view = inputResponse(ctx.mcpReq.inputResponses, key);
  if (view.kind !== 'sampling') return undefined;
  const content = [view.result?.content ?? view.content].flat()[0];
  return content?.text ?? JSON.stringify(content);
}

function addElicitingTools(tool) {
  const eliciting = (title, describe, schema, message, properties, required, say) => {
    tool(title, describe, { schema }, (args, ctx) => {
      const answer = answered(ctx, 'answer');
      if (answer === undefined) {
        return inputRequired({ inputRequests: {
          answer: question(message(args), properties, required) } });
      }
      return text(say(answer.action, JSON.stringify(answer.content ?? {})));
    });
  };
  const completed = (action, content) => `Elicitation completed: action=${action}, content=${content}`;
  eliciting('test_elicitation', 'Asks the user', object({ message: { type: 'string' } }),
    (args) => args.message,
    { username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" } },
    ['username', 'email'],
    (action, content) => `User response: action=${action}, content=${content}`);
  eliciting('test_elicitation_sep1034_defaults', 'Asks the user, with defaults', object(),
    () => 'Please confirm or change these values',
    {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }, [], completed);
  const titled = (noun) => ['value1', 'value2', 'value3'].map((value, at) => (
    { const: value, title: `${['First', 'Second', 'Third'][at]} ${noun}` }));
  const untitled = ['option1', 'option2', 'option3'];
  eliciting('test_elicitation_sep1330_enums', 'Asks the user to choose', object(),
    () => 'Please choose',
    {
      untitledSingle: { type: 'string', enum: untitled },
      titledSingle: { type: 'string', oneOf: titled('Option') },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: untitled } },
      titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
    }, [], completed);
  eliciting('test_streaming_elicitation', 'Asks the user', object(),
    () => 'What is your name?', name, ['name'], completed);
}

function addAskingTools(tool) {
  tool('test_sampling', 'Asks the model', { schema: object({ prompt: { type: 'string' } }) },
    ({ prompt }, ctx) => {
      const words = sampledText(ctx, 'answer');
      if (words === undefined) {
        return inputRequired({ inputRequests: { answer: sampling(prompt) } });
      }
      return text(`LLM response: ${words}`);
    });
  tool('test_input_required_result_elicitation', 'Asks for a name', {}, (_args, ctx) => {
    const given = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', z.object({ name: z.string() }));
    if (given === undefined) {
      return inputRequired({ inputRequests: { user_name: question('What is your name?', name) } });
    }
    return text(`Hello, ${given.name}!`);
  });
  tool('test_input_required_result_sampling', 'Asks the model', {}, (_args, ctx) => {
    const words = sampledText(ctx, 'capital_question');
    if (words === undefined) {
      return inputRequired({ inputRequests: {
        capital_question: sampling('What is the capital of France?') } });
    }
    return text(`The model says: ${words}`);
  });
  tool('test_input_required_result_list_roots', 'Asks for the roots', {}, (_args, ctx) => {
    const roots = ctx.mcpReq.inputResponses?.client_roots?.roots;
    if (roots === undefined) {
      return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    }
    return text(`Roots: ${roots.map((root) => root.uri).join(', ')}`);
  });
  for (const title of ['request_state', 'tampered_state']) {
    tool(`test_input_required_result_${title}`, 'Asks, and keeps its state with the client', {},
      async (_args, ctx) => {
        if (ctx.mcpReq.requestState() === undefined || answered(ctx, 'confirm') === undefined) {
          return inputRequired({
            inputRequests: { confirm: question('Please confirm', { ok: { type: 'boolean' } }) },
            requestState: await state.mint({ step: 1 }, ctx),
          });
        }
        return text('state-ok');
      });
  }
}

function addManyRoundTools(tool) {
  tool('test_input_required_result_multiple_inputs', 'Asks for three things at once', {},
    async (_args, ctx) => {
      const given = ctx.mcpReq.inputResponses ?? {};
      const keys = ['user_name', 'greeting', 'client_roots'];
      if (!keys.every((key) => given[key] !== undefined)) {
        return inputRequired({
          inputRequests: {
            user_name: question('What is your name?', name),
            greeting: sampling('Generate a greeting', 50),
            client_roots: inputRequired.listRoots(),
          },
          requestState: await state.mint({ step: 1 }, ctx),
        });
      }
      return text(`Received ${keys.join(', ')}.`);
    });
  tool('test_input_required_result_multi_round', 'Asks twice', {}, async (_args, ctx) => {
    const step = ctx.mcpReq.requestState()?.step ?? 0;
    if (step === 1 && answered(ctx, 'step1')) {
      return inputRequired({
        inputRequests: { step2: question('Step 2: What is your favorite color?',
          { color: { type: 'string' } }) },
        requestState: await state.mint({ step: 2 }, ctx),
      });
    }
    if (step === 2 && answered(ctx, 'step2')) return text('Both steps are done.');
    return inputRequired({
      inputRequests: { step1: question('Step 1: What is your name?', name) },
      requestState: await state.mint({ step: 1 }, ctx),
    });
  });
}

function addCapabilityTools(tool, server) {
  const declared = (ctx) => ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities']
    ?? server.server.getClientCapabilities() ?? {};
  tool('test_input_required_result_capabilities', 'Asks only for what the client can do', {},
    (_args, ctx) => {
      if (ctx.mcpReq.inputResponses) return text('Received.');
      const can = declared(ctx);
      const inputRequests = {
        ...(can.elicitation ? { user_name: question('What is your name?', name) } : {}),
        ...(can.sampling ? { greeting: sampling('Generate a greeting') } : {}),
      };
      return Object.keys(inputRequests).length ? inputRequired({ inputRequests }) : text('Nothing to ask.');
    });
  // The SDK refuses to ask for what the client has not declared, with the error that is wanted here.
  tool('test_missing_capability', 'Needs sampling', {}, (_args, ctx) => {
    const words = sampledText(ctx, 'answer');
    return words === undefined
      ? inputRequired({ inputRequests: { answer: sampling('Anything') } })
      : text(`The model says: ${words}`);
  });
}

// ---- Resources and prompts -------------------------------------------------------------------------

function addResources(server) {
  const add = (title, uri, mimeType, body) => server.registerResource(
    title, uri, { title, description: `A ${title} for testing`, mimeType },
    (at) => ({ contents: [{ uri: at.href, mimeType, ...body }] }));
  add('static-text', 'test://static-text', 'text/plain',
    { text: 'This is the content of the static text resource.' });
  add('static-binary', 'test://static-binary', 'image/png', { blob: PIXEL });
  add('watched-resource', 'test://watched-resource', 'text/plain', { text: 'Watched.' });
  server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { title: 'template', description: 'A template for testing', mimeType: 'application/json' },
    (at, { id }) => ({ contents: [{ uri: at.href, mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));
  const watched = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
}

function addPrompts(server) {
  const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
  const say = (words) => ({ type: 'text', text: words });
  server.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments' },
    () => user(say('This is a simple prompt for testing.')));
  const suggest = (value) => ['paris', 'park', 'party', 'test'].filter((word) => word.startsWith(value));
  server.registerPrompt('test_prompt_with_arguments', {
    description: 'A prompt with two arguments',
    argsSchema: z.object({
      arg1: completable(z.string().describe('First test argument'), suggest),
      arg2: completable(z.string().describe('Second test argument'), suggest),
    }),
  }, ({ arg1, arg2 }) => user(say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)));
  server.registerPrompt('test_prompt_with_embedded_resource', {
    description: 'A prompt with a resource in it',
    argsSchema: z.object({ resourceUri: z.string().describe('URI of the resource to embed') }),
  }, ({ resourceUri }) => user(
    { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain',
      text: 'Embedded resource content for testing.' } },
    say('Please process the embedded resource above.')));
  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image in it' },
    () => user({ type: 'image', data: PIXEL, mimeType: 'image/png' },
      say('Please analyze the image above.')));
  server.registerPrompt('test_input_required_result_prompt', { description: 'A prompt that asks back' },
    (ctx) => {
      const given = answered(ctx, 'user_context');
      if (given === undefined) {
        return inputRequired({ inputRequests: { user_context: question(
          'What context should the prompt use?', { context: { type: 'string' } }) } });
      }
      return user(say(`Context: ${given.content?.context ?? 'none'}`));
    });
}

// ---- Serving ----------------------------------------------------------------------------------------

let announce;

function conforming() {
  const server = new McpServer({ name: 'lodestar-conforming', version: '1.0.0' }, {
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
      completions: {},
    },
    instructions: 'Tools, resources and prompts for the conformance suite.',
    requestState: { verify: state.verify },
  });
  const tool = (title, description, { schema = object() }, handler) => server.registerTool(
    title, { description, inputSchema: fromJsonSchema(schema) }, handler);
  const changed = (what, ctx) => {
    if (ctx.http && ctx.mcpReq.envelope) return announce[`${what}Changed`]();
    return what === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged();
  };
  addPlainTools(tool);
  addTalkingTools(tool, changed);
  addElicitingTools(tool);
  addAskingTools(tool);
  addManyRoundTools(tool);
  addCapabilityTools(tool, server);
  addResources(server);
  addPrompts(server);
  return server;
}

/** Keeps what was sent, so that a client that lost its stream gets the rest of it. */
class Events {
  #sent = [];

  async storeEvent(stream, message) {
    return String(this.#sent.push({ stream, message }) - 1);
  }

  async getStreamIdForEventId(event) {
    return this.#sent[Number(event)]?.stream;
  }

  async replayEventsAfter(event, { send }) {
    const stream = this.#sent[Number(event)]?.stream;
    for (const [at, one] of this.#sent.entries()) {
      if (at > Number(event) && one.stream === stream) await send(String(at), one.message);
    }
    return stream;
  }
}

function refuse(response, status, code, message) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}

const sessions = new Map();

function setHeader(request, name, value) {
  request.headers[name] = value;
  const at = request.rawHeaders.findIndex((one, i) => i % 2 === 0 && one.toLowerCase() === name);
  request.rawHeaders[at + 1] = value;
}

/** Clients that open with a handshake get a session each. */
async function withSession(request, response, body) {
  const id = request.headers['mcp-session-id'];
  if (id !== undefined) {
    const known = sessions.get(id);
    if (known === undefined) return refuse(response, 404, -32001, 'Session not found');
    // Version 0.1.16 of the suite names a revision from before streams could be resumed; what its
    // client negotiated counts.
    if (request.headers['mcp-protocol-version']) {
      setHeader(request, 'mcp-protocol-version', known.negotiated);
    }
    return known.transport.handleRequest(request, response, body);
  }
  const negotiated = body?.params?.protocolVersion;
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: 500,
    onsessioninitialized: (session) => sessions.set(session, { transport, negotiated }),
    onsessionclosed: (session) => sessions.delete(session),
  });
  await conforming().connect(transport);
  return transport.handleRequest(request, response, body);
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    return undefined;
  }
}

function serveHttp() {
  const stateless = createMcpHandler(conforming, { legacy: 'reject' });
  announce = stateless.notify;
  const modern = toNodeHandler(stateless);
  const validHost = localhostHostValidation();
  const validOrigin = localhostOriginValidation();
  const server = createServer(async (request, response) => {
    if (!validHost(request, response) || !validOrigin(request, response)) return;
    if (options.token && request.headers.authorization !== `Bearer ${options.token}`) {
      response.setHeader('WWW-Authenticate', 'Bearer');
      refuse(response, 401, -32000, 'A bearer token is needed');
      return;
    }
    const body = request.method === 'POST' ? await bodyOf(request) : undefined;
    if (request.method === 'POST' && body === undefined) {
      refuse(response, 400, -32700, 'Parse error');
    } else if (await isLegacyRequest(await toWebRequest(request, body), body)) {
      await withSession(request, response, body);
    } else {
      await modern(request, response, body);
    }
  });
  server.listen(Number(options.port ?? 0), '127.0.0.1', () => {
    process.stdout.write(`listening on http://127.0.0.1:${server.address().port}/mcp\n`);
  });
}

if (options.http) serveHttp();
else serveStdio(conforming);
