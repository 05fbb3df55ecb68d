"""A peer for tools/peers/openenv.ts: an environment served by the real openenv-core package.

Usage: python openenv_peer.py

The environment asks for a number drawn from the seed of the reset; a guess is an integer, its reward is 1 when it is
right and 0 else, and three guesses are an episode. Four connections at a time. Prints {"url": "http://..."} when it
listens and ends when stdin does. Needs openenv-core; tried with 0.3.0.
"""

import json
import random
import socket
import sys
import threading

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    guess: int


class Told(Observation):
    text: str


class Guessing(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, most=9):
        self._state = State(episode_id=episode_id, step_count=0)
        self.number = random.Random(seed).randint(0, most)
        return Told(text=f"between 0 and {most}", reward=None, done=False)

    def step(self, action):
        if action.guess < 0:
            raise ValueError("a guess below 0")
        self._state.step_count += 1
        right = action.guess == self.number
        text = "right" if right else "higher" if action.guess < self.number else "lower"
        return Told(text=text, reward=float(right), done=right or self._state.step_count == 3)

    @property
    def state(self):
        return self._state


app = create_fastapi_app(Guessing, Guess, Told, max_concurrent_envs=4)
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))


def end_with_stdin():
    sys.stdin.read()
    server.should_exit = True


threading.Thread(target=end_with_stdin, daemon=True).start()
startup = server.startup


async def announced(sockets=None):
    await startup(sockets)
    print(json.dumps({"url": f"http://127.0.0.1:{port}"}), flush=True)


server.startup = announced
server.run()
