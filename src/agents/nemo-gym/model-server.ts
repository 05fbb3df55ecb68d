import { hash } from 'node:crypto';
import type { Item, ResponseObject, ResponsesParams } from '../../envs/clients/nemo-gym/contracts.ts';
import { EpisodeError } from '../../episode/failure.ts';
import type { ToolDialect } from '../../text/tool-calls/dialect.ts';
import { ApiError } from '../recorded/api-error.ts';
import { ResponsesStore } from '../recorded/dialects/responses.ts';
import { Recording } from '../recorded/recording.ts';
import type { Session } from '../session.ts';

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
}

/**
 * The policy as the model server of one episode, in this process: a conversation of Responses items in, a Response
 * out, recorded token by token as the recording server does.
 */
export class ModelServer {
  /** All items so far, those of the environment too. */
  readonly said: Item[] = [];
  readonly #session: Session;
  readonly #recording: Recording;
  readonly #dialect = new ResponsesStore().dialect;
  readonly #usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  #last: ResponseObject | undefined;
  #turns = 0;

  constructor(session: Session, dialect: ToolDialect | undefined) {
    this.#session = session;
    this.#recording = new Recording(session, dialect);
  }

  /**
   * Answers the row's input, what came before it and what was said since. Undefined when there is no room for a further
   * answer. @throws EpisodeError for a row that cannot be asked, and for a policy that fails
   */
  async answer(params: ResponsesParams, observed: readonly Item[] = []): Promise<ResponseObject | undefined> {
    const session = this.#session;
    const { input } = params;
    const first = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const body = { ...params, model: 'policy', stream: false, input: [...first, ...observed, ...this.said] };
    // The same in every run of one seed, since verifiers are given it.
    const id = `resp_${hash('sha256', `${session.context.id} ${this.#turns++}`).slice(0, 24)}`;
    try {
      const request = this.#dialect.parse(body);
      const asked = { request, id, digest: id, isRetry: false, signal: session.signal };
      const { reply, delivered } = await this.#recording.answer(asked);
      delivered();
      this.#last = this.#dialect.body(request, reply) as ResponseObject;
    } catch (error) {
      session.signal.throwIfAborted();
      if (this.#recording.providerError !== undefined) throw this.#recording.providerError;
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== 'context_length_exceeded') {
        throw new EpisodeError('environment', `row: ${error.message}`, { cause: error });
      }
      if (session.recorder.steps.length > 0) return undefined;
      throw new EpisodeError('overflow', error.message, { cause: error });
    }
    const usage = this.#last.usage as Usage;
    for (const name of ['input_tokens', 'output_tokens', 'total_tokens'] as const) this.#usage[name] += usage[name];
    this.said.push(...this.#last.output);
    return this.#last;
  }

  /** The whole episode as one Response, as agents of NeMo Gym give it to the verifier: usage is the sum over turns. */
  get response(): ResponseObject {
    const { usage, ...last } = this.#last!;
    return { ...last, output: this.said, usage: { ...(usage as object), ...this.#usage } };
  }

  /** Finishes what was recorded. */
  settle(): void {
    this.#recording.settle();
  }
}
