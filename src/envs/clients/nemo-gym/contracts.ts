/** What NeMo Gym's servers are to an agent. Field names are those on the wire. */

/** One item of a conversation in the form of OpenAI's Responses: a message, a call, its output, reasoning. */
export type Item = Readonly<Record<string, unknown>>;

export interface ResponsesParams {
  readonly input: string | readonly Item[];
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly [field: string]: unknown;
}

/** A dataset row: what the policy is asked, and beside it what the verifier needs. */
export interface NemoGymRow {
  readonly responses_create_params: ResponsesParams;
  readonly [field: string]: unknown;
}

/** The answers of an episode, or one of them. */
export interface ResponseObject {
  readonly output: readonly Item[];
  readonly [field: string]: unknown;
}

/** What `/verify` and `/run` say. The rest of it is what the server keeps of the row. */
export interface Verdict {
  readonly reward: number;
  readonly reward_components?: Readonly<Record<string, number>> | undefined;
  readonly response?: ResponseObject | undefined;
  readonly [field: string]: unknown;
}

export interface Observed {
  readonly observation: string | null;
  readonly info: Readonly<Record<string, unknown>>;
}

export interface Stepped extends Observed {
  readonly reward: number;
  readonly terminated: boolean;
  readonly truncated: boolean;
  /** Results of the calls that the answer made. */
  readonly toolOutputs: readonly { readonly call_id: string; readonly output: string }[];
}

/** One rollout with a resources server: its cookies are its own. Nothing is sent once `signal` has aborted. */
export interface ResourcesSession {
  seed(row: NemoGymRow): Promise<void>;
  /** What the tool says, whatever its status: that is for the policy to read. */
  call(tool: string, args: unknown): Promise<{ readonly status: number; readonly text: string }>;
  verify(row: NemoGymRow, response: ResponseObject): Promise<Verdict>;
  reset(row: NemoGymRow): Promise<Observed>;
  step(row: NemoGymRow, response: ResponseObject): Promise<Stepped>;
  /** Frees the session where the server has said that it can be freed. */
  close(): Promise<void>;
}

export interface Aggregating {
  /** Numbers by name of what was verified: one object for each rollout, `_ng_task_index` and `_ng_rollout_index` in it. */
  aggregateMetrics(verified: readonly Item[], signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
}

export interface ResourcesServer extends Aggregating {
  session(signal: AbortSignal): ResourcesSession;
}

/** A server that plays whole episodes; the policy it asks is whatever its own configuration says. */
export interface AgentServer extends Aggregating {
  run(row: NemoGymRow, signal: AbortSignal): Promise<Verdict>;
}
