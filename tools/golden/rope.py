"""Goldens of rotary embeddings: frequencies and the attention factor that Transformers derives from configurations.

Usage:  python tools/golden/rope.py tests/goldens/rope.json
Made with torch 2.15.0, transformers 5.23.0.

Writes {name: {"config": the config.json, "ropes": [{"frequencies": [...], "scale": number}, ...]}}, one rope for each
kind of layer in the order of the first layer of each kind. The parameters are those of published models.
"""

import json
import sys
from pathlib import Path

from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

TINY = dict(
    vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
    num_key_value_heads=1, pad_token_id=None, bos_token_id=None, eos_token_id=None,
)
# Head sizes of the published models: Phi-3 has no head_dim, so its hidden size gives it.
PHI = {**TINY, "num_key_value_heads": 2}

MODELS = {
    "Llama 3.2": LlamaForCausalLM(LlamaConfig(**TINY, head_dim=64, max_position_embeddings=131072, rope_parameters=dict(
        rope_type="llama3", rope_theta=500000.0, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=8192))),
    "linear": LlamaForCausalLM(LlamaConfig(**TINY, head_dim=64, max_position_embeddings=16384, rope_parameters=dict(
        rope_type="linear", rope_theta=10000.0, factor=2.5))),
    "dynamic": LlamaForCausalLM(LlamaConfig(**TINY, head_dim=64, max_position_embeddings=4096, rope_parameters=dict(
        rope_type="dynamic", rope_theta=10000.0, factor=2.0))),
    "Qwen 2.5 with YaRN": Qwen2ForCausalLM(Qwen2Config(**TINY, head_dim=128, max_position_embeddings=131072,
        rope_parameters=dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0,
                             original_max_position_embeddings=32768))),
    "YaRN with every field": Qwen2ForCausalLM(Qwen2Config(**TINY, head_dim=64, max_position_embeddings=8192,
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=2.0, beta_fast=24.0, beta_slow=2.0,
                             mscale=0.7, mscale_all_dim=1.1, truncate=False,
                             original_max_position_embeddings=4096))),
    "YaRN with a factor on attention": Qwen2ForCausalLM(Qwen2Config(**TINY, head_dim=32, max_position_embeddings=64,
        rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=2.0, attention_factor=0.9,
                             original_max_position_embeddings=32))),
    "Phi-4-mini": Phi3ForCausalLM(Phi3Config(**{**PHI, "hidden_size": 64}, max_position_embeddings=131072,
        original_max_position_embeddings=4096, rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
            short_factor=[1 + i / 20 for i in range(12)], long_factor=[1.5**i for i in range(12)]))),
    "SmolLM3": SmolLM3ForCausalLM(SmolLM3Config(**TINY, head_dim=128, no_rope_layers=[1])),
    "Gemma 3": Gemma3ForCausalLM(Gemma3TextConfig(**{**TINY, "num_hidden_layers": 2}, head_dim=256, sliding_window=512,
        query_pre_attn_scalar=256, layer_types=["sliding_attention", "full_attention"],
        max_position_embeddings=131072, rope_parameters={
            "full_attention": dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
            "sliding_attention": dict(rope_type="default", rope_theta=10000.0)})),
}


def ropes(model):
    rotary = model.model.rotary_emb
    kinds = ["sliding_attention_", "full_attention_"] if hasattr(rotary, "full_attention_inv_freq") else [""]
    scale = lambda kind: getattr(rotary, f"{kind}attention_scaling")
    return [{"frequencies": getattr(rotary, f"{kind}inv_freq").tolist(), "scale": scale(kind)} for kind in kinds]


if __name__ == "__main__":
    document = {}
    for name, model in MODELS.items():
        model.config.architectures = [type(model).__name__]
        document[name] = {"config": model.config.to_dict(), "ropes": ropes(model)}
    Path(sys.argv[1]).write_text(json.dumps(document) + "\n")
