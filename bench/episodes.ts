import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { loadRenderer } from '../src/text/chat-renderer.ts';
import { guessingScript } from './episodes/instant.ts';
import { type Cell, Report } from './harness.ts';

const EPISODES = 10_000;
const ROUNDS = 5;

interface Rounds {
  readonly seconds: readonly number[];
  /** Of an episode. */
  readonly tokens: number;
  /** Megabytes at most. */
  readonly rss: number;
}

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/**
 * 10 000 episodes at the same time on an engine that takes no time: what executor and tokenizer cost, compiled as it is
 * shipped, in one process. Beside OpenRLHF's multi-turn executor where PEERS_PYTHON names a Python with torch and
 * transformers, and OPENRLHF_SOURCE a directory that has its package. BENCH_TOKENIZER: a directory with a tokenizer,
 * for both. The best round counts.
 */
export async function run(): Promise<void> {
  const { BENCH_TOKENIZER, PEERS_PYTHON: python, OPENRLHF_SOURCE: source } = process.env;
  const directory = BENCH_TOKENIZER ?? path('../tests/goldens/text/bytes');
  const report = new Report('episodes');
  const rows: Cell[][] = [];
  const add = (name: string, output: Buffer) => {
    const { seconds, tokens, rss } = JSON.parse(String(output)) as Rounds;
    // The first round is there to warm up.
    rows.push([name, EPISODES / Math.min(...seconds.slice(1)), tokens, rss]);
  };

  execFileSync(process.execPath, [path('../node_modules/typescript/bin/tsc'), '-p', path('episodes/tsconfig.json')]);
  const compiled = path('../node_modules/.cache/tokenloop-bench/bench/episodes/own.js');
  const own = (...flags: string[]) =>
    execFileSync(process.execPath, [...flags, compiled, directory, String(EPISODES), String(ROUNDS)]);
  add('tokenloop', own());
  add('tokenloop, --max-semi-space-size=128', own('--max-semi-space-size=128'));
  if (python !== undefined && source !== undefined) {
    const renderer = await loadRenderer(directory);
    const { answer, ...script } = guessingScript(EPISODES, renderer);
    const said = { answer: [...answer], answer_text: renderer.decode(answer) };
    const input = JSON.stringify({ ...script, ...said, episodes: EPISODES, rounds: ROUNDS });
    const peer = path('../tools/peers/openrlhf_agent_peer.py');
    add('OpenRLHF', execFileSync(python, [peer, source, directory], { input, stdio: ['pipe', 'pipe', 'inherit'] }));
  }
  report.add({
    title: `${EPISODES} episodes of 4 turns at the same time, instant engine`,
    columns: ['executor', 'episodes/s', 'tokens an episode', 'memory in MB'],
    rows,
  });
  report.save();
}
