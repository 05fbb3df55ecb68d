import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Critic, Learner } from '../engines/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import { readBacklog, writeBacklog } from '../rollout/groups-file.ts';
import { type Backlog, NO_BACKLOG } from '../rollout/pipeline.ts';
import { writeDirectoryAtomic } from '../storage/atomic.ts';
import { findDamage, sizeOf, writeManifest } from '../storage/manifest.ts';
import { type RotationLimits, superseded } from './rotation.ts';

/**
 * A checkpoint is a directory `step-<n>` with the full state of the learner and of the critic, `backlog.jsonl` (what
 * the pipeline held), `trainer.json` and, written last, `manifest.json` with the checksums of all of them. It is written
 * beside its place and renamed into it, so whatever bears the name was complete; the manifest tells whether it still is.
 */

const TrainerState = z.object({
  format: z.literal(2),
  /** Steps completed. */
  step: z.number().int().nonnegative(),
  /** Optimizer updates made. */
  updates: z.number().int().nonnegative(),
  seed: z.number().int(),
  cursor: z.object({ epoch: z.number().int().nonnegative(), position: z.number().int().nonnegative() }),
  /** What the rows of the dataset are: a digest. */
  data: z.string().optional(),
  /** KL coefficient, where there is one. */
  beta: z.number().optional(),
  /** The best evaluation so far. */
  best: z.object({ metric: z.string(), value: z.number(), step: z.number().int() }).optional(),
  /** What every task earned in the evaluation before training, which later ones are compared with (evaluate.ts). */
  baseline: z.record(z.string(), z.record(z.string(), z.number())).optional(),
  /** How far the trackers had come, by their names. */
  trackers: z.record(z.string(), z.unknown()).optional(),
  /** The options of the run, by their names. */
  config: z.record(z.string(), z.unknown()).optional(),
});

/** What is trained. */
export interface Trained {
  readonly learner: Pick<Learner, 'save' | 'load' | 'export'>;
  readonly critic?: Critic | undefined;
}

/** Everything beside the models' state that a run needs to continue as if it had never stopped. */
export type TrainerState = Omit<z.infer<typeof TrainerState>, 'format'>;

export interface SaveOptions extends Omit<RotationLimits, 'newest' | 'best'> {
  readonly backlog?: Backlog | undefined;
  /** Also the weights as a model, in the folder `model`. */
  readonly model?: boolean | undefined;
}

const BACKLOG = 'backlog.jsonl';
const NAME = /^step-(\d+)$/;
const nameOf = (step: number) => `step-${String(step).padStart(8, '0')}`;

/** Directory of the checkpoint of a step. */
export function checkpointDirectory(root: string, step: number): string {
  return join(root, nameOf(step));
}

/** Writes a checkpoint, then removes those that the limits leave no room for. Returns its directory. */
export async function saveCheckpoint(
  root: string,
  state: TrainerState,
  { learner, critic }: Trained,
  { backlog, model = false, ...limits }: SaveOptions,
): Promise<string> {
  const directory = checkpointDirectory(root, state.step);
  await writeDirectoryAtomic(directory, async temporary => {
    await learner.save(join(temporary, 'learner'));
    await critic?.save(join(temporary, 'critic'));
    if (model) await learner.export(join(temporary, 'model'));
    if (backlog !== undefined) await writeBacklog(join(temporary, BACKLOG), backlog);
    await writeFile(join(temporary, 'trainer.json'), `${JSON.stringify({ format: 2, ...state })}\n`);
    await writeManifest(temporary);
  });
  const all = steps(root).map(step => ({ step, bytes: sizeOf(checkpointDirectory(root, step)) }));
  for (const old of superseded(all, { ...limits, newest: state.step, best: state.best?.step })) {
    await rm(checkpointDirectory(root, old), { recursive: true });
  }
  return directory;
}

/** The newest checkpoint by name, whole or not; undefined when there is none. */
export function newestCheckpoint(root: string): string | undefined {
  const step = steps(root).at(-1);
  return step === undefined ? undefined : checkpointDirectory(root, step);
}

/** The newest checkpoint below `root` that agrees with its manifest. Those that do not are passed over and named. */
export async function latestCheckpoint(root: string, warn: (message: string) => void): Promise<string | undefined> {
  for (const step of steps(root).reverse()) {
    const directory = checkpointDirectory(root, step);
    const damage = await findDamage(directory);
    if (damage === undefined) return directory;
    warn(`the checkpoint ${directory} is damaged and passed over: ${damage}`);
  }
  return undefined;
}

/** Brings what is trained to the state of a checkpoint. Throws when it belongs to a run with another seed or data. */
export async function loadCheckpoint(
  directory: string,
  { learner, critic }: Trained,
  run: { readonly seed: number; readonly data?: string | undefined },
): Promise<TrainerState & { readonly backlog: Backlog }> {
  const state = readTrainerState(directory);
  if (state.seed !== run.seed) {
    throw new Error(
      `${directory} belongs to a run with seed ${state.seed}, this one has ${run.seed}; set train.seed to ${state.seed} or resume elsewhere`,
    );
  }
  if (state.data !== run.data && state.data !== undefined && run.data !== undefined) {
    throw new Error(
      `${directory} belongs to a run on other rows: prompts, labels or their order have changed since; resume with the dataset the run was started with`,
    );
  }
  if ((critic !== undefined) !== existsSync(join(directory, 'critic'))) {
    const [has, needs] = critic === undefined ? ['a critic', 'none'] : ['no critic', 'one'];
    throw new Error(`${directory} has ${has}, and this run needs ${needs}; resume with the estimator it was made with`);
  }
  await learner.load(join(directory, 'learner'));
  await critic?.load(join(directory, 'critic'));
  const backlog = join(directory, BACKLOG);
  return { ...state, backlog: existsSync(backlog) ? await readBacklog(backlog) : NO_BACKLOG };
}

/** What a checkpoint says beside the models. */
export function readTrainerState(directory: string): TrainerState {
  const path = join(directory, 'trainer.json');
  try {
    const { format: _, ...state } = TrainerState.parse(JSON.parse(readFileSync(path, 'utf8')));
    return state;
  } catch (error) {
    throw new Error(`${path} is not a trainer state: ${messageOf(error)}; resume from another checkpoint`, {
      cause: error,
    });
  }
}

/** Steps of the checkpoints, oldest first. */
function steps(root: string): number[] {
  let names: string[];
  try {
    names = readdirSync(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names
    .flatMap(name => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}
