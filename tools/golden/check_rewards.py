"""Asks `tokenloop serve-rm` as OpenRLHF does, and compares its scores with those of Transformers.

Usage:  python tools/golden/check_rewards.py <directory with the package openrlhf> <reward model> <texts> <url> [<url> ...]

The reward model is a directory that `tokenloop rm` wrote, served at each url without normalisation. <texts> is a JSONL
file of pairs; the first 100 prompts and chosen answers are scored as the chat template renders them. Made for torch 2.15.0,
transformers 5.23.0 and OpenRLHF at commit 3c3be623, of which one module is loaded by itself, because the package imports
DeepSpeed. Exits 1 when a score differs by more than 1e-4.
"""

import asyncio
import importlib.util
import json
import sys
import types
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

TOLERANCE = 1e-4
LIMIT = 100


def openrlhf_agent(source):
    for name in ("openrlhf", "openrlhf.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(source.joinpath(*name.split(".")))]
        sys.modules[name] = package
    spec = importlib.util.spec_from_file_location("openrlhf.utils.agent", source / "openrlhf/utils/agent.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(source, directory, rows, *urls):
    torch.set_num_threads(1)
    model = AutoModelForSequenceClassification.from_pretrained(directory, dtype=torch.float32)
    if model.config.num_labels != 1:
        print(f"{directory} has {model.config.num_labels} labels instead of one")
        return 1
    tokenizer = AutoTokenizer.from_pretrained(directory)
    pairs = [json.loads(line) for line in Path(rows).read_text().splitlines()[:LIMIT]]
    texts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": pair["prompt"]}, {"role": "assistant", "content": pair["chosen"]}],
            tokenize=False,
        )
        for pair in pairs
    ]
    with torch.no_grad():
        theirs = [
            model(**tokenizer(text, add_special_tokens=False, return_tensors="pt")).logits.item() for text in texts
        ]
    client = openrlhf_agent(Path(source)).SingleTurnAgentExecutor(list(urls))
    answers = asyncio.run(client._fetch_rewards_via_http(texts, [pair["prompt"] for pair in pairs], [""] * len(texts)))
    ours = [reward for answer in answers for reward in answer["rewards"]]
    if len(ours) != len(theirs):
        print(f"{len(theirs)} texts were given {len(ours)} rewards")
        return 1
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"{len(texts)} texts, scores from {min(theirs):.3f} to {max(theirs):.3f}: at most {worst:.2e} apart")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
