import { z } from 'zod';
import { options, type Values } from '../../options/option.ts';
import type { MuonOptions } from './muon.ts';

const optim = {
  schema: z.enum(['adam', 'muon']).default('adam'),
  help: 'adam moves everything; muon moves the matrices inside the layers, and adam the rest',
} as const;
/** None has a default here, so that settings of Muon without Muon are noticed. */
const muon = {
  lr: {
    schema: z.number().positive().optional(),
    help: 'muon: highest learning rate of the matrices, scheduled like that of adam; without it 0.02',
  },
  momentum: {
    schema: z.number().min(0).lt(1).optional(),
    help: 'muon: share of itself that the momentum keeps; without it 0.95',
  },
  steps: {
    schema: z.int().min(1).optional(),
    help: 'muon: iterations of Newton and Schulz; without it 5',
    unit: 'iterations',
  },
  nesterov: {
    schema: z.boolean().optional(),
    help: "muon: Nesterov's momentum; without it on",
  },
} as const;

export const actorMuonOptions = options({
  'actor.optim': optim,
  'actor.muon.lr': muon.lr,
  'actor.muon.momentum': muon.momentum,
  'actor.muon.ns_steps': muon.steps,
  'actor.muon.nesterov': muon.nesterov,
});

export const criticMuonOptions = options({
  'critic.optim': { schema: optim.schema.unwrap().optional(), help: `${optim.help}; without it adam` },
  'critic.muon.lr': muon.lr,
  'critic.muon.momentum': muon.momentum,
  'critic.muon.ns_steps': muon.steps,
  'critic.muon.nesterov': muon.nesterov,
});

export const muonOptions = options({
  optim,
  'muon.lr': muon.lr,
  'muon.momentum': muon.momentum,
  'muon.ns_steps': muon.steps,
  'muon.nesterov': muon.nesterov,
});

type MuonValues = Values<typeof muonOptions>;

/** The options under `prefix` (`actor.`, `critic.` or none) by their names without it. */
export function muonValues(values: Readonly<Record<string, unknown>>, prefix: string): MuonValues {
  const names = Object.keys(muonOptions);
  return Object.fromEntries(names.map(name => [name, values[prefix + name]])) as unknown as MuonValues;
}

/**
 * What the options say about Muon beside a learning rate of `adamLr` for the rest; `prefix` is for messages. Throws for
 * settings of an optimizer that is not used.
 */
export function muonFromOptions(values: MuonValues, adamLr: number, prefix: string): MuonOptions | undefined {
  const { 'muon.lr': lr = 0.02, 'muon.momentum': momentum = 0.95, 'muon.ns_steps': steps = 5 } = values;
  if (values.optim === 'muon') {
    return { lrRatio: lr / adamLr, momentum, steps, nesterov: values['muon.nesterov'] ?? true };
  }
  const given = Object.entries(values).find(([name, value]) => name.startsWith('muon.') && value !== undefined);
  if (given === undefined) return undefined;
  throw new Error(`${prefix}${given[0]} is a setting of Muon, and the optimizer is adam: set ${prefix}optim to muon`);
}
