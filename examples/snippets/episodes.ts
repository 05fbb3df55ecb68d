import { readEpisodes, toTrajectories } from 'tokenloop';

for await (const episode of readEpisodes('runs/my-run/episodes.jsonl')) {
  for (const { tokens, sources, logprobs } of toTrajectories(episode)) {
    // Equal lengths; sources: 0 prompt, 1 policy, 2 environment. NaN where the policy did not sample.
    const surprise = logprobs.reduce((sum, logprob, t) => (sources[t] === 1 ? sum - logprob : sum), 0);
    console.log(`${episode.id}: ${tokens.length} tokens, ${surprise.toFixed(2)} nats`);
  }
}
