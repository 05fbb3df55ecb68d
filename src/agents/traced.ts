import { type Episode, episodeReward } from '../episode/episode.ts';
import type { Span, Tracing } from '../episode/span.ts';
import type { Executor, Policy } from './contracts.ts';

/**
 * The agent, with a trace of each episode: a span of the episode, and below it one for each answer of the policy and for
 * each call to environment, tool or reward. An agent that is not wrapped is not slowed down. Names are those of the
 * semantic conventions for generative AI, https://opentelemetry.io/docs/specs/semconv/gen-ai/ (in development), where
 * they have one, and `tokenloop.*` elsewhere. Prompts and answers are not recorded.
 */
export function traced(agent: Executor, tracing: Tracing): Executor {
  return {
    name: agent.name,
    ...(agent.single && { single: traced(agent.single, tracing) }),
    ...(agent.summarize && { summarize: (groups, signal) => agent.summarize!(groups, signal) }),
    ...(agent.close && { close: () => agent.close!() }),
    run: (task, context) => {
      const attributes = {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': agent.name,
        'tokenloop.episode.id': context.id,
        'tokenloop.group': context.group,
        'tokenloop.sample': context.sample,
        'tokenloop.task.id': task.id,
        'tokenloop.task.source': task.source,
      };
      return tracing.within(`invoke_agent ${agent.name}`, attributes, async span => {
        const episode = await agent.run(task, { ...context, span, policy: tracedPolicy(context.policy, span) });
        describe(episode, span);
        return episode;
      });
    },
  };
}

function describe(episode: Episode, span: Span): void {
  const { outcome, steps, score } = episode;
  const reward = episodeReward(episode);
  span.set({
    'tokenloop.outcome': outcome.kind,
    'tokenloop.turns': steps.length,
    'tokenloop.reward': reward,
    'tokenloop.score': score,
  });
  if (outcome.kind === 'failed') span.fail(outcome.failure, outcome.message);
}

function tracedPolicy(policy: Policy, episode: Span): Policy {
  return {
    contextLength: policy.contextLength,
    params: policy.params,
    generate: request => {
      const { maxTokens, temperature, topP, topK } = { ...policy.params, ...request.params };
      const attributes = {
        'gen_ai.operation.name': 'text_completion',
        'gen_ai.request.max_tokens': maxTokens,
        'gen_ai.request.temperature': temperature,
        'gen_ai.request.top_p': topP,
        'gen_ai.request.top_k': topK > 0 ? topK : undefined,
      };
      return episode.within('text_completion', attributes, async span => {
        const generation = await policy.generate(request);
        span.set({
          'gen_ai.usage.input_tokens': request.tokens.length,
          'gen_ai.usage.output_tokens': generation.tokens.length,
          'gen_ai.response.finish_reasons': [generation.finishReason],
          'tokenloop.version': generation.versions.at(-1),
        });
        return generation;
      });
    },
  };
}
