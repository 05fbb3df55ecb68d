"""Goldens of evaluation: pass@k, standard errors, paired bootstrap, an exponential moving average.

Usage:  python tools/golden/evaluation.py tests/goldens/evaluation.json
Made with numpy, scipy and torch; the versions are in the file.

pass_at_k: [n, c, k, value], the estimator of the HumanEval harness as its paper prints it (Chen et al. 2021, figure 3).
standard_errors: {values, value}, scipy.stats.sem.
bootstrap: for each case `before`, `after`, the `indices` [resamples, n] that numpy drew, and what follows from them with
numpy.mean and numpy.quantile: `difference`, `low`, `high`. `scipy` has [low, high] of scipy.stats.bootstrap (percentile,
paired) with 20 000 resamples of its own, and `standard_error` of its bootstrap distribution.
average: weights of some steps, and torch's moving average of them (torch.optim.swa_utils.get_ema_multi_avg_fn).
"""

import json
import sys

import numpy as np
import scipy
import torch
from scipy import stats
from torch.optim.swa_utils import get_ema_multi_avg_fn


def pass_at_k(n: int, c: int, k: int) -> float:
    return 1.0 if n - c < k else float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


def bootstrap(before: np.ndarray, after: np.ndarray, resamples: int, rng: np.random.Generator) -> dict:
    n = len(before)
    indices = rng.integers(0, n, size=(resamples, n))
    means = (after - before)[indices].mean(axis=1)
    theirs = stats.bootstrap(
        (before, after),
        lambda b, a, axis: np.mean(a - b, axis=axis),
        paired=True, vectorized=True, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1),
    )
    return {
        "before": before.tolist(),
        "after": after.tolist(),
        "indices": indices.tolist(),
        "difference": float(np.mean(after - before)),
        "low": float(np.quantile(means, 0.025)),
        "high": float(np.quantile(means, 0.975)),
        "scipy": [float(theirs.confidence_interval.low), float(theirs.confidence_interval.high)],
        "standard_error": float(theirs.standard_error),
    }


def average(beta: float) -> dict:
    torch.manual_seed(0)
    steps = [torch.randn(5) for _ in range(6)]
    update = get_ema_multi_avg_fn(beta)
    kept = steps[0].clone()
    for weights in steps[1:]:
        update([kept], [weights], None)
    return {"beta": beta, "steps": [s.tolist() for s in steps], "average": kept.tolist()}


def main() -> None:
    rng = np.random.default_rng(0)
    counts = [(1, 0, 1), (1, 1, 1), (4, 2, 2), (5, 1, 3), (10, 3, 5), (16, 1, 8), (20, 20, 20), (100, 3, 10), (200, 7, 100)]
    samples = [rng.normal(size=9), rng.integers(0, 2, size=40).astype(float), np.array([0.5])]
    solved = rng.integers(0, 5, size=30) / 4
    result = {
        "versions": {"numpy": np.__version__, "scipy": scipy.__version__, "torch": torch.__version__},
        "pass_at_k": [[*case, pass_at_k(*case)] for case in counts],
        "standard_errors": [
            {"values": v.tolist(), "value": float(stats.sem(v)) if len(v) > 1 else 0.0} for v in samples
        ],
        "bootstrap": [
            bootstrap(rng.normal(size=12), rng.normal(loc=0.8, size=12), 60, rng),
            bootstrap(solved, np.clip(solved + rng.integers(-1, 3, size=30) / 4, 0, 1), 40, rng),
        ],
        "average": average(0.75),
    }
    with open(sys.argv[1], "w") as file:
        json.dump(result, file)
        file.write("\n")


main()
