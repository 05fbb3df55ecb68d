import { loadRenderer } from '../../src/text/chat-renderer.ts';
import { guessingScript, playInstantly } from './instant.ts';

/** Plays the script in rounds and prints what bench/episodes.ts reads. Arguments: tokenizer directory, episodes, rounds. */
const [directory, episodes, rounds] = process.argv.slice(2);
const renderer = await loadRenderer(directory!);
const script = guessingScript(Number(episodes), renderer);
const seconds: number[] = [];
let tokens = 0;
for (let round = 0; round < Number(rounds); round++) {
  const played = await playInstantly(script, renderer);
  seconds.push(played.seconds);
  tokens = played.tokens;
}
const rss = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ seconds, tokens, rss }));
