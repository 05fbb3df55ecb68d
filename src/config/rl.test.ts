import { expect, it } from 'vitest';
import { foreign } from './foreign.ts';
import { lookup } from './lookup.ts';
import { rlOptions } from './rl.ts';

/** The older names of OpenRLHF's training guide and the names they have now. */
const OLDER: Readonly<Record<string, string>> = {
  pretrain: 'actor.model_name_or_path',
  reward_pretrain: 'reward.model_name_or_path',
  critic_pretrain: 'critic.model_name_or_path',
  save_path: 'ckpt.output_dir',
  ckpt_path: 'ckpt.path',
  save_steps: 'ckpt.save_steps',
  load_checkpoint: 'ckpt.load_enable',
  logging_steps: 'logger.logging_steps',
  eval_steps: 'eval.steps',
  train_batch_size: 'train.batch_size',
  micro_train_batch_size: 'train.micro_batch_size',
  rollout_batch_size: 'rollout.batch_size',
  micro_rollout_batch_size: 'rollout.micro_batch_size',
  max_epochs: 'train.max_epochs',
  num_episodes: 'train.num_episodes',
  max_samples: 'data.max_samples',
  generate_max_len: 'rollout.max_new_tokens',
  prompt_data: 'data.prompt_dataset',
  input_key: 'data.input_key',
  label_key: 'data.label_key',
  apply_chat_template: 'data.apply_chat_template',
  tokenizer_chat_template: 'data.tokenizer_chat_template',
  input_template: 'data.input_template',
  actor_learning_rate: 'actor.adam.lr',
  critic_learning_rate: 'critic.adam.lr',
  gradient_checkpointing: 'actor.gradient_checkpointing_enable',
  use_wandb: 'logger.wandb.key',
  enable_ema: 'train.enable_ema',
  temperature: 'rollout.temperature',
  top_p: 'rollout.top_p',
  advantage_estimator: 'algo.advantage.estimator',
  init_kl_coef: 'algo.kl.init_coef',
  use_kl_loss: 'algo.kl.use_loss',
  kl_estimator: 'algo.kl.estimator',
  n_samples_per_prompt: 'rollout.n_samples_per_prompt',
  dynamic_filtering: 'algo.dynamic_filtering_enable',
  dynamic_filtering_reward_range: 'algo.dynamic_filtering_range',
  enable_vllm_is_correction: 'algo.advantage.is_correction_enable',
  vllm_is_truncated_threshold: 'algo.advantage.is_correction_threshold',
  use_dynamic_batch: 'train.dynamic_batch_enable',
  train_max_tokens_per_gpu: 'train.max_tokens_per_gpu',
  rollout_max_tokens_per_gpu: 'rollout.max_tokens_per_gpu',
  normalize_reward: 'reward.normalize_enable',
  remote_rm_url: 'reward.remote_url',
  agent_func_path: 'train.agent_func_path',
  async_train: 'train.async_enable',
  async_queue_size: 'train.async_queue_size',
  partial_rollout: 'train.partial_rollout_enable',
};

const declared = Object.keys(rlOptions);

it('understands every older name whose option there is', () => {
  const present = Object.entries(OLDER).filter(([, name]) => declared.includes(name));
  expect(present.length).toBeGreaterThan(20);
  for (const [older, name] of present) expect([older, lookup(rlOptions, older)]).toEqual([older, { name }]);
});

it.each([
  ...['actor.num_nodes', 'ref.num_gpus_per_node', 'actor_num_nodes', 'ref_num_nodes', 'colocate_actor_ref'],
  ...['train.colocate_actor_ref', 'vllm.num_engines', 'vllm_num_engines'],
  ...['vllm.sync_backend', 'vllm.gpu_memory_utilization', 'ds.zero_stage', 'zero_stage', 'ds.adam_offload'],
  ...['ds.param_dtype', 'bf16', 'flash_attn', 'ds.attn_implementation'],
  ...['ds.packing_samples', 'packing_samples', 'ds.ring_attn_size', 'ref.offload', 'ref_reward_offload', 'local_rank'],
  ...['use_ms', 'data.disable_fast_tokenizer', 'data.dataloader_num_workers', 'ds.use_universal_ckpt'],
  ...['ckpt.disable_ds', 'prompt_max_len'],
])('answers %s in one sentence', name => {
  const found = lookup(rlOptions, name);
  expect(found).toEqual({ fault: `not an option here: ${foreign(name)}` });
  // An option that the sentence sends the user to must exist.
  const recommended = foreign(name)!.match(/[a-z_]+\.[a-z_]+(\.[a-z_]+)*/g) ?? [];
  expect(recommended.filter(word => word !== 'tokenizer.json' && !declared.includes(word))).toEqual([]);
});
