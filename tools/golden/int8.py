"""Golden log-probabilities of models whose matrices are multiplied in 8 bits, for src/engines/onnx/int8.test.ts.

Usage:  python tools/golden/int8.py tests/goldens
Made with torch 2.15.0, transformers 5.23.0 (CPU, float32).

Reads models of decoders/, which decoders.py wrote, and writes int8.json: model -> [T][V] log-probabilities after each
token of the model's last sequence, of the model in PyTorch with every linear layer replaced by the definition: weights rounded to 127 levels a side of each output's
largest magnitude, inputs to 127 of each row's, integers multiplied exactly, ties to even.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

MODELS = ["grouped-tied", "qwen3-biases", "gemma2", "phi3-longrope"]
LEVELS = torch.tensor(1 / 127, dtype=torch.float32)


def quantize(x):
    """Levels and scale of each row of x."""
    largest = x.abs().amax(dim=-1, keepdim=True)
    levels = torch.round(torch.where(largest > 0, x / largest, 0.0) / LEVELS)
    return levels, largest


class Int8Linear(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.levels, largest = quantize(linear.weight.detach())
        self.scales = (largest * LEVELS).squeeze(-1)
        self.bias = linear.bias

    def forward(self, x):
        levels, largest = quantize(x)
        # Float64 holds the integer sums exactly.
        product = (levels.double() @ self.levels.double().T).float() * (self.scales * LEVELS) * largest
        return product if self.bias is None else product + self.bias


def replace(module):
    for name, child in module.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            replace(child)


def main():
    root = Path(sys.argv[1])
    result = {}
    for name in MODELS:
        directory = root / "decoders" / name
        golden = json.loads((directory / "golden.json").read_text())
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
        tokens = torch.tensor([golden["sequences"][-1]])
        with torch.no_grad():
            exact = torch.log_softmax(model(tokens).logits[0], dim=-1)
            replace(model)
            rounded = torch.log_softmax(model(tokens).logits[0], dim=-1)
        kl = (rounded.exp() * (rounded - exact)).sum(-1)
        print(f"{name}: KL to float32 {kl.mean():.2e}, at most {kl.max():.2e}")
        result[name] = [[round(value, 6) for value in row] for row in rounded.tolist()]
    (root / "int8.json").write_text(json.dumps(result) + "\n")


main()
