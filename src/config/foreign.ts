/**
 * Flags of OpenRLHF (older underscore names included) that have no meaning here. A run that left one out in silence
 * would not be the run that was asked for, so each is refused with one sentence that says what to use instead. An
 * option that is declared under such a name always wins over this table.
 */
const FOREIGN: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:\w+[._])?(?:num_nodes|num_gpus_per_node|actor_num_\w+|critic_num_\w+|ref_num_\w+|reward_num_\w+)$|^train\.colocate_(?:actor|critic)_|^colocate_/,
    'nothing is placed by Ray: the embedded engine runs sampler, learner and reference on this machine; leave it out',
  ],
  [
    /^vllm[._]num_engines$|^vllm_tensor_parallel_size$|^vllm\.tensor_parallel_size$/,
    'the embedded engine samples all requests in one continuous batch; leave it out',
  ],
  [
    /^vllm\.(?:sync_backend|sync_with_ray)$|^vllm_sync_\w+$/,
    'new weights reach the sampler without a transfer on the embedded engine; leave it out',
  ],
  [/^vllm[._]/, 'sampling runs on the embedded engine, which has no vLLM to configure; leave it out'],
  [
    /^(?:ds\.)?(?:zero_stage|zpg|overlap_comm|deepcompile|adam_offload|grad_accum_dtype)$/,
    'DeepSpeed is not used: weights, gradients and optimizer state are held once, in memory; leave it out',
  ],
  [
    /^(?:ds\.)?(?:param_dtype|bf16|fp16)$/,
    'the embedded engine computes in float32 (checkpoints in bfloat16 and float16 are read); leave it out',
  ],
  [
    /^(?:ds\.)?(?:attn_implementation|experts_implementation|use_liger_kernel|flash_attn)$/,
    'attention and the other kernels are ONNX Runtime operators and cannot be chosen; leave it out',
  ],
  [
    /^(?:ds\.)?packing_samples$/,
    'linear layers always run on packed tokens, so padding is never computed; leave it out',
  ],
  [
    /^ds\.(?:ring_attn_size|ring_attn_head_stride|tensor_parallel_size)$|^ring_(?:attn_size|head_stride)$/,
    'a sequence is never split over devices by the embedded engine; leave it out',
  ],
  [
    /^(?:ds\.)?use_universal_ckpt$|^ckpt\.disable_ds$|^disable_ds_ckpt$/,
    'checkpoints have one format, and no DeepSpeed one; leave it out',
  ],
  [
    /^(?:ref|reward)[._]offload$|^ref_reward_offload$/,
    'the frozen models stay in the memory of this machine; leave it out',
  ],
  [/^local_rank$/, 'no launcher starts several processes; leave it out'],
  [/^use_ms$/, 'models are read from a directory, not from ModelScope; give the path of a Hugging Face checkpoint'],
  [/^(?:data\.)?disable_fast_tokenizer$/, 'the tokenizer is always read from tokenizer.json; leave it out'],
  [/^(?:data\.)?dataloader_num_workers$/, 'datasets are read by the main thread; leave it out'],
  [
    /^logger[._]wandb[._]key$|^use_wandb$/,
    'keys are never options, which are written to files: set WANDB_API_KEY in the environment and give --logger.wandb.mode online',
  ],
  [/^prompt_max_len$/, 'the window is stated once, as prompt and answers together: use data.max_len'],
];

/** The sentence for a flag that has no meaning here, or undefined. */
export function foreign(name: string): string | undefined {
  return FOREIGN.find(([pattern]) => pattern.test(name))?.[1];
}
