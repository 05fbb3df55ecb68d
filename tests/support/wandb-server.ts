import { type JsonRequest, type JsonServer, jsonServer, Refusal } from './json-server.ts';

export interface WandbRun {
  readonly variables: Record<string, unknown>;
  readonly config: Record<string, { readonly value: unknown }>;
  /** Lines of wandb-history.jsonl. */
  readonly history: string[];
  summary: string;
  exitCode: number | undefined;
  heartbeats: number;
}

export interface WandbServer extends JsonServer {
  /** By id. */
  readonly runs: ReadonlyMap<string, WandbRun>;
}

const FILES = ['wandb-history.jsonl', 'wandb-summary.json', 'wandb-events.jsonl', 'output.log'];

/**
 * What W&B's server does for a run, as its open client expects it: tools/trackers/wandb.ts lets that client run against it.
 * A request that the client would not send is a fault.
 */
export async function wandbServer(apiKey: string): Promise<WandbServer> {
  const runs = new Map<string, WandbRun>();
  const expected = `Basic ${Buffer.from(`api:${apiKey}`).toString('base64')}`;

  const graphql = (query: string, variables: Record<string, unknown>, host: string): unknown => {
    for (const name of Object.keys(variables)) {
      if (!query.includes(`$${name}`)) throw new Refusal(400, `unknown variable ${name}`);
    }
    if (query.includes('upsertBucket(')) {
      const { name, project, entity } = variables as Record<string, string | null>;
      if (!name || !project) throw new Refusal(400, 'name and project are needed');
      const config = JSON.parse(String(variables.config ?? '{}'));
      for (const [key, item] of Object.entries(config)) {
        if (!Object.hasOwn(item as object, 'value')) throw new Refusal(400, `config ${key} has no value`);
      }
      const inserted = !runs.has(name);
      const fresh = { variables, config, history: [], summary: '', exitCode: undefined, heartbeats: 0 };
      if (inserted) runs.set(name, fresh);
      const place = { id: 'p', name: project, entity: { id: 'e', name: entity ?? 'me' } };
      return { upsertBucket: { bucket: { id: 'b', name, displayName: name, project: place }, inserted } };
    }
    if (query.includes('historyTail')) {
      const run = runs.get(String(variables.name));
      const tail = run && JSON.stringify(run.history.slice(-1));
      return { model: { bucket: run ? { historyLineCount: run.history.length, historyTail: tail } : null } };
    }
    if (query.includes('createRunFiles')) {
      const files = (variables.files as string[]).map(name => ({ name, uploadUrl: `http://${host}/upload/${name}` }));
      return { createRunFiles: { runID: 'b', uploadHeaders: [], files } };
    }
    if (query.includes('serverInfo')) return { serverInfo: { features: [] } };
    if (query.includes('viewer')) return { viewer: { id: 'u', entity: 'me', flags: '{}', teams: { edges: [] } } };
    throw new Refusal(400, `unknown operation: ${query.slice(0, 60)}`);
  };

  const stream = (run: WandbRun, body: JsonRequest['body']) => {
    if (Object.keys(body).length === 0) run.heartbeats += 1;
    for (const [name, { offset, content }] of Object.entries<{ offset: number; content: string[] }>(body.files ?? {})) {
      if (!FILES.includes(name)) throw new Refusal(400, `unknown file ${name}`);
      if (!content.every(line => typeof line === 'string')) throw new Refusal(400, `${name}: lines are strings`);
      if (name === 'wandb-summary.json') run.summary = content.at(-1) ?? '';
      if (name !== 'wandb-history.jsonl') continue;
      if (offset > run.history.length) throw new Refusal(400, `a gap before line ${offset}`);
      run.history.splice(offset, content.length, ...content);
    }
    const steps = run.history.map(line => Number(/"_step":(\d+)/.exec(line)?.[1]));
    if (steps.some((step, i) => i > 0 && !(step > steps[i - 1]!))) throw new Refusal(400, `steps ${steps}`);
    if (body.complete) run.exitCode = body.exitcode;
    return {};
  };

  const server = await jsonServer(({ method, path, headers, body }) => {
    if (path.startsWith('/sdk/otel') || path.startsWith('/upload/')) return {};
    if (headers.authorization !== expected) throw new Refusal(401, `not the key: ${headers.authorization}`);
    if (method !== 'POST') throw new Refusal(405, 'POST only');
    if (path === '/graphql') return { data: graphql(body.query, body.variables ?? {}, headers.host ?? '') };
    const [, entity, project, name] = /^\/files\/([^/]+)\/([^/]+)\/([^/]+)\/file_stream$/.exec(path) ?? [];
    const run = runs.get(name ?? '');
    if (!run || !entity || run.variables.project !== project) throw new Refusal(404, `no run ${path}`);
    return stream(run, body);
  });
  return { ...server, runs };
}
