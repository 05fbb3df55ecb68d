"""Stands in for GEM where it is not installed: an environment that shows which random numbers it draws."""

import os
import random
import time

import numpy

__version__ = "stand-in"


class Draws:
    def __init__(self, limit=3):
        self.limit = limit

    def reset(self, seed=None):
        random.seed(seed)
        numpy.random.seed(seed)
        self.turn = 0
        return f"start {random.randint(0, 999)}", {"prefix": "<", "suffix": ">"}

    def step(self, action):
        self.turn += 1
        if action == "die":
            os._exit(5)
        if action == "hang":
            time.sleep(3600)
        if action == "print":
            print("a line that is no answer")
        if action == "nan":
            return "", float("nan"), False, False, {}
        drawn = random.randint(0, 999)
        over = self.turn >= self.limit
        return f"{action} {drawn} {numpy.random.randint(1000)}", 0.5, action == "win", over, {}


def make(env, **kwargs):
    if env != "game:Draws":
        raise ValueError(f"Environment {env} not found in registry.")
    return Draws(**kwargs)
