"""Goldens of AdamW with gradient clipping (PyTorch) and of learning-rate schedules (Transformers).

Usage:  python tools/golden/optimizer.py tests/goldens
Made with torch 2.15.0, transformers 5.23.0, safetensors 0.8.0 (CPU, float32).

Writes
  adamw/<case>.safetensors   weights [n] at the start, gradients [20, n] before clipping, norms [20] before clipping,
                             clipped [20, n], after [20, n] weights after each step, first_moment [n],
                             second_moment [n] at the end. The n weights are a [7, 5] matrix and then a [6] vector.
  adamw/cases.json           case -> {betas, eps, weightDecay, maxNorm, lrs [20], decayVector}; where decayVector is
                             false the vector is in a group of its own without weight decay.
  muon/<case>.safetensors    weights [n] at the start, gradients [20, n], after [20, n] weights after each step,
                             momentum [n] of the matrices at the end (zeros for the vector). The n weights are a tall
                             [9, 5], a wide [4, 11] and a square [6, 6] matrix, moved by Muon, and then a [7] vector, moved
                             by AdamW. torch computes the orthogonal matrix in bfloat16; here it does so in float32.
  muon/cases.json            case -> {lr, adamLr, momentum, nesterov, steps, weightDecay, betas, eps}
  schedules.json             [{name, warmupSteps, totalSteps, minLrRatio, factors}]: the factor of the peak learning
                             rate for the updates 0 .. totalSteps. `constant` is Transformers' constant_with_warmup.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.optim import _muon
from transformers import get_scheduler

STEPS = 20
MATRIX = (7, 5)
VECTOR = (6,)

CASES = {
    "decay": dict(betas=[0.9, 0.999], eps=1e-8, weightDecay=0.1, maxNorm=1.0, decayVector=True),
    "spared": dict(betas=[0.9, 0.95], eps=1e-6, weightDecay=0.3, maxNorm=2.0, decayVector=False),
    "plain": dict(betas=[0.5, 0.9], eps=1e-3, weightDecay=0.0, maxNorm=0.5, decayVector=True),
}


def adamw(case, seed):
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.nn.Parameter(torch.randn(MATRIX, generator=generator))
    vector = torch.nn.Parameter(torch.randn(VECTOR, generator=generator))
    flat = lambda a, b: torch.cat([a.detach().flatten(), b.detach().flatten()])
    decay = case["weightDecay"]
    optimizer = torch.optim.AdamW(
        [
            {"params": [matrix], "weight_decay": decay},
            {"params": [vector], "weight_decay": decay if case["decayVector"] else 0.0},
        ],
        betas=tuple(case["betas"]),
        eps=case["eps"],
        foreach=False,
    )
    lrs = [0.05 * (1 + torch.rand((), generator=generator).item()) for _ in range(STEPS)]
    rows = {"gradients": [], "norms": [], "clipped": [], "after": []}
    start = flat(matrix, vector)
    for lr in lrs:
        # Norms on both sides of every maxNorm, over four orders of magnitude.
        scale = 10 ** (4 * torch.rand((), generator=generator).item() - 3)
        matrix.grad = scale * torch.randn(MATRIX, generator=generator)
        vector.grad = scale * torch.randn(VECTOR, generator=generator)
        rows["gradients"].append(flat(matrix.grad, vector.grad))
        rows["norms"].append(torch.nn.utils.clip_grad_norm_([matrix, vector], case["maxNorm"]))
        rows["clipped"].append(flat(matrix.grad, vector.grad))
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        rows["after"].append(flat(matrix, vector))
    states = [optimizer.state[matrix], optimizer.state[vector]]
    arrays = {name: torch.stack(values) for name, values in rows.items()}
    arrays["weights"] = start
    arrays["first_moment"] = flat(*(state["exp_avg"] for state in states))
    arrays["second_moment"] = flat(*(state["exp_avg_sq"] for state in states))
    return {**case, "lrs": lrs}, arrays


MATRICES = [(9, 5), (4, 11), (6, 6)]

MUON_CASES = {
    "nesterov": dict(lr=0.02, adamLr=0.005, momentum=0.95, nesterov=True, steps=5, weightDecay=0.1),
    "heavy-ball": dict(lr=0.05, adamLr=0.01, momentum=0.8, nesterov=False, steps=3, weightDecay=0.0),
}


class Float32Torch:
    """The module torch with float32 in the place of bfloat16."""

    bfloat16 = torch.float32

    def __getattr__(self, name):
        return getattr(torch, name)


def muon(case, seed):
    _muon._zeropower_via_newtonschulz.__globals__["torch"] = Float32Torch()
    generator = torch.Generator().manual_seed(100 + seed)
    matrices = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in MATRICES]
    vector = torch.nn.Parameter(torch.randn((7,), generator=generator))
    flat = lambda tensors: torch.cat([tensor.detach().flatten() for tensor in tensors])
    every = [*matrices, vector]
    adam = dict(betas=[0.9, 0.95], eps=1e-8)
    hidden = torch.optim.Muon(
        matrices,
        lr=case["lr"],
        weight_decay=case["weightDecay"],
        momentum=case["momentum"],
        nesterov=case["nesterov"],
        ns_steps=case["steps"],
    )
    rest = torch.optim.AdamW([vector], lr=case["adamLr"], weight_decay=0.0, foreach=False, **adam)
    rows = {"gradients": [], "after": []}
    start = flat(every)
    for _ in range(STEPS):
        scale = 10 ** (4 * torch.rand((), generator=generator).item() - 3)
        for tensor in every:
            tensor.grad = scale * torch.randn(tensor.shape, generator=generator)
        rows["gradients"].append(flat([tensor.grad for tensor in every]))
        hidden.step()
        rest.step()
        rows["after"].append(flat(every))
    arrays = {name: torch.stack(values) for name, values in rows.items()}
    arrays["weights"] = start
    arrays["momentum"] = flat([*(hidden.state[m]["momentum_buffer"] for m in matrices), torch.zeros(7)])
    return {**case, **adam}, arrays


def schedule(name, warmup, total, min_ratio):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    known = {"constant": "constant_with_warmup"}.get(name, name)
    extra = {"min_lr_rate": min_ratio} if name == "cosine_with_min_lr" else {}
    scheduler = get_scheduler(known, optimizer, warmup, total, scheduler_specific_kwargs=extra)
    factors = []
    for _ in range(total + 1):
        factors.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return dict(name=name, warmupSteps=warmup, totalSteps=total, minLrRatio=min_ratio, factors=factors)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    (root / "adamw").mkdir(parents=True, exist_ok=True)
    settings = {}
    for seed, (name, case) in enumerate(CASES.items()):
        settings[name], arrays = adamw(case, seed)
        save_file(arrays, root / "adamw" / f"{name}.safetensors")
    (root / "adamw" / "cases.json").write_text(json.dumps(settings) + "\n")
    (root / "muon").mkdir(parents=True, exist_ok=True)
    settings = {}
    for seed, (name, case) in enumerate(MUON_CASES.items()):
        settings[name], arrays = muon(case, seed)
        save_file(arrays, root / "muon" / f"{name}.safetensors")
    (root / "muon" / "cases.json").write_text(json.dumps(settings) + "\n")
    names = ["constant", "linear", "cosine", "cosine_with_min_lr"]
    spans = [(0, 10, 0.1), (4, 17, 0.1), (1, 1, 0.25), (9, 9, 0.0), (3, 40, 0.5)]
    schedules = [schedule(name, *span) for name in names for span in spans]
    (root / "schedules.json").write_text(json.dumps(schedules) + "\n")
