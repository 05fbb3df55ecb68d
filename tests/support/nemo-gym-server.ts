import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A resources server and an agent server as NeMo Gym's are on the wire: signed session cookies that every answer sends
 * anew, replies of the same form, 422 with `detail` for a body that is not as declared, errors of inner servers as a
 * JSON string with status 500. The environments are those of its examples: a counter with tools (`initial_count`,
 * `expected_count`) and, in Gymnasium's style, follow-up questions (`verifier_metadata`).
 */

// biome-ignore lint/suspicious/noExplicitAny: bodies are read as they come, and checked where the real server checks
type Json = any;

/** What goes wrong instead of an answer. */
export interface Fault {
  readonly status?: number;
  /** Sent as it is. */
  readonly body?: string;
  /** No answer at all. */
  readonly hang?: boolean;
  /** The connection breaks after so many bytes of the answer. */
  readonly breakAfter?: number;
}

export interface NemoGymServer {
  readonly url: string;
  readonly requests: readonly { readonly path: string; readonly body: Json; readonly session: string }[];
  /** Looked at for each request; the number counts the requests of that path from 0. */
  fault: (path: string, body: Json, index: number) => Fault | undefined;
  close(): Promise<void>;
}

class Refused extends Error {
  readonly status: number;
  readonly body: unknown;
  constructor(status: number, body: unknown) {
    super(JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}
const invalid = (...loc: string[]) => new Refused(422, { detail: [{ type: 'missing', loc: ['body', ...loc] }] });

interface Session {
  counter?: number;
  turn: number;
  /** The last step, for a server that tells one that is sent again. */
  step?: { readonly id: string; readonly reply: Json };
}

function stepOf(session: Session, { verifier_metadata, response }: Json): Json {
  const { follow_ups: questions = [], expected_answer: expected, outputs } = verifier_metadata;
  const observation = questions[session.turn++];
  const calls = response.output.filter(({ type }: Json) => type === 'function_call');
  const given = outputs && calls.map(({ call_id }: Json) => ({ call_id, output: outputs }));
  const info = given ? { tool_outputs: given } : {};
  if (observation !== undefined) {
    return { observation, reward: 0.25, terminated: false, truncated: false, info };
  }
  const said = JSON.stringify(response.output).toLowerCase().includes(expected);
  return { observation: null, reward: said ? 1 : 0, terminated: true, truncated: false, info };
}

export function resourcesServerForTests(): Promise<NemoGymServer> {
  const sessions = new Map<string, Session>();
  const of = (id: string): Session => {
    const session = sessions.get(id) ?? { turn: 0 };
    sessions.set(id, session);
    return session;
  };
  return serve('StatefulCounterResourcesServer___counter', (path, body, id) => {
    const session = of(id);
    switch (path) {
      case '/seed_session':
        if (!Number.isInteger(body.initial_count)) throw invalid('initial_count');
        session.counter ??= body.initial_count;
        return {};
      case '/increment_counter':
        if (!Number.isInteger(body.count)) throw invalid('count');
        session.counter = (session.counter ?? 0) + body.count;
        return { success: true };
      case '/get_counter_value':
        return { count: session.counter ?? 0 };
      case '/verify':
        checkResponse(body.response);
        if (!Number.isInteger(body.expected_count)) throw invalid('expected_count');
        return { ...body, reward: session.counter === body.expected_count ? 1 : 0 };
      case '/reset':
        session.turn = 0;
        return { observation: body.verifier_metadata.opening ?? null, info: body.verifier_metadata.info ?? {} };
      case '/step': {
        checkResponse(body.response);
        if (body._ng_step_request_id !== undefined && body._ng_step_request_id === session.step?.id) {
          return session.step!.reply;
        }
        const reply = stepOf(session, body);
        session.step = { id: body._ng_step_request_id, reply };
        return reply;
      }
      case '/close':
        sessions.delete(id);
        return {};
      case '/aggregate_metrics': {
        const rewards = body.verify_responses.map(({ reward, response }: Json) => {
          if (response && !response.usage) throw invalid('verify_responses');
          return reward;
        });
        const mean = rewards.reduce((sum: number, reward: number) => sum + reward, 0) / rewards.length;
        const tasks = new Set(body.verify_responses.map((one: Json) => one._ng_task_index));
        return {
          group_level_metrics: [...tasks].map(index => ({ _ng_task_index: index })),
          agent_metrics: { 'mean/reward': mean, tasks: tasks.size, note: 'text' },
          key_metrics: { 'pass@1': mean },
        };
      }
      default:
        throw new Refused(404, { detail: 'Not Found' });
    }
  });
}

/** NeMo Gym's simple agent, whose model server is that at `modelUrl`. */
export function agentServerForTests(options: {
  readonly resources: string;
  readonly model: () => string;
  readonly maxSteps?: () => number | undefined;
  /** What the agent makes of the items that it gives back. */
  readonly returned?: (output: Json[]) => Json[];
}): Promise<NemoGymServer> {
  const { resources, model, maxSteps, returned = items => items } = options;
  const post = async (url: string, body: unknown, cookies: Map<string, string>) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { 'content-type': 'application/json', ...(cookie && { cookie }) };
    const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    for (const header of reply.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(header)!;
      cookies.set(name!, value!);
    }
    return reply;
  };
  const inner = async (url: string, body: unknown, cookies: Map<string, string>): Promise<Json> => {
    const reply = await post(url, body, cookies);
    if (!reply.ok) throw new Refused(500, `Hit an exception in agent calling an inner server: ${await reply.text()}`);
    return reply.json();
  };
  return serve('SimpleAgent___agent', async (path, row) => {
    if (path !== '/run') throw new Refused(404, { detail: 'Not Found' });
    const cookies = new Map<string, string>();
    await inner(`${resources}/seed_session`, row, cookies);
    const params = row.responses_create_params;
    const input = typeof params.input === 'string' ? [{ role: 'user', content: params.input }] : params.input;
    const said: Json[] = [];
    let response: Json;
    for (let step = 1; ; step++) {
      response = await inner(
        `${model()}/v1/responses`,
        { ...params, model: 'x', input: [...input, ...said] },
        new Map(),
      );
      checkResponse(response);
      said.push(...response.output);
      const calls = response.output.filter(({ type }: Json) => type === 'function_call');
      if (response.incomplete_details || calls.length === 0) break;
      for (const { name, call_id, arguments: given } of calls) {
        const reply = await post(`${resources}/${name}`, JSON.parse(given), cookies);
        said.push({ type: 'function_call_output', call_id, output: await reply.text() });
      }
      if (step >= (maxSteps?.() ?? Number.POSITIVE_INFINITY)) break;
    }
    return inner(`${resources}/verify`, { ...row, response: { ...response, output: returned(said) } }, cookies);
  });
}

function checkResponse(response: Json): void {
  const fields = { id: 'string', created_at: 'number', model: 'string', parallel_tool_calls: 'boolean' };
  for (const [name, type] of Object.entries(fields)) {
    if (typeof response?.[name] !== type) throw invalid('response', name);
  }
  if (response.object !== 'response' || response.tool_choice === undefined) throw invalid('response', 'object');
  if (!Array.isArray(response.tools) || !Array.isArray(response.output)) throw invalid('response', 'output');
  for (const item of response.output) {
    const isValid =
      item.type === 'function_call'
        ? [item.call_id, item.name, item.arguments].every(one => typeof one === 'string')
        : item.type === 'function_call_output'
          ? typeof item.call_id === 'string' && typeof item.output === 'string'
          : item.type === 'reasoning'
            ? typeof item.id === 'string' && Array.isArray(item.summary)
            : item.type === 'message'
              ? item.content.every((part: Json) => part.type === 'output_text' && Array.isArray(part.annotations))
              : item.type === undefined && typeof item.role === 'string';
    const bundle = ['prompt_token_ids', 'generation_token_ids', 'generation_log_probs'].filter(name => name in item);
    if (!isValid || (bundle.length !== 0 && bundle.length !== 3)) throw invalid('response', 'output', item.type);
  }
}

async function serve(
  cookieName: string,
  handle: (path: string, body: Json, session: string) => unknown,
): Promise<NemoGymServer> {
  const secret = randomBytes(16);
  const sign = (payload: string) => createHmac('sha1', secret).update(payload).digest('base64url');
  const requests: { path: string; body: Json; session: string }[] = [];
  const counts = new Map<string, number>();
  const sessionOf = ({ headers }: IncomingMessage): string => {
    const found = (headers.cookie ?? '').split('; ').find(one => one.startsWith(`${cookieName}=`));
    const [payload = '', signature] = (found?.slice(cookieName.length + 1) ?? '').split('.');
    if (payload === '' || sign(payload) !== signature) return randomUUID();
    return JSON.parse(Buffer.from(payload, 'base64').toString()).session_id;
  };
  const answer = (response: ServerResponse, status: number, text: string, session: string, fault: Fault = {}) => {
    const payload = Buffer.from(JSON.stringify({ session_id: session })).toString('base64');
    response.writeHead(fault.status ?? status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      'set-cookie': [`${cookieName}=${payload}.${sign(payload)}; path=/; Max-Age=1209600; httponly; samesite=lax`],
    });
    if (fault.breakAfter === undefined) response.end(text);
    else response.write(text.slice(0, fault.breakAfter), () => response.destroy());
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const path = decodeURIComponent(request.url ?? '/');
    const session = sessionOf(request);
    const body: Json = text === '' ? undefined : JSON.parse(text);
    requests.push({ path, body, session });
    const index = counts.get(path) ?? 0;
    counts.set(path, index + 1);
    const fault = made.fault(path, body, index);
    if (fault?.hang) return;
    try {
      const given = fault?.body ?? JSON.stringify(await handle(path, body, session));
      answer(response, 200, given, session, fault);
    } catch (error) {
      if (error instanceof Refused) answer(response, error.status, JSON.stringify(error.body), session);
      else answer(response, 500, JSON.stringify(String(error)), session);
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const made: NemoGymServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fault: () => undefined,
    close: () =>
      new Promise(resolve => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return made;
}
