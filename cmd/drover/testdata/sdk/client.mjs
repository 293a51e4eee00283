// A strict editor on the official TypeScript SDK of the Agent Client Protocol.
//
//   DROVER_ACP_SDK=DIR SCENARIO=JSON node client.mjs AGENT [ARGUMENT...]
//
// DIR holds node_modules with the SDK. The scenario is
//
//   {"permission": KIND, "steps": [STEP...]}
//
// and KIND the kind of the option with which requests for permission are
// answered; without it nobody may ask. The steps are taken one after the other:
//
//   {"do": "initialize"}
//   {"do": "new", "as": NAME, "cwd": DIR}
//   {"do": "load", "as": NAME, "id": ID, "cwd": DIR}
//   {"do": "set", "in": NAME, "option": ID, "value": VALUE}
//   {"do": "set", "in": NAME, "option": ID, "group": GROUP, "label": LABEL}
//       the second takes the value that is shown as LABEL in GROUP
//   {"do": "prompt", "in": NAME, "text": TEXT}
//   {"do": "prompt", "in": NAME, "text": TEXT, "at": PIECE, "then": "cancel" or "leave"}
//       the second cancels, or goes on without the answer, as soon as an update
//       whose JSON has the piece has arrived
//   {"do": "together", "steps": [STEP...]}
//
// Each has a "name", which its facts have too. One with "fails": true wants an
// error. At the end the agent's input is closed and it has to end.
//
// Every line of the output is one fact, as JSON, in the order of the wire:
// answer, error, update, permission, cancel, exit, and problem for whatever is
// not as it must be. With a problem the status is 1. The SDK itself is lenient:
// it takes what is wrong for missing, checks no answers, and writes of a bad
// notification to the console alone. So each message is also run through the
// schemas of the SDK here, and a message of which they drop or change anything
// is a problem; so is everything the SDK writes to the console or refuses.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const stepLimit = 60_000; // ms
const exitLimit = 30_000; // ms

const found = createRequire(pathToFileURL(process.env.DROVER_ACP_SDK + '/')).resolve('@agentclientprotocol/sdk');
const acp = await import(pathToFileURL(found));
const schemas = await import(new URL('../schema/zod.gen.js', pathToFileURL(found)));

let failed = false;
const fact = (kind, members) => process.stdout.write(JSON.stringify({ fact: kind, ...members }) + '\n');
const problem = (text, about) => {
  failed = true;
  fact('problem', { text, about });
};
console.error = console.warn = (...words) => problem('the SDK complains', words);
const since = (start) => performance.now() - start;

// What the agent may send, and what it is checked against.
const answers = {
  [acp.methods.agent.initialize]: schemas.zInitializeResponse,
  [acp.methods.agent.session.new]: schemas.zNewSessionResponse,
  [acp.methods.agent.session.load]: schemas.zLoadSessionResponse,
  [acp.methods.agent.session.setConfigOption]: schemas.zSetSessionConfigOptionResponse,
  [acp.methods.agent.session.prompt]: schemas.zPromptResponse,
};
const requests = { [acp.methods.client.session.requestPermission]: schemas.zRequestPermissionRequest };
const notifications = {
  [acp.methods.client.session.update]: schemas.zSessionNotification,
  [acp.methods.protocol.cancelRequest]: schemas.zCancelRequestNotification,
};

// lost names the first place in raw that is not the same in parsed.
function lost(raw, parsed, place) {
  if (typeof raw !== 'object' || raw === null) return Object.is(raw, parsed) ? null : place;
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(raw) !== Array.isArray(parsed)) return place;
  if (Array.isArray(raw) && raw.length !== parsed.length) return place;
  for (const key of Object.keys(raw)) {
    const where = Object.hasOwn(parsed, key) ? lost(raw[key], parsed[key], `${place}.${key}`) : `${place}.${key}`;
    if (where) return where;
  }
  return null;
}

function check(schema, value, what) {
  if (!schema) return problem(`${what} was not expected`, value);
  const result = schema.safeParse(value);
  if (!result.success) return problem(`${what} is not valid`, { issues: result.error.issues, value });
  const where = lost(value, result.data, what);
  if (where) problem(`the SDK does not know, or changes, ${where}`, value);
}

const sessions = new Map(); // by name: {id, options}
const waiting = new Map(); // requests to the agent, by id: {method, params}
const busy = new Map(); // by session id: the name of the step that runs in it
const watched = new Map(); // by session id: what an update is waited for
let seen = 0; // updates on the wire
let delivered = 0; // updates that the SDK has handed over
const announced = new Set(); // tool calls

function sawMessage(m) {
  const members = Object.keys(m).filter((k) => !['jsonrpc', 'id', 'method', 'params', 'result', 'error'].includes(k));
  if (m.jsonrpc !== '2.0' || members.length) problem('not a message', m);
  if (m.method === undefined) return sawAnswer(m);
  if (m.id !== undefined) {
    check(requests[m.method], m.params, m.method);
    if (m.method === acp.methods.client.session.requestPermission) sawQuestion(m.params);
    return;
  }
  check(notifications[m.method], m.params, m.method);
  if (m.method === acp.methods.client.session.update) sawUpdate(m.params);
}

function sawAnswer(m) {
  const request = waiting.get(m.id);
  if (!request) return problem('an answer to nothing', m);
  waiting.delete(m.id);
  if (m.error) {
    const { code, message, ...more } = m.error;
    if (!Number.isInteger(code) || typeof message !== 'string' || !message) problem('not an error', m.error);
    if (typeof more.data?.code !== 'string' || more.data.details !== message) problem('an error without its data', m.error);
  } else {
    check(answers[request.method], m.result, request.method);
  }
  busy.delete(request.params?.sessionId);
}

function sawUpdate({ sessionId, update }) {
  seen++;
  const step = busy.get(sessionId);
  fact('update', { step, session: sessionId, update });
  if (step === undefined && /_chunk$|^tool_call|^plan$/.test(update.sessionUpdate)) problem('an update of nothing that runs', update);
  if (update.sessionUpdate === 'tool_call') {
    if (announced.has(update.toolCallId)) problem('a tool call for the second time', update);
    announced.add(update.toolCallId);
  }
  if (update.sessionUpdate === 'tool_call_update' && !announced.has(update.toolCallId)) problem('an update of an unknown tool call', update);
  const watch = watched.get(sessionId);
  if (watch && JSON.stringify(update).includes(watch.piece)) {
    watched.delete(sessionId);
    watch.arrived();
  }
}

function sawQuestion({ sessionId, toolCall, options }) {
  fact('permission', { step: busy.get(sessionId), session: sessionId, toolCall, options });
  if (!announced.has(toolCall.toolCallId)) problem('permission for an unknown tool call', toolCall);
}

const scenario = JSON.parse(process.env.SCENARIO);
const child = spawn(process.argv[2], process.argv.slice(3), { stdio: 'pipe' });
const ended = new Promise((resolve) => {
  child.on('exit', (code, signal) => resolve({ code, signal }));
  child.on('error', (err) => resolve({ code: null, signal: String(err) }));
});
const closed = new Promise((resolve) => child.on('close', resolve));
let complaints = '';
child.stderr.setEncoding('utf8').on('data', (text) => (complaints += text));
child.stdin.on('error', () => {}); // the agent has ended, which is told elsewhere

const wire = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const received = new TransformStream({
  transform(message, out) {
    sawMessage(message);
    out.enqueue(message);
  },
});
const sent = new TransformStream({
  transform(message, out) {
    if (message.error) problem('the SDK refuses a message', message.error);
    if (message.method !== undefined && message.id !== undefined) waiting.set(message.id, message);
    out.enqueue(message);
  },
});
sent.readable.pipeTo(wire.writable).catch(() => {}); // as above

const connection = acp
  .client({ name: 'drover-test' })
  .onNotification(acp.methods.client.session.update, () => void delivered++)
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const option = params.options.find((o) => o.kind === scenario.permission);
    if (option) return { outcome: { outcome: 'selected', optionId: option.optionId } };
    problem(`nothing to answer: ${scenario.permission ?? 'nobody may ask'}`, params);
    return { outcome: { outcome: 'cancelled' } };
  })
  .connect({ readable: wire.readable.pipeThrough(received), writable: sent.writable });
const agent = connection.agent;

// ask sends a request and tells what came of it.
async function ask(step, method, params) {
  if (params.sessionId) busy.set(params.sessionId, step.name);
  const about = { step: step.name, method };
  const start = performance.now();
  try {
    const result = await agent.request(method, params);
    fact('answer', { ...about, ms: since(start), result });
    if (step.fails) problem('a step that must fail does not', step);
    return result;
  } catch (err) {
    if (!(err instanceof acp.RequestError)) throw err;
    const error = { code: err.code, message: err.message, data: err.data };
    fact('error', { ...about, ms: since(start), error });
    if (!step.fails) problem('a step fails', error);
  }
}

const sessionOf = (step) => {
  const session = sessions.get(step.in);
  if (!session) throw new Error(`no session ${step.in}`);
  return session;
};

// valueOf finds a value as a person does: by what is shown of it.
function valueOf(step, options) {
  if (step.value !== undefined) return step.value;
  const group = options.find((o) => o.id === step.option)?.options.find((g) => g.group === step.group);
  const value = group?.options.find((v) => v.name === step.label);
  if (!value) throw new Error(`the option ${step.option} has no ${step.label} in ${step.group}`);
  return value.value;
}

const take = {
  initialize: (step) =>
    ask(step, acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
      clientInfo: { name: 'drover-test', version: '1' },
    }),
  async new(step) {
    const answer = await ask(step, acp.methods.agent.session.new, { cwd: step.cwd, mcpServers: [] });
    if (answer) sessions.set(step.as, { id: answer.sessionId, options: answer.configOptions });
  },
  async load(step) {
    const answer = await ask(step, acp.methods.agent.session.load, { sessionId: step.id, cwd: step.cwd, mcpServers: [] });
    if (answer) sessions.set(step.as, { id: step.id, options: answer.configOptions });
  },
  async set(step) {
    const session = sessionOf(step);
    const value = valueOf(step, session.options);
    const answer = await ask(step, acp.methods.agent.session.setConfigOption, { sessionId: session.id, configId: step.option, value });
    if (answer) session.options = answer.configOptions;
  },
  async prompt(step) {
    const { id } = sessionOf(step);
    const arrived = new Promise((resolve) => step.at && watched.set(id, { piece: step.at, arrived: resolve }));
    const answered = ask(step, acp.methods.agent.session.prompt, { sessionId: id, prompt: [{ type: 'text', text: step.text }] });
    if (step.then === 'leave') answered.catch(() => {}); // the connection ends first
    if (step.at && (await Promise.race([arrived.then(() => true), answered]) !== true)) return problem('an answer too early', step);
    if (step.then === 'leave') return;
    if (step.then === 'cancel') {
      const start = performance.now();
      await agent.notify(acp.methods.agent.session.cancel, { sessionId: id });
      await answered;
      fact('cancel', { step: step.name, ms: since(start) });
    }
    await answered;
  },
  together: (step) => Promise.all(step.steps.map((s) => run(s))),
};

async function run(step) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`step ${step.name} takes too long`)), stepLimit);
  });
  try {
    await Promise.race([take[step.do](step), late]);
  } finally {
    clearTimeout(timer);
  }
}

try {
  for (const step of scenario.steps) await run(step);
} catch (err) {
  problem('the scenario stops', String(err?.stack ?? err));
}

// The updates that follow an answer are worked off by the SDK a little later.
const start = performance.now();
child.stdin.end();
const killer = setTimeout(() => {
  problem('the agent does not end');
  child.kill('SIGKILL');
}, exitLimit);
const status = await ended;
fact('exit', { ms: since(start), ...status });
clearTimeout(killer);
const holder = setTimeout(() => {
  problem('the agent has ended, and something holds its streams open');
  process.exit(1);
}, exitLimit);
await closed;
clearTimeout(holder);
await connection.closed;
if (status.code !== 0) problem('the agent ends with a failure', status);
if (complaints) problem('the agent writes to stderr', complaints);
if (delivered !== seen) problem(`${seen} updates have arrived, and ${delivered} of them are good enough for the SDK`);
process.exit(failed ? 1 : 0);
