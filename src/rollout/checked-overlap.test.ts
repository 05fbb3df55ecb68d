import { describe, expect, it } from 'vitest';
import { checkedOverlap } from './async.ts';

describe('checkedOverlap', () => {
  it.each([
    [{ queueSize: 0 }, /async_queue_size must be a whole number ≥ 1, got 0/],
    [{ maxStaleness: -1 }, /max_staleness must be a whole number ≥ 0, got -1/],
    [{ generateGroups: 3 }, /must be a whole number ≥ rollout\.batch_size \(4\), .* got 3/],
    [{ queueSize: 3, maxStaleness: 1 }, /a queue of 12 groups .* lets 8 run ahead; raise it to 2/],
    [{ queueSize: 1, generateGroups: 9, maxStaleness: 1 }, /a queue of 9 groups .* raise it to 2/],
  ])('refuses %j', (overlap, message) => {
    expect(() => checkedOverlap(overlap, 4)).toThrow(message);
  });

  it('fills in what is not given', () => {
    expect(checkedOverlap({}, 4)).toEqual({ slots: 4, maxStaleness: 1 });
    expect(checkedOverlap({ queueSize: 2, generateGroups: 5 }, 4)).toEqual({ slots: 10, maxStaleness: 2 });
    expect(checkedOverlap({ maxStaleness: 0 }, 4)).toEqual({ slots: 4, maxStaleness: 0 });
  });
});
