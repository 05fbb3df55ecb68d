/** `npm run bench -- <name> [argument ...]`; without a name it lists what there is. */
interface Bench {
  readonly help: string;
  load(): Promise<{ run(args: string[]): Promise<void> }>;
}

const BENCHES: Readonly<Record<string, Bench>> = {
  engine: {
    help: 'training, optimizer and decoding beside the limits of this machine; arguments: names of models (0.4M …)',
    load: () => import('./engine.ts'),
  },
  algorithms: {
    help: 'estimators, corrections, filters and penalties on a million tokens; arguments: parts of their names',
    load: () => import('./algorithms.ts'),
  },
  pipelines: {
    help: 'sync, async and partial rollout beside the bound max(generate, train): simulated, and on the embedded engine',
    load: () => import('./pipelines.ts'),
  },
  episodes: {
    help: '10 000 episodes at the same time on an instant engine; beside OpenRLHF with PEERS_PYTHON and OPENRLHF_SOURCE',
    load: () => import('./episodes.ts'),
  },
  tools: {
    help: '10 000 episodes of a tool agent on an instant engine: episodes/s, memory, time between answer and request',
    load: () => import('./tools.ts'),
  },
  code: {
    help: 'programs in the sandbox: executions/s, cold and started ahead, calls of functions, cells of sessions',
    load: () => import('./code.ts'),
  },
  math: {
    help: 'verdicts on answers a second, beside math-verify with PEERS_PYTHON',
    load: () => import('./math.ts'),
  },
  learning: {
    help: 'every estimator with every policy loss on two small tasks; writes docs/learning.md',
    load: () => import('./learning.ts'),
  },
  recorder: {
    help: '256 streaming clients of the recording server beside a bare HTTP server',
    load: () => import('./recorder.ts'),
  },
  'reward-server': {
    help: 'serve-rm under 64 clients: texts scored together beside one at a time; arguments: names of models (0.4M …)',
    load: () => import('./reward-server.ts'),
  },
  tree: {
    help: 'training with shared prefixes beside the same batch unshared; arguments: names of models (0.75M …)',
    load: () => import('./tree.ts'),
  },
  search: {
    help: 'solved tasks per sampled token: search trees beside chains at an equal token budget, five seeds',
    load: () => import('./search.ts'),
  },
  frozen: {
    help: 'LoRA on a base in 8 and 4 bits: accuracy, learning, memory and time; arguments: accuracy, learning, memory',
    load: () => import('./frozen.ts'),
  },
  memory: {
    help: 'peak memory of learning, each case in a process of its own; arguments: vocabulary, activations, parts, optimizers',
    load: () => import('./memory.ts'),
  },
  peers: {
    help: 'training, generation and decoding beside PyTorch, Transformers and llama.cpp; PEERS_PYTHON names their Python',
    load: () => import('./peers.ts'),
  },
  int8: {
    help: 'sampling in int8 beside float32: decoding, publishing, reward against time; arguments: models, or learning [steps]',
    load: () => import('./int8.ts'),
  },
  step: {
    help: 'one GRPO step from end to end beside TRL; PEERS_PYTHON names a Python that has it',
    load: () => import('./step.ts'),
  },
  start: {
    help: 'from nothing to the first token, and where the time goes',
    load: () => import('./start.ts'),
  },
  goals: {
    help: 'what the last results of the benches of speed are beside the goals of docs/speed.md',
    load: () => import('./goals.ts'),
  },
  all: {
    help: 'engine, tree, peers, int8, step and start one after another, then goals: some 15 minutes of a quiet machine',
    load: () => import('./all.ts'),
  },
};

const [name, ...args] = process.argv.slice(2);
const bench = name === undefined ? undefined : BENCHES[name];
if (bench === undefined) {
  if (name !== undefined) console.error(`There is no bench named '${name}'.\n`);
  console.error('npm run bench -- <name>, where <name> is');
  for (const [each, { help }] of Object.entries(BENCHES)) console.error(`  ${each.padEnd(13)} ${help}`);
  process.exitCode = 2;
} else {
  await (await bench.load()).run(args);
}
