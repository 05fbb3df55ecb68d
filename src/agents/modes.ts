import { multiTurn } from './multi-turn.ts';
import { nemoGym } from './nemo-gym/resources-agent.ts';
import { queueAgent } from './queue/queue-agent.ts';
import { recordedAgent } from './recorded/recorded-agent.ts';
import { seats } from './seats.ts';
import { singleTurn } from './single-turn.ts';
import { toolAgent } from './tools/tool-agent.ts';
import { treeSearch } from './tree/tree-search.ts';

/**
 * Every execution mode, by the name that its executors have: what makes one. A mode that is missing here, or that the
 * matrix of estimators, modes and pipelines does not play, fails a test.
 */
export const EXECUTION_MODES = {
  'single-turn': singleTurn,
  'multi-turn': multiTurn,
  tool: toolAgent,
  recorded: recordedAgent,
  queue: queueAgent,
  tree: treeSearch,
  seats,
  'nemo-gym': nemoGym,
} as const;

export type ExecutionMode = keyof typeof EXECUTION_MODES;
