"""Makes tests/goldens/sampling.json: what Transformers keeps of a distribution, and where it stops at a string.

Usage, from the repository's root:  python tools/golden/sampling.py
Made with torch 2.15.0, transformers 5.23.0.

truncation: {logits, temperature, min_p, top_k, top_p, logprobs, top}; the logits warpers run in this order, `logprobs`
are those of what they keep (null elsewhere), `top` the ids of the five most probable tokens that are kept.

stop: {tokenizer, tokens, ends: [[stop strings, end]]}; `end` is the number of tokens after which StopStringCriteria
first says to stop, null if it never does. The tokenizers are those of tests/goldens/text.
"""

import json
import random
from pathlib import Path

import torch
from transformers import AutoTokenizer, StopStringCriteria
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

TEXTS = [
    "The answer is 42. What is the answer to the question?\n\nThe tool is called.",
    "A tool is called with arguments</tool> and the result of the tool is the answer.",
    "the the the answerable answers, indented    text\n\n\n",
]
STOPS = [["answer"], ["\n\n"], ["</tool>"], ["tool is", "called"], ["the answ", "wer to"], [".", "?"], ["zzz"], ["e a"]]


def number(value):
    return float(value)


def truncation(generator):
    cases = []
    for size in (7, 40, 300):
        for min_p, top_k, top_p in [(0.1, 0, 1.0), (0, 5, 1.0), (0, 0, 0.7), (0, 0, 0.999), (0.02, 12, 0.8),
                                    (0.3, 3, 0.5), (0, 1, 1.0), (0, 0, 0.01), (0.001, 200, 0.95)]:
            temperature = random.choice([0.6, 1.0, 1.7])
            logits = (torch.randn(size, generator=generator) * 3).round(decimals=4)
            scores = TemperatureLogitsWarper(temperature)(None, logits[None])
            if min_p > 0:
                scores = MinPLogitsWarper(min_p)(None, scores)
            if top_k > 0:
                scores = TopKLogitsWarper(top_k)(None, scores)
            if top_p < 1:
                scores = TopPLogitsWarper(top_p)(None, scores)
            logprobs = scores[0].double().log_softmax(0)
            kept = int(torch.isfinite(logprobs).sum())
            cases.append({
                "logits": [round(number(x), 4) for x in logits], "temperature": temperature, "min_p": min_p, "top_k": top_k,
                "top_p": top_p, "logprobs": [round(number(x), 6) if torch.isfinite(x) else None for x in logprobs],
                "top": logprobs.topk(min(5, kept)).indices.tolist(),
            })
    return cases


def stops():
    cases = []
    for name in ("bytes", "metaspace"):
        tokenizer = AutoTokenizer.from_pretrained(f"tests/goldens/text/{name}")
        for text in TEXTS:
            tokens = tokenizer(text, add_special_tokens=False).input_ids
            # Other ways to cut the same text than the tokenizer's own: what is sampled is rarely canonical.
            split = [token for piece in text for token in tokenizer(piece, add_special_tokens=False).input_ids]
            mixed = tokens[: len(tokens) // 2] + split[len(split) // 2:]
            for ids in (tokens, mixed):
                found = []
                for stop in STOPS:
                    criterion = StopStringCriteria(tokenizer, stop)
                    ends = (n for n in range(1, len(ids) + 1) if criterion(torch.tensor([ids[:n]]), None)[0])
                    found.append([stop, next(ends, None)])
                cases.append({"tokenizer": name, "tokens": ids, "ends": found})
    return cases


random.seed(5)
golden = {"truncation": truncation(torch.Generator().manual_seed(5)), "stop": stops()}
Path("tests/goldens/sampling.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
