import { perSample, singleTurn, toolAgent } from 'tokenloop';

/** 1 for a right answer, less 0.01 for every token from the 101st on, taken off where it stands. */
const brief = perSample(({ text, label, episode }) => {
  const { tokens } = episode.segments.at(-1)!;
  const right = text.trim() === label ? 1 : 0;
  return { steps: [right], tokens: Array.from(tokens, (_, t) => (t < 100 ? 0 : -0.01)), score: right };
});
/** What each turn of an agent with tools is worth, whatever it led to. */
const careful = perSample(({ episode }) => ({ steps: episode.steps.map(step => (step.toolFailed ? -0.1 : 0)) }));
export const agents = [singleTurn({ reward: brief }), toolAgent({ tools: [], reward: careful })];
