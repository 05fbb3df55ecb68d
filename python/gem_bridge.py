"""Environments of GEM (PyPI: gem-llm) for programs in other languages: JSON lines on stdin and stdout.

    {"id": 1, "op": "hello"}                                             -> {"id": 1, "ok": {"gem": "0.1.0"}}
    {"id": 2, "op": "make", "session": "a", "env": "game:...", "kwargs": {}}  -> {"id": 2, "ok": {}}
    {"id": 3, "op": "reset", "session": "a", "seed": 7}                  -> {"id": 3, "ok": {"observation", "prefix", "suffix"}}
    {"id": 4, "op": "step", "session": "a", "action": "..."}
        -> {"id": 4, "ok": {"observation", "prefix", "suffix", "reward", "terminated", "truncated"}}
    {"id": 5, "op": "close", "session": "a"}                             -> {"id": 5, "ok": {}}

What goes wrong is answered with {"id", "error": "ValueError: ..."}. Requests are answered in their order. The end of stdin
ends the process.

GEM's environments draw from the global generators of Python and NumPy. Each session has generators of its own here: they
are put in place before a call and taken away after it, so that sessions in one process do not disturb one another.
"""

import json
import os
import random
import sys

import numpy

# What environments print must not go between the answers.
answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
os.dup2(2, 1)


class Session:
    def __init__(self, env, kwargs):
        import gem

        self.generators = (random.getstate(), numpy.random.get_state())
        self.env = self.within(lambda: gem.make(env, **kwargs))

    def within(self, call):
        mine = (random.getstate(), numpy.random.get_state())
        random.setstate(self.generators[0])
        numpy.random.set_state(self.generators[1])
        try:
            return call()
        finally:
            self.generators = (random.getstate(), numpy.random.get_state())
            random.setstate(mine[0])
            numpy.random.set_state(mine[1])


sessions = {}


def seen(observation, info):
    """Text games put the state of the game into info, around what they say."""
    return {
        "observation": str(observation),
        "prefix": str(info.get("prefix") or ""),
        "suffix": str(info.get("suffix") or ""),
    }


def session_of(request):
    name = request["session"]
    if name not in sessions:
        raise KeyError(f"no session {name!r}")
    return sessions[name]


def hello(request):
    from importlib.metadata import PackageNotFoundError, version

    import gem

    try:
        return {"gem": version("gem-llm")}
    except PackageNotFoundError:
        return {"gem": str(getattr(gem, "__version__", "unknown"))}


def make(request):
    sessions[request["session"]] = Session(request["env"], request.get("kwargs") or {})
    return {}


def reset(request):
    session = session_of(request)
    observation, info = session.within(lambda: session.env.reset(seed=request["seed"]))
    return seen(observation, info)


def step(request):
    session = session_of(request)
    observation, reward, terminated, truncated, info = session.within(
        lambda: session.env.step(request["action"])
    )
    return {
        **seen(observation, info),
        "reward": float(reward),
        "terminated": bool(terminated),
        "truncated": bool(truncated),
    }


def close(request):
    session = sessions.pop(request["session"], None)
    if session is not None and hasattr(session.env, "close"):
        session.within(session.env.close)
    return {}


OPERATIONS = {"hello": hello, "make": make, "reset": reset, "step": step, "close": close}


def answer(line):
    request = {}
    try:
        request = json.loads(line)
        result = {"id": request["id"], "ok": OPERATIONS[request["op"]](request)}
        return json.dumps(result, allow_nan=False)
    except Exception as error:  # whatever an environment throws belongs to that request
        return json.dumps({"id": request.get("id"), "error": f"{type(error).__name__}: {error}"})


for line in sys.stdin.buffer:
    answers.write(answer(line) + "\n")
    answers.flush()
