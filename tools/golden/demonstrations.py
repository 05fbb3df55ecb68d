"""The loss of supervised fine-tuning and its gradient as TRL computes them.

Usage:  python tools/golden/demonstrations.py > tests/goldens/algorithms/demonstrations.json
Needs trl 1.16 and torch 2.15. Everything is computed in float64 and differentiated by PyTorch.

Output: a list of batches {logprobs, loss, gradient}: per sequence the log-probs of its trained tokens, the loss of
SFTTrainer over the padded batch, and its gradient with respect to them.
"""

import json
import random
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import SFTTrainer

random.seed(11)
torch.set_default_dtype(torch.float64)


def batch():
    rows = [[round(random.uniform(-6, -0.01), 3) for _ in range(random.randint(1, 9))] for _ in range(random.randint(1, 5))]
    mask = torch.zeros(len(rows), 12, dtype=torch.int64)
    values = torch.zeros(len(rows), 12)
    for i, row in enumerate(rows):
        mask[i, 2 : 2 + len(row)] = 1
        values[i, 2 : 2 + len(row)] = torch.tensor(row)
    leaf = values.requires_grad_(True)
    outputs = SimpleNamespace(
        log_probs=leaf * mask,  # as TRL has it: zero on ignored positions
        label_mask=mask,
        entropy=torch.zeros(mask.shape),
        is_top1=torch.zeros(mask.shape, dtype=torch.bool),
    )
    trainer = SimpleNamespace(
        model=SimpleNamespace(training=False),
        args=SimpleNamespace(loss_type="nll", average_tokens_across_devices=False, max_length=None),
        accelerator=SimpleNamespace(gather_for_metrics=lambda x: x, num_processes=1, parallelism_config=None),
        aux_loss_enabled=False,
        compute_loss_func=None,
        label_smoother=None,
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        _total_train_tokens=0,
    )
    loss = SFTTrainer.compute_loss(trainer, lambda **_: outputs, {"attention_mask": torch.ones_like(mask)})
    loss.backward()
    gradient = [leaf.grad[i, 2 : 2 + len(row)].tolist() for i, row in enumerate(rows)]
    return {"logprobs": rows, "loss": loss.item(), "gradient": gradient}


json.dump([batch() for _ in range(20)], sys.stdout, separators=(",", ":"))
print()
