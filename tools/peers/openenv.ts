import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { multiTurn } from '../../src/agents/multi-turn.ts';
import { makeEnvironment } from '../../src/envs/registry.ts';
import type { Episode } from '../../src/episode/episode.ts';
import { validateEpisode } from '../../src/episode/validate.ts';
import { testContext } from '../../src/testing/executor-context.ts';

/**
 * Our OpenEnv client against the real package, with scripted answers for a policy:
 *
 *   OPENENV_PYTHON=venv/bin/python npx tsx tools/peers/openenv.ts
 *
 * The Python has `pip install openenv-core`. Prints a line for each way of playing, and exits with 1 if an episode was
 * not what it must be. Every episode is validated.
 */

const python = process.env.OPENENV_PYTHON;
if (python === undefined) {
  console.error('skipped: OPENENV_PYTHON does not name a Python that has the package openenv-core');
  process.exit(0);
}

const { child, url } = await startPeer(python);
/** What random.Random(seed).randint(0, 9) of CPython draws for seeds 1, 2, 3, 4. */
const NUMBERS = [2, 0, 3, 3];
let isFine = true;
try {
  const field = { action_key: 'guess', observation_key: 'text' };
  const rewards = ({ steps }: Episode) => steps.map(({ reward }) => reward).join();
  const halving = NUMBERS.map((number, i) => play(field, ['8', '9', String(number)], i + 1));
  const won = (await Promise.all(halving)).filter(episode => rewards(episode) === '0,0,1' && ended(episode));
  report('four episodes at once, each with its own seed', won.length === 4);

  const whole = await play({}, ['five', '{"number":5}', '{"guess":8}', '{"guess":2}'], 1);
  const voids = whole.steps.filter(({ isVoid }) => isVoid).length;
  report('actions as JSON, two of them none', rewards(whole) === '0,0,0,1' && voids === 2 && ended(whole));

  const far = await play({ ...field, reset: { most: 1000 } }, ['1001', '1001', '1001'], 1);
  report('parameters of the reset', rewards(far) === '0,0,0' && ended(far));

  const broken = await play(field, ['-1'], 1);
  const { outcome } = broken;
  const told = outcome.kind === 'failed' && outcome.failure === 'environment' ? outcome.message : '';
  report('an environment that raises', told.includes('a guess below 0 (EXECUTION_ERROR)'), told);

  const { signal } = new AbortController();
  const holders = await Promise.all(NUMBERS.map(() => makeEnvironment(`openenv:${url}`, {})()));
  for (const holder of holders)
    await holder.reset({ id: '', prompt: '', label: '', metadata: {} }, { seed: 1, signal });
  const fifth = await play(field, ['2'], 1);
  const why = fifth.outcome.kind === 'failed' ? fifth.outcome.message : '';
  report('a fifth connection where there is room for four', /capacity|CAPACITY/.test(why), why);
  for (const holder of holders) await holder.close?.();
  const next = await play(field, ['2'], 1);
  report('and one more when the four have been closed', rewards(next) === '1' && ended(next));
} finally {
  child.stdin?.end();
}
process.exit(isFine ? 0 : 1);

async function play(parameters: Record<string, unknown>, answers: readonly string[], seed: number): Promise<Episode> {
  const limits = { maxTurns: 8, callTimeoutMs: 20_000 };
  const context = testContext({ answers: (_, turn) => answers[turn] ?? '', environmentSeed: seed, limits });
  const task = { id: String(seed), prompt: '', label: '', metadata: {} };
  const episode = await multiTurn(makeEnvironment(`openenv:${url}`, parameters)).run(task, context);
  validateEpisode(episode, { vocabularySize: context.renderer.vocabularySize });
  return episode;
}

function ended({ outcome }: Episode): boolean {
  return outcome.kind === 'done';
}

function report(what: string, isRight: boolean, detail = ''): void {
  isFine &&= isRight;
  console.log(`${what}: ${isRight ? 'as it must be' : `WRONG ${detail}`}`);
}

async function startPeer(program: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'openenv_peer.py');
  const child = spawn(program, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{')) return { child, ...(JSON.parse(line) as { readonly url: string }) };
  }
  throw new Error(`${program} ${script} ended before its server listened`);
}
