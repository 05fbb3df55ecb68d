import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyModel } from '../../../tests/support/workplace.ts';
import { likelihoodLoss } from '../../algorithms/losses/likelihood.ts';
import { samplerSuite } from '../../testing/sampler-suite.ts';
import { DEFAULT_SAMPLING, type GenerateRequest, type PolicyEngine } from '../contracts.ts';
import { type OnnxEngine, onnxPolicy } from './index.ts';

/** Sampler and learner in threads of their own. */

let root: string;
let policy: PolicyEngine;
let initial: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'tokenloop-separate-'));
  await writeTinyModel(join(root, 'model'));
  policy = await onnxPolicy({ model: join(root, 'model'), threads: 2, separate: {} });
  initial = join(root, 'initial');
  await policy.learner.save(initial);
});
afterAll(async () => {
  await policy.close();
  rmSync(root, { recursive: true });
});

const batch = {
  temperature: 1,
  sequences: [{ tokens: Int32Array.of(1, 2, 3), predict: Uint8Array.of(0, 1, 1) }],
  inputs: { weights: [Float32Array.of(0.5, 0.5)] },
};
const request = (rest: Partial<GenerateRequest> = {}): GenerateRequest => ({
  tokens: Int32Array.of(1, 2, 3),
  params: { ...DEFAULT_SAMPLING, maxTokens: 8 },
  seed: 1,
  key: 'a',
  ...rest,
});

async function learn() {
  await policy.learner.forwardBackward(batch, likelihoodLoss());
  await policy.learner.optimizerStep({ lr: 0.05 });
}

describe('as a sampler', () => {
  const checks = samplerSuite({
    make: async () => {
      await policy.learner.load(initial);
      await policy.sampler.publish(policy.learner);
      return policy;
    },
    vocabularySize: 28,
  });
  for (const { name, run, skip } of checks) it.skipIf(skip !== undefined)(name, run);
});

it('serves new weights when they are published, and not before', async () => {
  await policy.learner.load(initial);
  await policy.sampler.publish(policy.learner);
  const before = await policy.sampler.generate(request());
  await learn();
  expect(await policy.sampler.generate(request())).toEqual(before);
  expect([policy.sampler.version, policy.learner.version]).toEqual([0, 1]);
  await policy.sampler.publish(policy.learner);
  const after = await policy.sampler.generate(request());
  expect(after.logprobs).not.toEqual(before.logprobs);
  expect([...new Set(after.versions)]).toEqual([1]);
  expect(await (policy.sampler as OnnxEngine).weights()).toEqual(await (policy.learner as OnnxEngine).weights());
});

it('changes weights under an answer that is under way, between two of its tokens', async () => {
  await policy.learner.load(initial);
  await policy.sampler.publish(policy.learner);
  const { sampler } = policy;
  const undisturbed = await sampler.generate(request({ params: { ...DEFAULT_SAMPLING, maxTokens: 60 } }));
  let seen = 0;
  let paused: Promise<void> | undefined;
  const answer = sampler.generate(
    request({
      params: { ...DEFAULT_SAMPLING, maxTokens: 60 },
      onToken: () => {
        seen += 1;
        if (seen === 3) paused = sampler.pause({ mode: 'keep' });
      },
    }),
  );
  while (paused === undefined) await new Promise(resolve => setImmediate(resolve));
  await paused;
  const kept = seen;
  await learn();
  await sampler.publish(policy.learner);
  await sampler.resume();
  const { tokens, versions } = await answer;
  expect(tokens.length).toBe(60);
  expect([...versions]).toEqual([...new Array(kept).fill(0), ...new Array(60 - kept).fill(1)]);
  expect(tokens.subarray(0, kept)).toEqual(undisturbed.tokens.subarray(0, kept));
});

it('splits the threads', async () => {
  expect(policy.colocated).toBe(false);
  const model = join(root, 'model');
  const together = await onnxPolicy({ model, threads: 1 });
  expect([together.colocated, together.sampler === (together.learner as unknown)]).toEqual([true, true]);
  await together.close();
});
