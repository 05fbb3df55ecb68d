import { historyOptions } from '../agents/history-options.ts';
import { nemoGymOptions } from '../agents/nemo-gym/options.ts';
import { agentOptions } from '../agents/options.ts';
import { queueOptions } from '../agents/queue/options.ts';
import { recordedOptions } from '../agents/recorded/options.ts';
import { toolUseOptions } from '../agents/tools/options.ts';
import { mcpOptions } from '../envs/clients/mcp/options.ts';
import { codeRewardOptions } from '../rewards/code-options.ts';
import { judgeRewardOptions } from '../rewards/judge/options.ts';
import { mathRewardOptions } from '../rewards/math/options.ts';
import { rewardModelOptions } from '../rewards/model/options.ts';
import { remoteRewardOptions } from '../rewards/remote-options.ts';
import { agentChoiceOptions } from '../rollout/options.ts';
import { compose } from './compose.ts';

/** How an episode runs, whoever asks for it: its agent and environment, its tools and its rewards. */
export const episodeOptions = compose(
  agentChoiceOptions,
  mathRewardOptions,
  codeRewardOptions,
  judgeRewardOptions,
  remoteRewardOptions,
  rewardModelOptions,
  historyOptions,
  toolUseOptions,
  recordedOptions,
  queueOptions,
  mcpOptions,
  nemoGymOptions,
  agentOptions,
);
