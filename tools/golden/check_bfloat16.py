"""Loads a checkpoint that tokenloop wrote in float32 and the same one in bfloat16, and compares their weights.

Usage:  python tools/golden/check_bfloat16.py <float32 directory> <bfloat16 directory>
tools/golden/export.ts writes both for every family, as `model` and `model-bfloat16`. Made for torch 2.15.0,
transformers 5.23.0. Exits 1 when a weight in bfloat16 is not what torch rounds that in float32 to, or has another type.
"""

import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification


def weights(directory):
    scores = AutoConfig.from_pretrained(directory).architectures[0].endswith("ForSequenceClassification")
    kind = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    return kind.from_pretrained(directory, dtype="auto").state_dict()


def main(exact, rounded):
    exact, rounded = weights(exact), weights(rounded)
    if exact.keys() != rounded.keys():
        print("other tensors:", sorted(exact.keys() ^ rounded.keys()))
        return 1
    wrong = [
        name
        for name, tensor in exact.items()
        if rounded[name].dtype != torch.bfloat16 or not torch.equal(tensor.to(torch.bfloat16), rounded[name])
    ]
    print(f"{len(exact)} tensors, {len(wrong)} differ", *wrong[:3])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
