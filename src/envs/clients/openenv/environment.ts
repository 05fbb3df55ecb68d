import { z } from 'zod';
import { explain, preview } from '../../../episode/explain.ts';
import type { Message } from '../../../episode/task.ts';
import type { Environment, EnvironmentFactory, StepResult } from '../../contracts.ts';
import { OpenEnvConnection, OpenEnvRefusal } from './connection.ts';

export interface OpenEnvOptions {
  /** Of the server (http://host:8000) or of its socket (ws://host:8000/ws). */
  readonly url: string;
  /** The field of the action that takes the answer as it is; without it the answer is the action, as a JSON object. */
  readonly actionKey?: string | undefined;
  /** The field of the observation that the policy reads; all of the observation, as JSON, when not given. */
  readonly observationKey?: string | undefined;
  /** Sent with every reset, beside the seed. */
  readonly reset?: Readonly<Record<string, unknown>> | undefined;
  /** Deadline of the handshake in ms; 10 000 when not given. */
  readonly connectTimeoutMs?: number | undefined;
}

const result = z.looseObject({
  observation: z.unknown(),
  reward: z.union([z.number(), z.boolean().transform(Number), z.null().transform(() => 0)]).default(0),
  done: z.boolean().default(false),
});

/**
 * An environment of OpenEnv (the package `openenv`) over its WebSocket: one connection is one environment. Its rewards are
 * those of single steps. Where the answer is the action, one that is no JSON object, or not of the shape that the server
 * takes, is told to the policy.
 * @throws Error for a URL that is none
 */
export function openEnv(options: OpenEnvOptions): EnvironmentFactory {
  const url = socketUrl(options.url);
  return async () => environmentOf(await OpenEnvConnection.open(url, options.connectTimeoutMs ?? 10_000), options);
}

function environmentOf(connection: OpenEnvConnection, options: OpenEnvOptions): Environment {
  const { actionKey, observationKey } = options;
  const ask = async (type: 'reset' | 'step', data: object, signal: AbortSignal) => {
    const given = await connection.ask(type, data, signal);
    const parsed = result.safeParse(given);
    if (!parsed.success) throw new Error(`the reply to ${type} has another shape: ${explain(parsed.error, given)}`);
    const { observation, reward, done } = parsed.data;
    return { shown: shown(observation, observationKey), reward, done };
  };
  return {
    async reset(_task, { seed, signal }) {
      return { observation: (await ask('reset', { seed, ...options.reset }, signal)).shown };
    },
    async step({ actionText, signal }): Promise<StepResult> {
      const action = actionKey === undefined ? objectIn(actionText) : { [actionKey]: actionText };
      if (action === undefined) return noAction(`and the answer is none: ${preview(actionText)}`);
      try {
        const { shown: feedback, reward, done } = await ask('step', action, signal);
        return { reward, done, feedback };
      } catch (error) {
        // Of an action that we have made ourselves it is not the policy's fault.
        const isPolicys =
          error instanceof OpenEnvRefusal && error.code === 'VALIDATION_ERROR' && actionKey === undefined;
        if (isPolicys) return noAction(`and this one was refused: ${error.reason}`);
        throw error;
      }
    },
    close: () => connection.close(),
  };
}

function noAction(why: string): StepResult {
  const content = `An action is a JSON object, ${why}`;
  return { reward: 0, done: false, feedback: [{ role: 'user', content }], isVoid: true };
}

function shown(observation: unknown, key: string | undefined): readonly Message[] {
  let value = observation;
  if (key !== undefined) {
    const fields = typeof observation === 'object' && observation !== null ? Object.keys(observation) : [];
    if (!fields.includes(key)) throw new Error(`the observation has no ${key}; it has: ${fields.join(', ')}`);
    value = (observation as Record<string, unknown>)[key];
  }
  return [{ role: 'user', content: typeof value === 'string' ? value : JSON.stringify(value ?? null) }];
}

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined; // the policy is told
  }
}

function socketUrl(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^(https?|wss?):$/.test(url.protocol)) {
    throw new Error(`${preview(given)} is no address of OpenEnv; expected http://host:8000 or ws://host:8000/ws`);
  }
  if (url.protocol.startsWith('ws')) return url.href;
  url.protocol = url.protocol.replace('http', 'ws');
  url.pathname = `${url.pathname.replace(/\/*$/, '')}/ws`;
  return url.href;
}
