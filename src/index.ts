export type { EpisodeLimits, Executor, ExecutorContext, Policy } from './agents/contracts.ts';
export { type FoldOptions, type HistoryOptions, onlyCalls, withoutReasoning } from './agents/folding.ts';
export { EXECUTION_MODES, type ExecutionMode } from './agents/modes.ts';
export { type MultiTurnOptions, multiTurn } from './agents/multi-turn.ts';
export { type NemoGymAgentOptions, nemoGymAgent } from './agents/nemo-gym/remote-agent.ts';
export { type NemoGymOptions, nemoGym } from './agents/nemo-gym/resources-agent.ts';
export { nemoGymTask } from './agents/nemo-gym/rows.ts';
export type {
  BundledGenerationOutputs,
  CollectContext,
  CollectedSequence,
  EnvironmentService,
  QueueAgent,
  QueuePrompt,
  QueueRequest,
} from './agents/queue/contracts.ts';
export { type QueueAgentOptions, queueAgent } from './agents/queue/queue-agent.ts';
export { registerAgent, registerEnvironmentService } from './agents/queue/registry.ts';
export { type RecordedAgentOptions, type RecordedRun, recordedAgent } from './agents/recorded/recorded-agent.ts';
export { type Seat, type SeatsOptions, seats } from './agents/seats.ts';
export { singleTurn } from './agents/single-turn.ts';
export { type ToolAgentOptions, toolAgent } from './agents/tools/tool-agent.ts';
export { traced } from './agents/traced.ts';
export { type TreeSearchOptions, treeSearch } from './agents/tree/tree-search.ts';
export type { Algorithm } from './algorithms/algorithm.ts';
export type { Curation } from './algorithms/curation.ts';
export {
  cispo,
  drGrpo,
  gigpo,
  grpo,
  gspo,
  ppo,
  type RecipeOptions,
  reinforceBaseline,
  reinforcePlusPlus,
  rloo,
} from './algorithms/recipes.ts';
export type { Critic, Generation, Learner, PolicyEngine, Sampler, SamplingParams } from './engines/contracts.ts';
export { agentServer } from './envs/clients/nemo-gym/agent-server.ts';
export { type NemoGymServerOptions, resourcesServer } from './envs/clients/nemo-gym/resources-server.ts';
export type {
  Action,
  Environment,
  EnvironmentContext,
  EnvironmentFactory,
  Game,
  Reset,
  StepResult,
} from './envs/contracts.ts';
export { type Episode, episodeReward } from './episode/episode.ts';
export { readEpisodes } from './episode/read.ts';
export { serializeEpisode } from './episode/serialize.ts';
export type { Message, Task } from './episode/task.ts';
export { type Trajectory, toTrajectories } from './episode/trajectory.ts';
export { perSample, type RewardFunction, type RewardInput, type RewardOutput } from './rewards/contracts.ts';
export type { PipelineChoice } from './rollout/choose.ts';
export { readJsonl, type TaskInput } from './rollout/tasks.ts';
export { consoleTracker } from './tracking/console.ts';
export type { EpisodesRecord, MetricsRecord, RunEnd, Tracker } from './tracking/contracts.ts';
export { jsonlTracker } from './tracking/jsonl.ts';
export { mlflowTracker } from './tracking/mlflow.ts';
export { otelTracing } from './tracking/otel.ts';
export { tensorboardTracker } from './tracking/tensorboard.ts';
export { wandbTracker } from './tracking/wandb.ts';
export { wandbOfflineTracker } from './tracking/wandb-offline.ts';
export { type AgentOptions, evaluatePolicy, type TrainOptions, train } from './train.ts';
export { exampleSequences } from './training/conversations.ts';
export type { Evaluation, EvaluationPlan } from './training/evaluate.ts';
export type { TrainStep } from './training/loop.ts';
export { type SftOptions, sft } from './training/sft.ts';
export { type SupervisedStep as SftStep, supervisedSteps as sftSteps } from './training/supervised.ts';
