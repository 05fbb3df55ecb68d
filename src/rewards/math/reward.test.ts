import { afterAll, describe, expect, it } from 'vitest';
import type { RewardInput } from '../contracts.ts';
import { checkRewardOptions, chooseReward } from '../registry.ts';
import { mathReward } from './reward.ts';

const input = (text: string, label: string, signal = new AbortController().signal): RewardInput => ({
  task: { id: 't', prompt: 'p', label, metadata: {} },
  prompt: 'p',
  text,
  query: `p${text}`,
  label,
  episode: { id: 'e', group: 'g', sample: 0, segments: [], steps: [] },
  signal,
});

describe('mathReward', () => {
  const reward = mathReward();
  afterAll(() => reward.close());

  it('scores a batch in its order', async () => {
    const batch = [input('so \\boxed{\\frac12}', '0.5'), input('I do not know', '1'), input('#### 1,000', '999')];
    expect(await reward(batch)).toEqual([
      { reward: 1, metrics: { answered: 1, correct: 1, timed_out: 0 } },
      { reward: 0, metrics: { answered: 0, correct: 0, timed_out: 0 } },
      { reward: 0, metrics: { answered: 1, correct: 0, timed_out: 0 } },
    ]);
  });

  it('fails for a label without an answer: that is no fault of the answer', async () => {
    await expect(reward([input('1', ' ')])).rejects.toThrow(/the label " " has no answer to compare with/);
  });

  it('does not begin what is aborted', async () => {
    await expect(reward([input('1', '1', AbortSignal.abort(new Error('stopped')))])).rejects.toThrow('stopped');
  });
});

describe('chooseReward', () => {
  const none = {
    'reward.math.extract': undefined,
    'reward.math.precision': undefined,
    'reward.math.deadline': undefined,
    'reward.math.workers': undefined,
  };

  it('knows math by name, with its options', async () => {
    const reward = (await chooseReward(
      'math',
      { ...none, 'reward.math.extract': ['hash'] },
      { cwd: '.' },
    )) as ReturnType<typeof mathReward>;
    expect(await reward([input('\\boxed{1}', '1'), input('#### 1', '1')])).toMatchObject([
      { reward: 0 },
      { reward: 1 },
    ]);
    await reward.close();
  });

  it('takes other names for files, and refuses options that would have no effect', async () => {
    await expect(chooseReward('./math', none, { cwd: '.' })).rejects.toThrow(/no such file/);
    expect(() => checkRewardOptions(['reward.js'], { ...none, 'reward.math.workers': 2 })).toThrow(
      'reward.math.workers has no effect without reward.remote_url math',
    );
    expect(() => checkRewardOptions(['reward.js', 'math'], { ...none, 'reward.math.workers': 2 })).not.toThrow();
  });
});
