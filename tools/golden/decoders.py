"""Goldens of tiny decoders of every family: logits, and gradients of two losses, from PyTorch and Transformers.

Usage:  python tools/golden/decoders.py tests/goldens/decoders [name ...]
Made with torch 2.15.0, transformers 5.23.0, safetensors 0.8.0 (CPU, float32).

For each model below it writes <name>/ with

  config.json, model*.safetensors   the checkpoint (F32, F16, BF16 or sharded, see MODELS). Norms and biases are
                                    random as well, so that no gradient is trivially right.
  golden.json                       {"sequences": [[token, ...], ...],   ragged, evaluated one by one, no padding
                                     "predict": [[0|1, ...], ...],       policy positions: predict[i][t] = 1 where the
                                                                         PPO loss wants the log-probability of token t
                                     "temperature": logits are divided by it in the PPO loss,
                                     "clip": 0.2,
                                     "lm_loss": number, "ppo_loss": number}
  golden.safetensors                all float32, T = length of sequence i, P = its number of policy positions:
                                    logits.{i} [T, V]        at temperature 1
                                    logprobs.{i} [P]         of the policy tokens, at `temperature`
                                    entropy.{i} [P]          of the distribution at those positions, at `temperature`
                                    advantages.{i} [P], old_logprobs.{i} [P]
                                    lm.grad.{tensor}, ppo.grad.{tensor}   for every checkpoint tensor, in its shape

Losses, both means over all their tokens of all sequences together:
  lm   -log p(token t | tokens before t) at temperature 1, for every t >= 1
  ppo  -min(r A, clamp(r, 0.8, 1.2) A) with r = exp(logprob - old_logprob), for every policy position
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)

TEMPERATURE = 0.7
CLIP = 0.2
LENGTHS = [2, 7, 12, 17]


def config(cls, **fields):
    rope = {"rope_type": "default", "rope_theta": fields.pop("rope_theta", 10000.0), **fields.pop("rope", {})}
    defaults = dict(
        num_hidden_layers=2,
        max_position_embeddings=64,
        rope_parameters=rope,
        bos_token_id=1,
        eos_token_id=2,
        # PyTorch gives the padding token's embedding no gradient.
        pad_token_id=None,
    )
    return cls(**{**defaults, **fields})


MODELS = {
    "grouped-tied": dict(
        config=config(LlamaConfig, vocab_size=40, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
                      intermediate_size=40, tie_word_embeddings=True),
    ),
    "full-untied-sharded": dict(
        config=config(LlamaConfig, vocab_size=36, hidden_size=24, num_attention_heads=3, num_key_value_heads=3,
                      intermediate_size=28, tie_word_embeddings=False, rope_theta=500000.0),
        shard_bytes=20_000,
    ),
    "wide-heads-bf16": dict(
        config=config(LlamaConfig, vocab_size=33, hidden_size=16, num_attention_heads=4, num_key_value_heads=1,
                      head_dim=12, intermediate_size=24, rms_norm_eps=1e-5, tie_word_embeddings=False,
                      rope_theta=100.0),
        dtype=torch.bfloat16,
    ),
    "narrow-heads-f16": dict(
        config=config(LlamaConfig, vocab_size=48, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
                      head_dim=4, intermediate_size=20, num_hidden_layers=3, tie_word_embeddings=True),
        dtype=torch.float16,
    ),
    "mistral": dict(
        config=config(MistralConfig, vocab_size=32, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                      head_dim=8, intermediate_size=32, sliding_window=None),
    ),
    "qwen2": dict(
        config=config(Qwen2Config, vocab_size=40, hidden_size=24, num_attention_heads=4, num_key_value_heads=2,
                      intermediate_size=32, tie_word_embeddings=True, rope_theta=1000000.0),
    ),
    # Rotary scalings act within 17 tokens only where the trained length is as short.
    "llama3-biases": dict(
        config=config(LlamaConfig, vocab_size=30, hidden_size=16, num_attention_heads=2, num_key_value_heads=1,
                      head_dim=8, intermediate_size=20, attention_bias=True, mlp_bias=True,
                      rope=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                original_max_position_embeddings=16)),
    ),
    "mistral-window": dict(
        config=config(MistralConfig, vocab_size=28, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                      intermediate_size=20, sliding_window=4, rope=dict(rope_type="dynamic", factor=2.0)),
    ),
    "qwen2-windows-yarn": dict(
        config=config(Qwen2Config, vocab_size=28, hidden_size=16, num_attention_heads=2, num_key_value_heads=1,
                      intermediate_size=20, num_hidden_layers=3, use_sliding_window=True, sliding_window=5,
                      max_window_layers=1, tie_word_embeddings=True,
                      rope=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
    ),
    "qwen3-linear": dict(
        config=config(Qwen3Config, vocab_size=30, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                      head_dim=12, intermediate_size=20, tie_word_embeddings=True,
                      rope=dict(rope_type="linear", factor=4.0)),
    ),
    "qwen3-biases": dict(
        config=config(Qwen3Config, vocab_size=26, hidden_size=16, num_attention_heads=2, num_key_value_heads=2,
                      head_dim=6, intermediate_size=20, attention_bias=True, tie_word_embeddings=False),
    ),
    "smollm3": dict(
        config=config(SmolLM3Config, vocab_size=26, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                      intermediate_size=20, num_hidden_layers=4, tie_word_embeddings=True,
                      no_rope_layers=[1, 0, 1, 0], use_sliding_window=True, sliding_window=3,
                      layer_types=["full_attention", "full_attention", "sliding_attention", "sliding_attention"]),
    ),
    "gemma2": dict(
        config=config(Gemma2Config, vocab_size=30, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                      head_dim=6, intermediate_size=24, num_hidden_layers=3, query_pre_attn_scalar=10,
                      sliding_window=4, attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    ),
    "gemma3-bf16": dict(
        config=Gemma3TextConfig(vocab_size=30, hidden_size=20, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
                                intermediate_size=24, num_hidden_layers=3, query_pre_attn_scalar=5, sliding_window=5,
                                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                max_position_embeddings=64, pad_token_id=None, bos_token_id=1, eos_token_id=2,
                                rope_parameters={
                                    "full_attention": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 8.0},
                                    "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                                }),
        dtype=torch.bfloat16,
    ),
    "phi3": dict(
        config=config(Phi3Config, vocab_size=26, hidden_size=16, num_attention_heads=2, num_key_value_heads=1,
                      intermediate_size=20, sliding_window=6, rope=dict(partial_rotary_factor=0.5)),
    ),
    "phi3-longrope": dict(
        config=config(Phi3Config, vocab_size=26, hidden_size=16, num_attention_heads=2, num_key_value_heads=2,
                      intermediate_size=20, original_max_position_embeddings=32, tie_word_embeddings=True,
                      rope=dict(rope_type="longrope", short_factor=[1.1, 1.5, 2.0], long_factor=[4.0, 5.0, 6.0],
                                partial_rotary_factor=0.75)),
    ),
}


def random_weights(model, generator, dtype):
    """Large enough that attention and logits are far from uniform; rounded to the dtype they are stored in."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        is_norm = name.endswith("norm.weight") or "layernorm" in name
        # Gemma stores the weights of norms less 1.
        centre = 0 if model.config.model_type.startswith("gemma") else 1
        values = centre + 0.2 * noise if is_norm else 0.25 * noise
        parameter.data.copy_(values.to(dtype).float())


def golden(name, spec, target, seed):
    dtype = spec.get("dtype", torch.float32)
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(spec["config"], attn_implementation="eager").float().eval()
    random_weights(model, generator, dtype)

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    vocabulary = spec["config"].vocab_size
    sequences = [torch.randint(vocabulary, (n,), generator=generator) for n in LENGTHS]
    predict = [torch.rand(n, generator=generator) < 0.6 for n in LENGTHS]
    for mask in predict:
        mask[0] = False
        mask[1] = True

    arrays = {}
    lm_terms, ppo_terms = [], []
    for i, (tokens, mask) in enumerate(zip(sequences, predict)):
        logits = model(tokens[None]).logits[0]
        arrays[f"logits.{i}"] = logits
        targets = tokens[1:, None]
        lm_terms.append(-logits[:-1].log_softmax(-1).gather(-1, targets)[:, 0])

        distribution = (logits[:-1] / TEMPERATURE).log_softmax(-1)[mask[1:]]
        logprobs = distribution.gather(-1, tokens[mask][:, None])[:, 0]
        shape = logprobs.shape
        advantages = torch.randn(shape, generator=generator)
        old = logprobs.detach() + 0.3 * torch.randn(shape, generator=generator)
        ratio = (logprobs - old).exp()
        ppo_terms.append(-torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages))
        arrays[f"logprobs.{i}"] = logprobs
        arrays[f"entropy.{i}"] = -(distribution.exp() * distribution).sum(-1)
        arrays[f"advantages.{i}"] = advantages
        arrays[f"old_logprobs.{i}"] = old

    lm_loss = torch.cat(lm_terms).mean()
    ppo_loss = torch.cat(ppo_terms).mean()
    names, parameters = zip(*model.named_parameters())
    for kind, loss in (("lm", lm_loss), ("ppo", ppo_loss)):
        for tensor, gradient in zip(names, torch.autograd.grad(loss, parameters, retain_graph=True)):
            arrays[f"{kind}.grad.{tensor}"] = gradient

    arrays = {key: value.detach().float().contiguous() for key, value in arrays.items()}
    save_file(arrays, target / "golden.safetensors")
    document = {
        "sequences": [tokens.tolist() for tokens in sequences],
        "predict": [mask.int().tolist() for mask in predict],
        "temperature": TEMPERATURE,
        "clip": CLIP,
        "lm_loss": lm_loss.item(),
        "ppo_loss": ppo_loss.item(),
    }
    (target / "golden.json").write_text(json.dumps(document) + "\n")
    model.to(dtype).save_pretrained(target, max_shard_size=spec.get("shard_bytes", "1GB"))
    (target / "generation_config.json").unlink(missing_ok=True)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    for seed, (name, spec) in enumerate(MODELS.items()):
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        golden(name, spec, root / name, seed)
        print(name, sum(f.stat().st_size for f in (root / name).iterdir()), "bytes")
