import { historyOptions } from '../agents/history-options.ts';
import { nemoGymOptions } from '../agents/nemo-gym/options.ts';
import { agentOptions } from '../agents/options.ts';
import { queueOptions } from '../agents/queue/options.ts';
import { recordedOptions } from '../agents/recorded/options.ts';
import { toolUseOptions } from '../agents/tools/options.ts';
import { searchOptions } from '../agents/tree/options.ts';
import { curationOptions } from '../algorithms/curation-options.ts';
import { algorithmOptions } from '../algorithms/options.ts';
import {
  actorOptions,
  criticModelOptions,
  engineOptions,
  loraOptions,
  samplingOptions,
  separateOptions,
} from '../engines/onnx/options.ts';
import { mcpOptions } from '../envs/clients/mcp/options.ts';
import { codeRewardOptions } from '../rewards/code-options.ts';
import { judgeRewardOptions } from '../rewards/judge/options.ts';
import { mathRewardOptions } from '../rewards/math/options.ts';
import { rewardModelOptions } from '../rewards/model/options.ts';
import { remoteRewardOptions } from '../rewards/remote-options.ts';
import { agentChoiceOptions, dataOptions, rolloutOptions } from '../rollout/options.ts';
import { overlapOptions } from '../rollout/overlap-options.ts';
import { trackingOptions } from '../tracking/options.ts';
import { actorScheduleOptions, criticOptions } from '../training/optimizer-options.ts';
import {
  averageOptions,
  bestOptions,
  checkpointOptions,
  evalOptions,
  evalSamplingOptions,
  evalTasksOptions,
  referenceOptions,
  rlTrainOptions,
  trainOptions,
} from '../training/options.ts';
import { compose } from './compose.ts';

/** Every option of `tokenloop rl`. */
export const rlOptions = compose(
  actorOptions,
  dataOptions,
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
  searchOptions,
  rolloutOptions,
  overlapOptions,
  curationOptions,
  algorithmOptions,
  referenceOptions,
  actorScheduleOptions,
  criticModelOptions,
  criticOptions,
  loraOptions,
  trainOptions,
  rlTrainOptions,
  evalTasksOptions,
  evalOptions,
  evalSamplingOptions,
  averageOptions,
  checkpointOptions,
  bestOptions,
  engineOptions,
  samplingOptions,
  separateOptions,
  trackingOptions,
);
