import { expect, it } from 'vitest';
import { PromptUse } from './prompt-use.ts';

it('tells what became of prompts since it was asked last', async () => {
  let statistics = { promptTokens: 40, cachedTokens: 10, evictions: 2 };
  const use = new PromptUse({ statistics: async () => statistics });
  expect(await use.take()).toEqual({
    'rollout/prompt_tokens': 40,
    'rollout/prefix_hit_rate': 0.25,
    'rollout/prefix_evictions': 2,
  });
  statistics = { promptTokens: 50, cachedTokens: 15, evictions: 2 };
  expect(await use.take()).toMatchObject({ 'rollout/prompt_tokens': 10, 'rollout/prefix_hit_rate': 0.5 });
  expect(await use.take()).toEqual({ 'rollout/prompt_tokens': 0, 'rollout/prefix_evictions': 0 });
  expect(await new PromptUse({}).take()).toEqual({});
});
