"""Advantages as OpenRLHF, verl and the authors of GiGPO compute them, on random ragged batches.

Usage:  python tools/golden/estimators.py <OpenRLHF checkout> <core_gigpo.py> > tests/goldens/algorithms/estimators.json
See peers.py for the versions.

Output: {"cases": [...], "gigpo": [...], "similarity": [[a, b, ratio], ...], "differences": {name: case},
"openrlhf_defaults": {flag: value}}. A case has
  rows      per episode {group, turns: [{tokens, environment, reward, state}]}: policy tokens, then tokens of the
            environment; the reward is earned at the turn's end
  kl, values  per row [P], one number per policy token; beta, gamma, lambda
  expected  name of the function -> per row [P]
Cases of kind `outcome` have groups of one size, one reward per episode and gamma = lambda = 1; `single` have one turn
and any gamma and lambda; `dense` have rewards at every turn.
"""

import json
import logging
import random
import sys
from collections import defaultdict
from difflib import SequenceMatcher
from types import SimpleNamespace

import numpy as np
import peers
import torch

checkout, gigpo_file = sys.argv[1:]
_, openrlhf_utils, Maker, _ = peers.openrlhf(checkout)
verl, _ = peers.verl()
gigpo = peers.from_file("core_gigpo", gigpo_file)
random.seed(1)
logging.disable(logging.WARNING)  # OpenRLHF writes them to where the result goes
VOCABULARY = ["kitchen", "garden", "hall", "desk", "door", "lamp", "1", "2"]


class Batch:
    """Rows laid out as padded matrices [B, T], environment tokens and padding masked."""

    def __init__(self, rows):
        layouts = []
        for row in rows:
            layout = []  # (mask, reward)
            for turn in row["turns"]:
                layout += [(1, 0.0)] * (turn["tokens"] - 1) + [(1, turn["reward"])]
                layout += [(0, 0.0)] * turn["environment"]
            layouts.append(layout)
        width = max(1, max(len(layout) for layout in layouts))
        self.mask = torch.zeros(len(rows), width)
        self.rewards = torch.zeros(len(rows), width)
        for i, layout in enumerate(layouts):
            for t, (mask, reward) in enumerate(layout):
                self.mask[i, t], self.rewards[i, t] = mask, reward
        self.total = self.rewards.sum(-1)
        self.index = np.array([row["group"] for row in rows])

    def spread(self, per_row):
        """[P] per row -> [B, T]; masked positions hold a number that must not count."""
        matrix = torch.full_like(self.mask, 3.25)
        for i, values in enumerate(per_row):
            matrix[i, self.mask[i] > 0] = torch.tensor(values, dtype=torch.float32)
        return matrix

    def collect(self, matrix):
        return [matrix[i, self.mask[i] > 0].tolist() for i in range(len(self.mask))]


def from_openrlhf(case, name, whiten=True, clip=None):
    batch = Batch(case["rows"])
    experience = SimpleNamespace(
        index=list(range(len(case["rows"]))),
        rewards=batch.total.clone(),
        action_mask=batch.mask,
        kl=batch.spread(case["kl"]) * batch.mask,
        values=batch.spread(case["values"]),
        info={},
        response_length=batch.mask.sum(-1),
        truncated=None,
    )
    groups = len(set(batch.index.tolist()))
    args = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=len(case["rows"]) // groups, max_new_tokens=None),
        reward=SimpleNamespace(clip_range=clip, overlong_buffer_len=None, stop_properly_penalty_coef=None),
        algo=SimpleNamespace(
            advantage=SimpleNamespace(
                estimator=name, gamma=case["gamma"], lambd=case["lambda"], no_std_norm=not whiten
            )
        ),
    )
    maker = Maker.__new__(Maker)
    maker.strategy = SimpleNamespace(args=args)
    maker.args, maker.advantage_estimator = args, name
    maker.kl_ctl = SimpleNamespace(value=case["beta"])
    (result,) = maker.compute_advantages_and_returns([experience])
    return batch.collect(result.advantages)


def from_verl(case, name):
    batch = Batch(case["rows"])
    rewards, mask = batch.rewards - case["beta"] * batch.spread(case["kl"]) * batch.mask, batch.mask
    outcome = dict(token_level_rewards=batch.rewards.clone(), response_mask=mask, index=batch.index)
    if name == "gae returns":
        values = batch.spread(case["values"])
        return batch.collect(verl.compute_gae_advantage_return(rewards, values, mask, case["gamma"], case["lambda"])[1])
    if name == "reinforce returns":
        config = SimpleNamespace(gamma=case["gamma"])
        return batch.collect(verl.compute_reinforce_plus_plus_outcome_advantage(rewards, mask, config)[1])
    if name == "remax":
        greedy = torch.tensor([case["greedy"][row["group"]] for row in case["rows"]])
        return batch.collect(verl.compute_remax_outcome_advantage(batch.rewards, greedy, mask)[0])
    if name == "grpo":
        return batch.collect(verl.compute_grpo_outcome_advantage(**outcome)[0])
    if name == "dr_grpo":
        return batch.collect(verl.compute_grpo_outcome_advantage(**outcome, norm_adv_by_std_in_grpo=False)[0])
    if name == "rloo":
        return batch.collect(verl.compute_rloo_outcome_advantage(**outcome)[0])
    if name == "opo":
        return batch.collect(verl.compute_opo_outcome_advantage(**outcome)[0])
    if name == "reinforce_baseline":
        return batch.collect(verl.compute_reinforce_plus_plus_baseline_outcome_advantage(**outcome)[0])
    raise ValueError(name)


def number(scale=1.0):
    return round(random.uniform(-scale, scale), 3)


def random_turn(reward, longest):
    return {
        "tokens": random.randint(1, longest),
        "environment": random.randint(0, 4),
        "reward": reward,
        "state": " ".join(random.choices(VOCABULARY, k=random.randint(1, 3))),
    }


def random_case(kind, sizes, binary=False, equal=False, longest=5, empty=False):
    rows = []
    for group, size in enumerate(sizes):
        for _ in range(size):
            count = 1 if kind == "single" else random.randint(1, 4)
            turns = [random_turn(number() if kind == "dense" else 0.0, longest) for _ in range(count)]
            if kind != "dense":
                turns[-1]["reward"] = 0.5 if equal else float(random.randint(0, 1)) if binary else number(3)
            if kind == "single":
                turns[0]["environment"] = 0
            rows.append({"group": group, "turns": turns})
    if empty:
        rows[-1]["turns"] = []
    lengths = [sum(turn["tokens"] for turn in row["turns"]) for row in rows]
    free = kind != "outcome"
    return {
        "kind": kind,
        "rows": rows,
        "kl": [[number(0.5) for _ in range(n)] for n in lengths],
        "values": [[number() for _ in range(n)] for n in lengths],
        "beta": random.choice([0.0, 0.1]),
        "gamma": random.choice([1.0, 0.9, 0.5]) if free else 1.0,
        "lambda": random.choice([1.0, 0.95, 0.3]) if free else 1.0,
        "greedy": [number() for _ in sizes],
    }


def cases():
    for n in range(24):
        size, groups = random.randint(2, 5), random.randint(1, 3)
        case = random_case("outcome", [size] * groups, binary=n % 3 == 0, empty=n % 6 == 5)
        case["expected"] = {
            f"openrlhf {name}": from_openrlhf(case, name)
            for name in ["gae", "reinforce", "reinforce_baseline", "rloo", "group_norm", "dr_grpo"]
        }
        case["expected"]["openrlhf reinforce_baseline, no std"] = from_openrlhf(case, "reinforce_baseline", False)
        for name in ["grpo", "dr_grpo", "rloo", "opo", "remax", "gae returns", "reinforce_baseline"]:
            case["expected"][f"verl {name}"] = from_verl(case, name)
        yield case
    for n in range(4):  # equal rewards, answers of one token, groups of one
        sizes = [[3, 3], [2, 2], [1, 3], [1, 1, 2]][n]
        case = random_case("outcome", sizes, equal=n == 0, longest=1 if n == 1 else 5)
        names = ["grpo", "dr_grpo", "rloo", "opo", "reinforce_baseline"]
        case["expected"] = {f"verl {name}": from_verl(case, name) for name in names}
        yield case
    for _ in range(24):
        case = random_case("single", [random.randint(2, 4) for _ in range(random.randint(1, 3))])
        case["expected"] = {f"verl {name}": from_verl(case, name) for name in ["gae returns", "reinforce returns"]}
        if len({row["group"] for row in case["rows"]}) == 1:
            case["expected"] |= {f"openrlhf {name}": from_openrlhf(case, name) for name in ["gae", "reinforce"]}
        yield case
    for n in range(24):
        case = random_case("dense", [random.randint(2, 4) for _ in range(random.randint(1, 3))])
        case["expected"] = {f"verl {name}": from_verl(case, name) for name in ["gae returns", "reinforce returns"]}
        if n == 0:  # where the others count tokens of the environment
            one = {**case, "rows": case["rows"][:1], "kl": case["kl"][:1], "values": case["values"][:1], "beta": 0.0}
            for turn in one["rows"][0]["turns"]:
                turn["reward"] = 0.0
            one["rows"][0]["turns"] = [dict(random_turn(0.0, 3), environment=4), random_turn(1.0, 3)]
            tokens = sum(turn["tokens"] for turn in one["rows"][0]["turns"])
            one |= {"kl": [[0.0] * tokens], "values": [[0.1] * tokens], "gamma": 0.9, "lambda": 0.9, "kind": "difference"}
            one["expected"] = {
                "verl gae returns": from_verl(one, "gae returns"),
                "openrlhf reinforce, no std": from_openrlhf(one, "reinforce", False),
                "openrlhf gae, no std": from_openrlhf(one, "gae", False),
            }
            yield one
            continue
        yield case


def gigpo_cases():
    for n in range(24):
        case = random_case("dense", [random.randint(2 if n % 6 else 1, 4) for _ in range(random.randint(1, 3))])
        turns = [(i, row["group"], turn) for i, row in enumerate(case["rows"]) for turn in row["turns"]]
        total = [sum(turn["reward"] for turn in row["turns"]) for row in case["rows"]]
        trajectory = np.array([i for i, _, _ in turns])
        batch = SimpleNamespace(
            non_tensor_batch={
                "rewards": np.array([turn["reward"] for _, _, turn in turns]),
                "traj_uid": trajectory,
                "active_masks": np.ones(len(turns)),
                "env_step": np.concatenate([np.arange(len(row["turns"])) for row in case["rows"]]),
            },
            batch={"input_ids": torch.zeros(1)},
        )
        similar = n % 2 == 1
        scores, _ = gigpo.compute_gigpo_outcome_advantage(
            torch.tensor([[total[i]] for i, _, _ in turns]),
            gigpo.compute_step_discounted_returns(batch, case["gamma"]),
            torch.ones(len(turns), 1),
            np.array([turn["state"] for _, _, turn in turns], dtype=object),
            np.array([group for _, group, _ in turns]),
            trajectory,
            step_advantage_w=0.7,
            mode="mean_std_norm" if n % 4 >= 2 else "mean_norm",
            enable_similarity=similar,
            similarity_thresh=0.6,
        )
        per_row = defaultdict(list)
        for (i, _, _), score in zip(turns, scores[:, 0].tolist()):
            per_row[i].append(score)
        yield {
            "rows": case["rows"],
            "gamma": case["gamma"],
            "omega": 0.7,
            "norm": "mean_std" if n % 4 >= 2 else "mean",
            "similarity": 0.6 if similar else 1,
            "expected": [per_row[i] for i in range(len(case["rows"]))],
        }


def fixed_case(*groups, gamma=1.0):
    """Groups of episodes, an episode a list of rewards: two tokens a turn."""
    rows = [
        {"group": group, "turns": [{"tokens": 2, "environment": 1, "reward": reward, "state": ""} for reward in rewards]}
        for group, episodes in enumerate(groups)
        for rewards in episodes
    ]
    zeros = [[0.0] * 2 * len(row["turns"]) for row in rows]
    return {"kind": "fixed", "rows": rows, "kl": zeros, "values": zeros, "beta": 0.0, "gamma": gamma, "lambda": 1.0, "greedy": []}


def differences():
    """name -> a case that shows what the others do otherwise."""
    turns = fixed_case([[1.0, 0.0], [0.0, 1.0]])
    turns["expected"] = {"openrlhf rloo": from_openrlhf(turns, "rloo")}
    clip = fixed_case([[30.0], [0.0]], [[3.0], [2.0]])
    clip["expected"] = {
        "openrlhf rloo, default clip": from_openrlhf(clip, "rloo", clip=(-10, 10)),
        "openrlhf rloo, clip 0 1": from_openrlhf(clip, "rloo", clip=(0, 1)),
    }
    equal = fixed_case([[0.5], [0.5]], [[1.0], [0.0, 0.0]])
    equal["expected"] = {
        "openrlhf reinforce_baseline": from_openrlhf(equal, "reinforce_baseline"),
        "verl reinforce_baseline": from_verl(equal, "reinforce_baseline"),
    }
    near = fixed_case([[0.0], [1e-6]])
    near["expected"] = {"openrlhf group_norm": from_openrlhf(near, "group_norm"), "verl grpo": from_verl(near, "grpo")}
    discount = fixed_case([[1.0], [0.0]], gamma=0.5)
    discount["expected"] = {"openrlhf rloo": from_openrlhf(discount, "rloo")}
    return {"turns": turns, "clip": clip, "equal": equal, "near": near, "discount": discount}


def similarities():
    for _ in range(30):
        a, b = (" ".join(random.choices(VOCABULARY, k=random.randint(0, 8))) for _ in range(2))
        yield a, b, SequenceMatcher(None, a, b, autojunk=False).ratio()
    long = "".join(random.choices("abcdefg ", k=220))
    yield long, long[:100] + "x" + long[100:], SequenceMatcher(None, long, long[:100] + "x" + long[100:], autojunk=False).ratio()


def main():
    stdout, sys.stdout = sys.stdout, sys.stderr  # the peers print
    result = {"cases": list(cases()), "gigpo": list(gigpo_cases()), "similarity": list(similarities())}
    result["differences"] = differences()
    result["openrlhf_defaults"] = peers.openrlhf_defaults(checkout, "algo.kl.init_coef", "reward.clip_range")
    a, b, _ = result["similarity"][-1]
    result["similarity_with_autojunk"] = SequenceMatcher(None, a, b).ratio()
    json.dump(peers.rounded(result), stdout, separators=(",", ":"))
    stdout.write("\n")


main()
