import { agentOptions } from '../agents/options.ts';
import { algorithmOptions } from '../algorithms/options.ts';
import { actorOptions, engineOptions } from '../engines/onnx/options.ts';
import { agentChoiceOptions, dataOptions, rolloutOptions } from '../rollout/options.ts';
import { trackingOptions } from '../tracking/options.ts';
import { actorScheduleOptions } from '../training/optimizer-options.ts';
import {
  checkpointOptions,
  evalOptions,
  evalSamplingOptions,
  rlTrainOptions,
  trainOptions,
} from '../training/options.ts';
import { compose } from './compose.ts';

/** Every option of `tokenloop rl`. */
export const rlOptions = compose(
  actorOptions,
  dataOptions,
  agentChoiceOptions,
  agentOptions,
  rolloutOptions,
  algorithmOptions,
  actorScheduleOptions,
  trainOptions,
  rlTrainOptions,
  evalOptions,
  evalSamplingOptions,
  checkpointOptions,
  engineOptions,
  trackingOptions,
);
