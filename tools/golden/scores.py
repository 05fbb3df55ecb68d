"""Goldens of decoders with a value head: values and their gradient, from Transformers' sequence classifiers.

Usage:  python tools/golden/scores.py tests/goldens/scores
Made with torch 2.15.0, transformers 5.23.0, safetensors 0.8.0 (CPU, float32).

For each model it writes <name>/ with

  config.json, model.safetensors    the checkpoint of ...ForSequenceClassification with num_labels = 1
  golden.json                       {"sequences": [[token, ...], ...], "loss": number}   evaluated one by one
  golden.safetensors                float32: values.{i} [T], the head after every token (the last one is the model's
                                    own output); targets.{i} [T]; grad.{tensor} of the loss for every tensor

The loss is the mean over all tokens of all sequences of (value - target)^2 / 2.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from decoders import config, random_weights
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification, Gemma3TextConfig, LlamaConfig, Phi3Config

LENGTHS = [3, 9, 14]
MODELS = {
    "llama": config(LlamaConfig, vocab_size=20, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                    intermediate_size=20, num_labels=1),
    "gemma3": Gemma3TextConfig(vocab_size=20, hidden_size=16, num_attention_heads=2, num_key_value_heads=1, head_dim=6,
                               intermediate_size=20, num_hidden_layers=2, query_pre_attn_scalar=8, sliding_window=4,
                               layer_types=["sliding_attention", "full_attention"], max_position_embeddings=64,
                               pad_token_id=None, num_labels=1),
    "phi3": config(Phi3Config, vocab_size=20, hidden_size=16, num_attention_heads=2, num_key_value_heads=1,
                   intermediate_size=20, num_labels=1),
}


def golden(name, model_config, target, seed):
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForSequenceClassification.from_config(model_config, attn_implementation="eager").float().eval()
    random_weights(model, generator, torch.float32)
    arrays, sequences, errors = {}, [], []
    for i, length in enumerate(LENGTHS):
        tokens = torch.randint(model_config.vocab_size, (length,), generator=generator)
        values = model.score(model.model(tokens[None]).last_hidden_state)[0, :, 0]
        assert torch.equal(values[-1], model(tokens[None]).logits[0, 0])
        targets = torch.randn(length, generator=generator)
        errors.append((values - targets) ** 2 / 2)
        sequences.append(tokens.tolist())
        arrays[f"values.{i}"] = values
        arrays[f"targets.{i}"] = targets
    loss = torch.cat(errors).mean()
    names, parameters = zip(*model.named_parameters())
    for tensor, gradient in zip(names, torch.autograd.grad(loss, parameters)):
        arrays[f"grad.{tensor}"] = gradient

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    save_file({key: value.detach().float().contiguous() for key, value in arrays.items()}, target / "golden.safetensors")
    (target / "golden.json").write_text(json.dumps({"sequences": sequences, "loss": loss.item()}) + "\n")
    model.save_pretrained(target)


if __name__ == "__main__":
    for seed, (name, model_config) in enumerate(MODELS.items()):
        target = Path(sys.argv[1]) / name
        golden(name, model_config, target, seed)
        print(name, sum(f.stat().st_size for f in target.iterdir()), "bytes")
