import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/**
 * The house rule: imports point down only. A folder may import the folders listed for it, itself, the ground, and some
 * of them contracts. `train.ts`, `index.ts` and `cli` wire parts together.
 */
const FLOORS: Readonly<Record<string, readonly string[]>> = {
  options: [],
  storage: [],
  modules: [],
  sandbox: [],
  http: [],
  episode: [],
  data: ['episode'],
  algorithms: ['episode'],
  text: ['episode'],
  nn: ['episode'],
  engines: ['episode', 'algorithms', 'text', 'nn'],
  envs: ['episode', 'text'],
  rewards: ['episode', 'text'],
  agents: ['episode', 'text'],
  rollout: ['episode', 'data', 'text', 'agents'],
  training: ['episode', 'data', 'text', 'algorithms', 'agents', 'rollout'],
  tracking: ['episode'],
  dashboard: ['episode'],
  config: [
    'episode',
    'data',
    'algorithms',
    'text',
    'nn',
    'engines',
    'envs',
    'rewards',
    'agents',
    'rollout',
    'training',
    'tracking',
  ],
  testing: ['episode', 'algorithms', 'text'],
};
/**
 * The ground: an option's declaration, files written whole or not at all, users' files, programs in a sandbox, what
 * every HTTP server does. Any folder may stand on it.
 */
const GROUND = ['options', 'storage', 'modules', 'sandbox', 'http'];
/** Contracts: types, no implementation. */
const CONTRACTS = [
  'engines/contracts.ts',
  'engines/sampling.ts',
  'engines/scored.ts',
  'envs/contracts.ts',
  'envs/tools/contracts.ts',
  'envs/clients/nemo-gym/contracts.ts',
  'rewards/contracts.ts',
  'agents/contracts.ts',
  'tracking/contracts.ts',
];
const MAY_USE_CONTRACTS = ['envs', 'rewards', 'agents', 'rollout', 'training', 'testing', 'dashboard'];
const WIRING = ['cli', 'index.ts', 'train.ts'];

const src = resolve(dirname(fileURLToPath(import.meta.url)), '../src');

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap(entry => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.ts$/.test(entry.name) && !/\.test\.ts$/.test(entry.name) ? [path] : [];
  });
}

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

function imports(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const from = relative(src, file).split('\\').join('/');
  const found: Import[] = [];
  const statement =
    /(?:^|\n)\s*(import|export)\s+(type\s+)?([^;'"]*?\s+from\s+)?['"](\.[^'"]+)['"]|import\(\s*['"](\.[^'"]+)['"]\s*\)/g;
  for (const match of text.matchAll(statement)) {
    const target = match[4] ?? match[5]!;
    found.push({
      from,
      to: posix.normalize(posix.join(posix.dirname(from), target)),
      typeOnly: match[2] !== undefined,
    });
  }
  return found;
}

const all = sources(src).flatMap(imports);
const floorOf = (file: string) => file.split('/')[0]!;

function allowed({ from, to }: Import): boolean {
  const [fromFloor, toFloor] = [floorOf(from), floorOf(to)];
  if (fromFloor === toFloor || WIRING.includes(fromFloor) || GROUND.includes(toFloor)) return true;
  if (CONTRACTS.includes(to) && MAY_USE_CONTRACTS.includes(fromFloor)) return true;
  return FLOORS[fromFloor]?.includes(toFloor) ?? false;
}

describe('imports', () => {
  it('finds the sources', () => {
    expect(all.length).toBeGreaterThan(10);
    const unknown = new Set(
      all.map(i => floorOf(i.from)).filter(floor => !(floor in FLOORS) && !WIRING.includes(floor)),
    );
    expect([...unknown]).toEqual([]);
  });

  it('point down only', () => {
    expect(all.filter(i => !allowed(i)).map(i => `${i.from} -> ${i.to}`)).toEqual([]);
  });

  it('have no cycle', () => {
    const edges = new Map<string, string[]>();
    for (const { from, to } of all) edges.set(from, [...(edges.get(from) ?? []), to]);
    const state = new Map<string, 'open' | 'done'>();
    const visit = (file: string, trail: readonly string[]): string[] | undefined => {
      if (state.get(file) === 'done') return undefined;
      if (state.get(file) === 'open') return [...trail.slice(trail.indexOf(file)), file];
      state.set(file, 'open');
      for (const next of edges.get(file) ?? []) {
        const cycle = visit(next, [...trail, file]);
        if (cycle) return cycle;
      }
      state.set(file, 'done');
      return undefined;
    };
    for (const file of edges.keys()) expect(visit(file, [])).toBeUndefined();
  });
});
