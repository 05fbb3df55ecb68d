import { agentOptions } from '../agents/options.ts';
import { algorithmOptions } from '../algorithms/options.ts';
import { dataOptions, rolloutOptions } from '../rollout/options.ts';
import { trackingOptions } from '../tracking/options.ts';
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
  dataOptions,
  rolloutOptions,
  agentOptions,
  algorithmOptions,
  trainOptions,
  rlTrainOptions,
  evalOptions,
  evalSamplingOptions,
  checkpointOptions,
  trackingOptions,
);
