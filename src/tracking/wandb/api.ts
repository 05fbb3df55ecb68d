import { z } from 'zod';
import { requestJson } from '../http.ts';

/**
 * The part of the Weights & Biases HTTP interface that a run needs: two GraphQL operations and the stream of the run's
 * files. Source: the open client, https://github.com/wandb/wandb (core/api/graphql, core/internal/filestream).
 */
export interface WandbApi {
  upsertRun(run: UpsertRun, signal: AbortSignal): Promise<RunPlace>;
  /** Where a run that exists already stands; undefined when there is none. */
  resumeStatus(run: ResumedRun, signal: AbortSignal): Promise<ResumeStatus | undefined>;
  stream(place: RunPlace, chunk: StreamChunk, signal: AbortSignal): Promise<void>;
}

interface UpsertRun {
  /** Id of the run inside its project. */
  readonly name: string;
  readonly project: string;
  readonly entity: string | undefined;
  readonly groupName: string | undefined;
  readonly displayName: string | undefined;
  /** JSON of name → { value }. */
  readonly config: string | undefined;
}

type ResumedRun = Pick<UpsertRun, 'name' | 'project' | 'entity'>;

export interface RunPlace {
  readonly entity: string;
  readonly project: string;
  readonly name: string;
}

export interface ResumeStatus {
  /** Lines of history that the server has. */
  readonly lines: number;
  /** Step of the last of them; −1 when there is none. */
  readonly lastStep: number;
}

/** Lines of the run's files, each from `offset` on: sent again they replace themselves. */
export interface StreamChunk {
  readonly files?: Readonly<Record<string, { readonly offset: number; readonly content: readonly string[] }>>;
  readonly complete?: boolean;
  readonly exitcode?: number;
}

const UPSERT = `mutation UpsertBucket($name: String, $project: String, $entity: String, $groupName: String,
  $displayName: String, $config: JSONString) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, groupName: $groupName,
    displayName: $displayName, config: $config}) {
    bucket { name project { name entity { name } } }
    inserted
  }
}`;

const RESUME = `query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name, missingOk: true) { historyLineCount historyTail }
  }
}`;

const Upserted = z.object({
  upsertBucket: z.object({
    bucket: z.object({
      name: z.string(),
      project: z.object({ name: z.string(), entity: z.object({ name: z.string() }) }),
    }),
  }),
});
const Resumed = z.object({
  model: z
    .object({
      bucket: z.object({ historyLineCount: z.number().nullish(), historyTail: z.string().nullish() }).nullish(),
    })
    .nullish(),
});
const Answer = z.object({ data: z.unknown(), errors: z.array(z.object({ message: z.string() })).nullish() });

export function wandbApi({ baseUrl, apiKey }: { readonly baseUrl: string; readonly apiKey: string }): WandbApi {
  const root = baseUrl.replace(/\/+$/, '');
  const authorization = `Basic ${Buffer.from(`api:${apiKey}`).toString('base64')}`;
  const request = {
    headers: { authorization, 'user-agent': 'tokenloop' },
    secrets: [apiKey, `api:${apiKey}`],
  };
  const ask = async (query: string, variables: object, signal: AbortSignal): Promise<unknown> => {
    const answer = Answer.parse(
      await requestJson(`${root}/graphql`, { ...request, body: { query, variables }, signal }),
    );
    if (!answer.errors?.length) return answer.data;
    throw new Error(`W&B answered: ${answer.errors.map(({ message }) => message).join('; ')}`);
  };
  return {
    async upsertRun(run, signal) {
      const { bucket } = Upserted.parse(await ask(UPSERT, run, signal)).upsertBucket;
      return { entity: bucket.project.entity.name, project: bucket.project.name, name: bucket.name };
    },
    async resumeStatus(run, signal) {
      const bucket = Resumed.parse(await ask(RESUME, run, signal)).model?.bucket;
      return bucket ? { lines: bucket.historyLineCount ?? 0, lastStep: lastStep(bucket.historyTail) } : undefined;
    },
    async stream({ entity, project, name }, chunk, signal) {
      const path = ['files', entity, project, name, 'file_stream'].map(encodeURIComponent).join('/');
      await requestJson(`${root}/${path}`, { ...request, body: chunk, signal });
    },
  };
}

/** `historyTail` is a JSON array of the last lines, each JSON itself (in which NaN may stand). */
function lastStep(tail: string | null | undefined): number {
  const lines = z.array(z.string()).parse(JSON.parse(tail || '[]'));
  const step = /"_step":\s*(\d+)/.exec(lines.at(-1) ?? '')?.[1];
  return step === undefined ? -1 : Number(step);
}
