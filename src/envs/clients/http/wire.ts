import { z } from 'zod';
import type { Image, Task } from '../../../episode/task.ts';
import type { Action, Reset, StepResult } from '../../contracts.ts';

/**
 * What goes over the wire between an environment and who plays it: JSON, images as base64. Protocol 1:
 *
 *   GET    /                     {protocol, environment, version, sessions}
 *   PUT    /sessions/ID          {}                           → {fork}     a session under an id that the client draws
 *   POST   /sessions/ID/reset    {sequence, task, seed}       → a Reset
 *   POST   /sessions/ID/step     {sequence, action}           → a StepResult
 *   POST   /sessions/ID/fork     {sequence, session}          → {fork}     a copy under another id
 *   DELETE /sessions/ID                                       → {}
 *
 * `sequence` counts the calls of a session from 0. A number that comes again is answered as before, so that a call whose
 * answer was lost can be made again. Errors: {error: {class, message}}, class being one of an episode's failure classes.
 */
export const PROTOCOL = 1;

const image = z.object({ mediaType: z.string(), data: z.base64() });
const images = z.array(image).optional();
const message = z.looseObject({ role: z.string(), content: z.string() });

export const resetRequest = z.object({
  sequence: z.int().min(0),
  seed: z.int().min(0).max(0xffff_ffff),
  task: z.object({
    id: z.string(),
    prompt: z.union([z.string(), z.array(message)]),
    label: z.string(),
    images,
    source: z.string().optional(),
    metadata: z.record(z.string(), z.unknown()),
  }),
});

/** One check for all of them: an answer can have a million. */
const tokens = z.custom<number[]>(
  given => Array.isArray(given) && given.every(one => Number.isInteger(one) && one >= 0 && one <= 0x7fff_ffff),
  'token ids are whole numbers from 0 to 2147483647',
);

export const stepRequest = z.object({
  sequence: z.int().min(0),
  action: z.object({
    actionText: z.string(),
    actionTokens: tokens,
    observationText: z.string(),
    label: z.string(),
    turn: z.int().min(0),
    finishReason: z.enum(['stop', 'length', 'abort']),
  }),
});

export const sessionId = z.string().regex(/^[A-Za-z0-9_-]{16,64}$/, "16 to 64 letters, digits, '_' or '-'");
export const forkRequest = z.object({ sequence: z.int().min(0), session: sessionId });

type Wired<T> = Omit<T, 'images'> & { readonly images?: readonly z.output<typeof image>[] | undefined };

function withImages<T extends object, A, B>(
  given: T & { readonly images?: readonly A[] | undefined },
  map: (one: A) => B,
) {
  const { images, ...rest } = given;
  return images === undefined ? rest : { ...rest, images: images.map(map) };
}

/** With images as base64. */
export function wired<T extends Task | Reset | StepResult>(given: T): Wired<T> {
  return withImages(given, ({ mediaType, data }: Image) => ({
    mediaType,
    data: Buffer.from(data).toString('base64'),
  })) as Wired<T>;
}

/** With images as bytes. Whether the rest has the right shape, who asked for it checks. */
export function unwired<T extends Task | Reset | StepResult>(given: object): T {
  return withImages(given as Wired<T>, ({ mediaType, data }: z.output<typeof image>) => ({
    mediaType,
    data: new Uint8Array(Buffer.from(data, 'base64')),
  })) as unknown as T;
}

/** An action without what the other side knows: the task, and the signal of this process. */
export function wiredAction(action: Action, withObservation: boolean): z.input<typeof stepRequest>['action'] {
  const { actionText, actionTokens, label, turn, finishReason } = action;
  const observationText = withObservation ? action.observationText : '';
  return { actionText, actionTokens: [...actionTokens], observationText, label, turn, finishReason };
}
