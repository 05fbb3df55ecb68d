"""Goldens of tiny Llama-style decoders: logits, and gradients of two losses, from PyTorch and Transformers.

Usage:  python tools/golden/llama.py tests/goldens/llama
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
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

TEMPERATURE = 0.7
CLIP = 0.2
LENGTHS = [2, 7, 12, 17]


def config(cls, **fields):
    theta = fields.pop("rope_theta", 10000.0)
    defaults = dict(
        num_hidden_layers=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        bos_token_id=1,
        eos_token_id=2,
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
}


def random_weights(model, generator, dtype):
    """Large enough that attention and logits are far from uniform; rounded to the dtype they are stored in."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        is_norm = name.endswith("norm.weight") or "layernorm" in name
        values = 1 + 0.2 * noise if is_norm else 0.25 * noise
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
        golden(name, spec, root / name, seed)
        print(name, sum(f.stat().st_size for f in (root / name).iterdir()), "bytes")
