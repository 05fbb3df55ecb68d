import type { EpisodeLimits, ExecutorContext } from '../agents/contracts.ts';
import { DEFAULT_SAMPLING, type GenerateRequest, type SamplingParams } from '../engines/contracts.ts';
import type { Renderer } from '../text/renderer.ts';
import { byteRenderer } from './byte-tokenizer.ts';
import { type ScriptedSampler, type ScriptedSamplerOptions, scriptedSampler } from './scripted-sampler.ts';

export interface TestContextOptions extends Partial<Omit<ScriptedSamplerOptions, 'codec'>> {
  readonly limits?: Partial<EpisodeLimits>;
  readonly params?: Partial<SamplingParams>;
  /** The byte renderer by default. */
  readonly renderer?: Renderer;
  readonly signal?: AbortSignal;
  readonly environmentSeed?: number;
  readonly sample?: number;
}

export interface TestContext extends ExecutorContext {
  readonly sampler: ScriptedSampler;
  /** What was passed to `log`. */
  readonly logged: readonly string[];
}

/** What an executor runs in, with a scripted sampler as the policy: to test executors and agents without a model. */
export function testContext(options: TestContextOptions = {}): TestContext {
  const { limits, params: given, renderer = byteRenderer(), signal, environmentSeed = 1, sample = 0 } = options;
  const sampler = scriptedSampler({ answers: () => '', ...options, codec: renderer });
  const params: SamplingParams = { ...DEFAULT_SAMPLING, stopTokens: renderer.stopTokens, maxTokens: 64, ...given };
  const abort = signal ?? new AbortController().signal;
  const logged: string[] = [];
  let calls = 0;
  return {
    id: `episode-${sample}`,
    group: 'group',
    sample,
    policy: {
      contextLength: sampler.contextLength,
      params,
      generate: request =>
        sampler.generate({
          ...request,
          params: { ...params, ...request.params },
          seed: calls,
          key: `${sample}/${calls++}`,
          signal: request.signal === undefined ? abort : AbortSignal.any([abort, request.signal]),
        } as GenerateRequest),
    },
    renderer,
    limits: { maxTurns: 8, maxNewTokens: 64, maxTokens: 4096, callTimeoutMs: 1000, ...limits },
    environmentSeed,
    signal: abort,
    log: message => {
      logged.push(message);
    },
    sampler,
    logged,
  };
}
