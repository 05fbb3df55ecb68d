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
import { dataOptions, rolloutOptions } from '../rollout/options.ts';
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
import { episodeOptions } from './episodes.ts';

/** Every option of `tokenloop rl`. */
export const rlOptions = compose(
  actorOptions,
  dataOptions,
  episodeOptions,
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
