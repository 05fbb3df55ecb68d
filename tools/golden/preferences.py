"""Losses and gradients of reward models and of preference optimisation as TRL and OpenRLHF compute them.

Usage:  python tools/golden/preferences.py <OpenRLHF checkout> > tests/goldens/algorithms/preferences.json
See peers.py for the versions. Everything is computed in float64 and differentiated by PyTorch.

Output: {"rewards": [...], "preferences": [...]}. A case of `rewards` has per pair chosen, rejected and margin; one of
`preferences` has per pair and side (chosen, rejected) the tokens' log-probs and those of the reference. `expected` is
name -> {loss, gradient, acc, chosen_reward, reject_reward}: the gradient is with respect to rewards or log-probs, in the
shape of the input; the rest as far as the function tells it.
"""

import json
import random
import sys
from collections import defaultdict
from types import SimpleNamespace

import peers
import torch

loss_module, *_ = peers.openrlhf(sys.argv[1])
from trl import DPOTrainer, RewardTrainer  # noqa: E402

random.seed(8)
torch.set_default_dtype(torch.float64)


def number(low, high):
    return round(random.uniform(low, high), 3)


def accelerator():
    return SimpleNamespace(device="cpu", gather=lambda x: x, gather_for_metrics=lambda x: x)


def recorded(loss, leaf, metrics):
    loss.backward()
    return {"loss": loss.item(), "gradient": leaf.grad.tolist(), **metrics}


def trl_reward(chosen, rejected, margin):
    leaf = torch.tensor([chosen, rejected], requires_grad=True)
    metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
    trainer = SimpleNamespace(
        model=SimpleNamespace(training=False),
        args=SimpleNamespace(center_rewards_coefficient=None),
        accelerator=accelerator(),
        _metrics=metrics,
        _total_train_tokens=0,
    )
    inputs = {"margin": torch.tensor(margin)} if margin else {}
    model = lambda **_: SimpleNamespace(logits=leaf.reshape(-1, 1))
    loss = RewardTrainer.compute_loss(trainer, model, inputs)
    return recorded(loss, leaf, {"acc": metrics["eval"]["accuracy"][0]})


def openrlhf_reward(module, chosen, rejected, margin):
    leaf = torch.tensor([chosen, rejected], requires_grad=True)
    loss = module(leaf[0], leaf[1], torch.tensor(margin) if margin else None)
    return recorded(loss, leaf, {})


def reward_case(spread):
    pairs = random.randint(1, 6)
    chosen = [number(-spread, spread) for _ in range(pairs)]
    rejected = [number(-spread, spread) for _ in range(pairs)]
    if pairs > 1:
        rejected[0] = chosen[0]
    margin = [number(0, 2) for _ in range(pairs)]
    expected = {
        "trl": trl_reward(chosen, rejected, None),
        "trl margin": trl_reward(chosen, rejected, margin),
        "openrlhf": openrlhf_reward(loss_module.PairWiseLoss(), chosen, rejected, None),
        "openrlhf margin": openrlhf_reward(loss_module.PairWiseLoss(), chosen, rejected, margin),
        "openrlhf logexp": openrlhf_reward(loss_module.LogExpLoss(), chosen, rejected, margin),
    }
    return {"chosen": chosen, "rejected": rejected, "margin": margin, "expected": expected}


def padded(rows):
    """[2B, T] chosen rows first; the first column is the prompt's only token, which is never predicted."""
    width = max(len(row) for row in rows) + 1
    values = torch.zeros(len(rows), width)
    mask = torch.zeros(len(rows), width, dtype=torch.int64)
    for i, row in enumerate(rows):
        values[i, 1 : len(row) + 1] = torch.tensor(row)
        mask[i, 1 : len(row) + 1] = 1
    return values, mask


def unpadded(gradient, rows):
    """[pairs][chosen, rejected][tokens]"""
    parts = [gradient[i, 1 : len(row) + 1].tolist() for i, row in enumerate(rows)]
    half = len(rows) // 2
    return [[parts[i], parts[half + i]] for i in range(half)]


def sides(pairs):
    return [pair[0] for pair in pairs] + [pair[1] for pair in pairs]


def trl_preference(case, loss_types, weights, beta):
    rows = sides(case["logprobs"])
    leaf, mask = padded(rows)
    leaf.requires_grad_(True)
    reference, _ = padded(sides(case["reference"]))
    metrics = {"train": defaultdict(list), "eval": defaultdict(list)}
    count = mask[:, 1:].shape
    trainer = SimpleNamespace(
        model=SimpleNamespace(training=False),
        accelerator=accelerator(),
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        aux_loss_enabled=False,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=loss_types,
        loss_weights=weights,
        beta=beta,
        label_smoothing=0.0,
        use_weighting=False,
        _metrics=metrics,
        _total_train_tokens=0,
    )
    half = len(rows) // 2
    sums = (reference * mask).sum(1)
    inputs = {
        "input_ids": torch.zeros_like(mask),
        "attention_mask": torch.ones_like(mask),
        "completion_mask": mask,
        "ref_chosen_logps": sums[:half],
        "ref_rejected_logps": sums[half:],
    }
    outputs = SimpleNamespace(
        log_probs=leaf[:, 1:],
        entropy=torch.zeros(count),
        mean_logits=torch.zeros(count),
        is_top1=torch.zeros(count, dtype=torch.bool),
    )
    loss = DPOTrainer._compute_loss(trainer, lambda **_: outputs, inputs, False)
    told = metrics["eval"]
    return recorded(loss, leaf, {}) | {
        "gradient": unpadded(leaf.grad, rows),
        "acc": told["rewards/accuracies"][0],
        "chosen_reward": told["rewards/chosen"][0],
        "reject_reward": told["rewards/rejected"][0],
    }


def openrlhf_preference(case, nll=0.0, **options):
    rows = sides(case["logprobs"])
    leaf, mask = padded(rows)
    leaf.requires_grad_(True)
    reference, _ = padded(sides(case["reference"]))
    half = len(rows) // 2
    policy, ref = (leaf * mask).sum(1), (reference * mask).sum(1)
    module = loss_module.DPOLoss(**options)
    loss, chosen, rejected = module(policy[:half], policy[half:], ref[:half], ref[half:])
    # openrlhf/trainer/dpo_trainer.py: the mean over chosen rows of their negative token mean
    loss = loss - nll * (policy[:half] / mask[:half].sum(1)).mean()
    return recorded(loss, leaf, {}) | {
        "gradient": unpadded(leaf.grad, rows),
        "chosen_reward": chosen.mean().item(),
        "reject_reward": rejected.mean().item(),
    }


def preference_case():
    pairs = random.randint(1, 4)
    logprobs = [[[number(-4, -0.01) for _ in range(random.randint(1, 6))] for _ in range(2)] for _ in range(pairs)]
    reference = [[[round(x + random.gauss(0, 0.5), 3) for x in side] for side in pair] for pair in logprobs]
    case = {"logprobs": logprobs, "reference": reference}
    case["expected"] = {
        "trl": trl_preference(case, ["sigmoid"], [1.0], 0.1),
        "trl beta": trl_preference(case, ["sigmoid"], [1.0], 0.7),
        "trl mean": trl_preference(case, ["sigmoid_norm"], [1.0], 0.7),
        "trl ipo": trl_preference(case, ["ipo"], [1.0], 0.2),
        "openrlhf": openrlhf_preference(case, beta=0.1),
        "openrlhf smoothing": openrlhf_preference(case, beta=0.3, label_smoothing=0.1),
        "openrlhf ipo": openrlhf_preference(case, beta=0.2, ipo=True),
        "openrlhf nll": openrlhf_preference(case, nll=0.25, beta=0.1),
    }
    if pairs == 1:
        # With one pair its mean over chosen tokens is also the mean over rows.
        case["expected"]["trl sft"] = trl_preference(case, ["sigmoid", "sft"], [1.0, 0.25], 0.1)
    return case


rewards = [reward_case(spread) for spread in (1, 3, 3, 30, 200) for _ in range(5)]
preferences = [preference_case() for _ in range(24)]
json.dump({"rewards": rewards, "preferences": preferences}, sys.stdout)
print()
