"""Losses, gradients and off-policy weights as OpenRLHF, verl, TRL and AReaL compute them, on random ragged batches.

Usage:  python tools/golden/losses.py <OpenRLHF checkout> <AReaL checkout> > tests/goldens/algorithms/losses.json
See peers.py for the versions. Everything is computed in float64 and differentiated by PyTorch.

Output: {"cases": [...], "overlong": [...]}. A case has, per row [P] with one number per policy token, logprobs, old,
reference, behaviour, advantages, entropy, values, old_values, returns and versions (the learner is at version 5), and
  expected  name -> {loss, gradient: per row [P]} (with respect to logprobs, or values for a value loss), and as far as
            the function gives them clip, dual, kl
  weights   name -> per row [P], off-policy weights or masks
  penalty   name -> per row [P], KL per token
In cases of kind `huge` some log-ratios are ±100 nats; of the functions that do not bound them there is one, TRL's. Advantages are
equal inside a row where a function takes one per row ("same").
"""

import json
import random
import sys
from collections import defaultdict
from types import SimpleNamespace
from unittest.mock import MagicMock

import peers
import torch

openrlhf_checkout, areal_checkout = sys.argv[1:]
loss_module, utils, _, length_penalty = peers.openrlhf(openrlhf_checkout)
verl, correction = peers.verl()
areal, m2po, proximal_approximations = peers.areal(areal_checkout)
from trl.trainer.grpo_trainer import GRPOTrainer  # noqa: E402

random.seed(2)
torch.set_default_dtype(torch.float64)
CONSTANT = 16
VERSION = 5
NAMES = ["logprobs", "old", "reference", "behaviour", "advantages", "entropy", "values", "old_values", "returns", "versions"]


def number(low, high):
    return round(random.uniform(low, high), 3)


def random_case(kind, n):
    lengths = [random.randint(1, 7) for _ in range(random.randint(1, 5))]
    if n == 1:
        lengths = [1, 1]
    if n % 5 == 4:
        lengths.append(0)
    case = {name: [] for name in NAMES} | {"kind": kind}
    for length in lengths:
        logprobs = [number(-4, -0.01) for _ in range(length)]
        same = number(-2, 2)

        def near(values, by):
            moved = [round(value + random.gauss(0, by), 3) for value in values]
            if kind == "huge" and length > 1:
                moved[random.randrange(length)] += random.choice([-100.0, 100.0])
            return moved

        case["logprobs"].append(logprobs)
        case["old"].append(logprobs if n == 0 else near(logprobs, 0.3))
        case["reference"].append(near(logprobs, 0.5))
        case["behaviour"].append(near(case["old"][-1], 0.4))
        case["advantages"].append([same] * length if kind == "same" else [number(-2, 2) for _ in range(length)])
        case["entropy"].append([number(0, 3) for _ in range(length)])
        case["values"].append([number(-1, 1) for _ in range(length)])
        case["old_values"].append(near([number(-1, 1) for _ in range(length)], 0.0) if kind != "huge" else case["values"][-1])
        case["returns"].append([number(-1, 1) for _ in range(length)])
        case["versions"].append([random.randint(1, VERSION - 1) for _ in range(length)])
    return case


class Batch:
    """Rows as padded matrices [B, T] with masked holes, as environment tokens and padding make them."""

    def __init__(self, case):
        holes = [[random.random() < 0.25 for _ in range(3 * len(row) + 1)] for row in case["logprobs"]]
        self.places = []
        for row, hole in zip(case["logprobs"], holes):
            free = [t for t in range(len(hole)) if not hole[t]]
            self.places.append(free[: len(row)] if len(free) >= len(row) else list(range(len(row))))
        width = max(1, max((places[-1] + 1 for places in self.places if places), default=1))
        self.mask = torch.zeros(len(self.places), width)
        for i, places in enumerate(self.places):
            self.mask[i, places] = 1.0
        for name in NAMES:
            matrix = torch.full_like(self.mask, 0.37)
            for i, places in enumerate(self.places):
                matrix[i, places] = torch.tensor(case[name][i], dtype=torch.float64)
            setattr(self, name, matrix)
        self.logprobs.requires_grad_(True)
        self.values.requires_grad_(True)

    def rows(self, matrix):
        return [matrix[i, places].tolist() for i, places in enumerate(self.places)]


def differentiate(case, function, wrt="logprobs"):
    batch = Batch(case)
    loss, extra = function(batch)
    loss.backward()
    gradient = getattr(batch, wrt).grad
    return {"loss": loss.item(), "gradient": batch.rows(gradient), **{k: float(v) for k, v in extra.items()}}


def openrlhf_policy(**options):
    def run(b):
        module = loss_module.PolicyLoss(vllm_is_truncated_threshold=[0.5, 5.0], **options)
        loss, clip, kl, _ = module(b.logprobs, b.old, b.advantages, b.mask, b.behaviour)
        return loss, {"clip": clip, "kl": kl}

    return run


def openrlhf_value(clip):
    return lambda b: (loss_module.ValueLoss(clip)(b.values, b.old_values, b.returns, b.mask), {})


def openrlhf_sft(b):
    return loss_module.SFTLoss()(b.logprobs, b.mask), {}


def verl_policy(name, mode="token-mean", low=0.2, high=0.28):
    config = verl.ActorConfig(
        strategy="fsdp", rollout_n=1, use_dynamic_bsz=True, clip_ratio_low=low, clip_ratio_high=high, tau_pos=1.0, tau_neg=1.05
    )
    object.__setattr__(config, "global_batch_info", {"loss_scale_factor": CONSTANT} if mode.endswith("norm") else {})

    def run(b):
        function = getattr(verl, f"compute_policy_loss_{name}")
        loss, metrics = function(b.old, b.logprobs, b.advantages, b.mask, mode, config)
        found = {"clip": "actor/pg_clipfrac", "dual": "actor/pg_clipfrac_lower"}
        return loss, {key: metrics[name] for key, name in found.items() if name in metrics}

    return run


def verl_value(b):
    return verl.compute_value_loss(b.values, b.returns, b.old_values, b.mask, 0.5)[0], {}


def trl_policy(loss_type, level="token", beta=0.0, entropy=0.0):
    def run(b):
        trainer = MagicMock()
        trainer.loss_type, trainer.importance_sampling_level, trainer.beta = loss_type, level, beta
        trainer.epsilon_low, trainer.epsilon_high = 0.2, 5.0 if loss_type == "cispo" else 0.28
        trainer.top_entropy_quantile, trainer.off_policy_mask_threshold, trainer.use_vllm = 1.0, None, False
        trainer.aux_loss_enabled, trainer.max_completion_length = False, CONSTANT
        trainer._entropy_bonus_enabled, trainer.entropy_coef, trainer.use_adaptive_entropy = entropy > 0, entropy, False
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.training = True
        trainer.args = SimpleNamespace(
            delta=None, use_bias_correction_kl=False, sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, steps_per_generation=1
        )
        trainer.accelerator.num_processes = 1
        trainer.accelerator.gather = lambda x: x
        trainer.accelerator.reduce = lambda x, reduction: x
        trainer._metrics = {"train": defaultdict(list)}
        trainer._get_per_token_logps_and_entropies = lambda *args, **kwargs: (b.logprobs, b.entropy, None)
        ids = torch.zeros_like(b.mask, dtype=torch.long)
        inputs = {
            "prompt_ids": ids[:, :1],
            "prompt_mask": ids[:, :1],
            "completion_ids": ids,
            "completion_mask": b.mask,
            "advantages": b.advantages,
            "old_per_token_logps": b.old,
            "ref_per_token_logps": b.reference,
            "num_items_in_batch": b.mask.sum(),
        }
        if level == "sequence":  # one advantage per row
            inputs["advantages"] = (b.advantages * b.mask).sum(-1) / b.mask.sum(-1).clamp(min=1)
        return GRPOTrainer._compute_loss(trainer, trainer.model, inputs), {}

    return run


def areal_decoupled(b, proximal=None, lower=0.5):
    config = SimpleNamespace(level="token", action="clamp", metric="ratio", agg="sum", lower=lower, upper=5.0)
    proximal = b.old if proximal is None else proximal
    loss, _ = areal.ppo_actor_loss_fn(
        b.logprobs, proximal, b.behaviour, b.advantages, 0.2, b.mask.bool(), 0.28, rejection_sampling=config
    )
    return loss, {}


def areal_loglinear(b):
    found = proximal_approximations(b.behaviour, b.logprobs.detach(), b.versions, VERSION, "loglinear")
    return areal_decoupled(b, found["loglinear"], lower=0.0)


BOUNDED = {
    "openrlhf ppo": openrlhf_policy(),
    "openrlhf ppo, clip-higher": openrlhf_policy(clip_eps_high=0.28),
    "openrlhf ppo, dual clip": openrlhf_policy(dual_clip=3.0),
    "openrlhf ppo, no clip": openrlhf_policy(clip_eps_low=1e9, clip_eps_high=1e9),
    "openrlhf sft": openrlhf_sft,
    "verl ppo": verl_policy("vanilla"),
    "verl ppo, sequence": verl_policy("vanilla", "seq-mean-token-mean"),
    "verl ppo, constant": verl_policy("vanilla", "seq-mean-token-sum-norm"),
    "verl cispo": verl_policy("cispo", low=1.0, high=4.0),
    "verl sapo": verl_policy("sapo"),
}
UNBOUNDED = {
    "openrlhf gspo": openrlhf_policy(policy_loss_type="gspo"),
    "openrlhf tis": openrlhf_policy(enable_vllm_is_correction=True),
    "openrlhf icepop": openrlhf_policy(enable_vllm_is_correction=True, vllm_is_correction_type="icepop"),
    "openrlhf seq-mask-tis": openrlhf_policy(enable_vllm_is_correction=True, vllm_is_correction_type="seq-mask-tis"),
    "verl gspo": verl_policy("gspo", "seq-mean-token-mean"),
    "verl reinforce": verl_policy("reinforce"),
    "trl dapo": trl_policy("dapo"),
    "trl grpo": trl_policy("grpo"),
    "trl dr_grpo": trl_policy("dr_grpo"),
    "trl dapo, kl": trl_policy("dapo", beta=0.05),
    "trl dapo, entropy": trl_policy("dapo", entropy=0.01),
    "trl cispo": trl_policy("cispo"),
    "trl sapo": trl_policy("sapo"),
    "areal decoupled": areal_decoupled,
    "areal loglinear": areal_loglinear,
}
SAME = {"openrlhf gspo": UNBOUNDED["openrlhf gspo"], "verl gspo": UNBOUNDED["verl gspo"], "trl gspo": trl_policy("grpo", "sequence")}
VALUE = {"openrlhf value": openrlhf_value(None), "openrlhf value, clip": openrlhf_value(0.5), "verl value, clip": verl_value}


def weights(case):
    b = Batch(case)
    delta = b.old - b.behaviour
    found = {}
    for level in ["token", "sequence"]:
        found[f"verl {level}-tis"] = correction.compute_rollout_correction_weights(delta, b.mask, level, 2.0)[0]
    # The statistic is the log of the inverse ratio: the band 1/5 .. 2 is 0.5 .. 5 for the ratio.
    for name, option in [("sequence-reject", "seq_sum_k1"), ("geometric-reject", "seq_mean_k1")]:
        if b.mask.sum(-1).min() > 0:
            found[f"verl {name}"] = correction.compute_rollout_rejection_mask(delta, b.mask, option, "0.2_2.0")[0]
    found["areal m2po"] = m2po(b.behaviour, b.old, b.mask.bool(), 0.08).double()
    return {name: b.rows(matrix) for name, matrix in found.items()}


def penalties(case):
    b = Batch(case)
    found = {f"openrlhf {k}": utils.compute_approx_kl(b.logprobs, b.reference, k) for k in ["k1", "k2", "k3"]}
    found["verl k3"] = verl.kl_penalty_forward(b.logprobs, b.reference, "k3")
    return {name: b.rows(matrix.detach()) for name, matrix in found.items()}


def cases():
    for n in range(26):
        case = random_case("plain", n)
        functions = BOUNDED | {k: f for k, f in UNBOUNDED.items() if not k.endswith("gspo")}
        if not all(case["logprobs"]):  # seq-mask-tis divides by the length of a row
            del functions["openrlhf seq-mask-tis"]
        case["expected"] = {name: differentiate(case, f) for name, f in functions.items()}
        case["expected"] |= {name: differentiate(case, f, "values") for name, f in VALUE.items()}
        case["weights"], case["penalty"] = weights(case), penalties(case)
        yield case
    for n in range(25):
        case = random_case("same", n)
        case["expected"] = {name: differentiate(case, f) for name, f in SAME.items()}
        yield case
    for n in range(4):
        case = random_case("huge", 2)
        functions = BOUNDED | {"trl dapo": UNBOUNDED["trl dapo"]}
        case["expected"] = {name: differentiate(case, f) for name, f in functions.items()}
        case["weights"] = {"verl token-tis": weights(case)["verl token-tis"]}
        case["penalty"] = penalties(case)
        yield case


def overlong():
    for length in range(1, 23):
        experience = SimpleNamespace(response_length=torch.tensor([length]), rewards=torch.tensor([1.0]), info={})
        length_penalty.apply_overlong_penalty([experience], 16, 4, 0.5)
        yield length, experience.rewards.item()


def main():
    stdout, sys.stdout = sys.stdout, sys.stderr
    result = {"cases": list(cases()), "overlong": list(overlong())}
    json.dump(peers.rounded(result), stdout, separators=(",", ":"))
    stdout.write("\n")


main()
