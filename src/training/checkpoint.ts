import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Critic, Learner } from '../engines/contracts.ts';
import { messageOf } from '../episode/failure.ts';
import { readBacklog, writeBacklog } from '../rollout/groups-file.ts';
import { type Backlog, NO_BACKLOG } from '../rollout/pipeline.ts';
import { writeDirectoryAtomic } from '../storage/atomic.ts';

/**
 * A checkpoint is a directory `step-<n>` with the full state of the learner and of the critic, `backlog.jsonl` (what
 * the pipeline held) and `trainer.json`. It is written beside its place and renamed into it, so whatever bears
 * the name is complete.
 */

const TrainerState = z.object({
  format: z.literal(1),
  /** Steps completed. */
  step: z.number().int().nonnegative(),
  /** Optimizer updates made. */
  updates: z.number().int().nonnegative(),
  seed: z.number().int(),
  cursor: z.object({ epoch: z.number().int().nonnegative(), position: z.number().int().nonnegative() }),
  /** KL coefficient, where there is one. */
  beta: z.number().optional(),
});

/** What is trained. */
export interface Trained {
  readonly learner: Learner;
  readonly critic?: Critic | undefined;
}

/** Everything beside the models' state that a run needs to continue as if it had never stopped. */
export type TrainerState = Omit<z.infer<typeof TrainerState>, 'format'>;

const BACKLOG = 'backlog.jsonl';
const NAME = /^step-(\d+)$/;
const nameOf = (step: number) => `step-${String(step).padStart(8, '0')}`;

/** Writes a checkpoint and removes the oldest beyond `keep`. Returns its directory. */
export async function saveCheckpoint(
  root: string,
  state: TrainerState,
  { learner, critic }: Trained,
  { keep, backlog }: { readonly keep: number; readonly backlog?: Backlog | undefined },
): Promise<string> {
  const directory = join(root, nameOf(state.step));
  await writeDirectoryAtomic(directory, async temporary => {
    await learner.save(join(temporary, 'learner'));
    await critic?.save(join(temporary, 'critic'));
    if (backlog !== undefined) await writeBacklog(join(temporary, BACKLOG), backlog);
    await writeFile(join(temporary, 'trainer.json'), `${JSON.stringify({ format: 1, ...state }, null, 2)}\n`);
  });
  for (const old of checkpoints(root).slice(0, -keep)) await rm(old, { recursive: true });
  return directory;
}

/** The newest checkpoint below `root`, or undefined when there is none. */
export function latestCheckpoint(root: string): string | undefined {
  return checkpoints(root).at(-1);
}

/** Steps that had been done when a checkpoint was written. */
export function checkpointStep(directory: string): number {
  return readTrainerState(directory).step;
}

/** Brings what is trained to the state of a checkpoint. Throws when it is not one of a run with this seed. */
export async function loadCheckpoint(
  directory: string,
  { learner, critic }: Trained,
  seed: number,
): Promise<TrainerState & { readonly backlog: Backlog }> {
  const state = readTrainerState(directory);
  if (state.seed !== seed) {
    throw new Error(
      `${directory} belongs to a run with seed ${state.seed}, this one has ${seed}; set train.seed to ${state.seed} or resume elsewhere`,
    );
  }
  await learner.load(join(directory, 'learner'));
  await critic?.load(join(directory, 'critic'));
  const backlog = join(directory, BACKLOG);
  return { ...state, backlog: existsSync(backlog) ? await readBacklog(backlog) : NO_BACKLOG };
}

function readTrainerState(directory: string): TrainerState {
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

/** Directories of complete checkpoints, oldest first. */
function checkpoints(root: string): string[] {
  let names: string[];
  try {
    names = readdirSync(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const steps = names.flatMap(name => NAME.exec(name)?.[1] ?? []).map(Number);
  return steps.sort((a, b) => a - b).map(step => join(root, nameOf(step)));
}
