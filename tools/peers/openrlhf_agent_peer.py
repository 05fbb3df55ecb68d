"""A peer for bench/episodes.ts: OpenRLHF's multi-turn executor with an engine that answers at once.

Usage: python openrlhf_agent_peer.py <directory with the package openrlhf> <tokenizer directory> < request.json

The request: {"episodes", "turns", "prompt", "answer": [ids], "answer_text", "feedbacks": [[text a turn] an episode],
"rounds"}. Runs all episodes at the same time on one event loop, `rounds` times, and prints one JSON object:
{"seconds": [of each round], "tokens": of an episode, "rss": megabytes at the end, "version"}.

Its module is loaded by itself, because the package imports DeepSpeed. The sampling parameters are a small object that
is copied cheaply, so the peer does not pay for vLLM's. Measured with OpenRLHF at commit 3c3be623.
"""

import asyncio
import importlib.util
import json
import resource
import sys
import time
import types
from pathlib import Path

import torch
from transformers import AutoTokenizer

source, tokenizer_directory = map(Path, sys.argv[1:3])
for name in ("openrlhf", "openrlhf.utils"):
    package = types.ModuleType(name)
    package.__path__ = [str(source.joinpath(*name.split(".")))]
    sys.modules[name] = package
spec = importlib.util.spec_from_file_location("openrlhf.utils.agent", source / "openrlhf/utils/agent.py")
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)

request = json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(tokenizer_directory)


class SamplingParams:
    def __init__(self):
        self.max_tokens = None
        self.logprobs = 1

    def __deepcopy__(self, _):
        copied = SamplingParams()
        copied.max_tokens = self.max_tokens
        return copied


class Logprob:
    logprob = -1.0


class Engine:
    """Answers with the same ids each time."""

    ids = list(request["answer"])
    logprobs = [{token: Logprob} for token in ids]

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        output = types.SimpleNamespace(token_ids=self.ids, text=request["answer_text"], logprobs=self.logprobs)
        return types.SimpleNamespace(outputs=[output])


class Game(agent.AgentInstanceBase):
    def __init__(self):
        self.turn = 0

    async def step(self, states, **kwargs):
        done = self.turn + 1 == request["turns"]
        feedback = "" if done else request["feedbacks"][states["label"]][self.turn]
        self.turn += 1
        return {"rewards": torch.tensor(float(done)), "environment_feedback": feedback, "done": done}


class Tokenizer:
    """The last feedback is empty, which the tokenizer cannot make a tensor of."""

    empty = {"input_ids": torch.zeros((1, 0), dtype=torch.long)}

    def __call__(self, text, **kwargs):
        return tokenizer(text=text, **kwargs) if text else self.empty


async def play():
    executor = agent.MultiTurnAgentExecutor(Game)
    engine, shown = Engine(), Tokenizer()
    # Each prompt's samples share their parameters, as in OpenRLHF; the budget they write into it is not read here.
    runs = [
        executor.execute(request["prompt"], index, SamplingParams(), 4096, shown, engine)
        for index in range(request["episodes"])
    ]
    return await asyncio.gather(*runs)


seconds = []
for _ in range(request["rounds"]):
    start = time.perf_counter()
    episodes = asyncio.run(play())
    seconds.append(time.perf_counter() - start)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "tokens": len(episodes[0]["observation_tokens"]), "rss": rss}))
