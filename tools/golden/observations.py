"""Goldens of what the policy sees under GEM's observation wrappers, over games in words of our own.

Usage:  python tools/golden/observations.py tests/goldens/games/observations.json
Made with Python 3.11.7 and gem-llm 0.1.0 of PyPI. Its dependency reasoning_gym is replaced by an empty module, and the
tokenizer by ChatML written out, as the byte tokenizer of `tokenloop/testing` has it.

One entry a game: what the environment gave on reset and after each answer ([observation, suffix]), the answers, and by
mode and longest history (0: all) what the wrapper gave before each answer.
"""

import json
import sys
import types

stub = types.ModuleType("reasoning_gym.factory")
stub.DATASETS = {}
sys.modules["reasoning_gym"] = types.ModuleType("reasoning_gym")
sys.modules["reasoning_gym"].factory = stub
sys.modules["reasoning_gym.factory"] = stub

from gem.core import Env  # noqa: E402
from gem.wrappers.observation_wrapper import ObservationWrapper  # noqa: E402


class ChatML:
    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert not tokenize and add_generation_prompt
        said = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return said + "<|im_start|>assistant\n"


MODES = {
    "concat": dict(include_action=False, include_chat_template=False),
    "concat_with_action": dict(include_action=True, include_chat_template=False),
    "concat_chat": dict(include_action=True, include_chat_template=True, tokenizer=ChatML()),
    "concat_chat_on_reset": dict(
        include_action=True, include_chat_template=False, apply_chat_template_on_reset=True, tokenizer=ChatML()
    ),
}
GAMES = {
    "guess": (
        [[said, "Your guess?"] for said in ("Find my number.", "It is lower.\n", "", "You said 7 before.\n\n", "It is higher.")],
        ["I say \\boxed{9}", "\\boxed{7}\n", "hm\n\\boxed{7}\n\n", "\\boxed{3}"],
    ),
    "board": (
        [["Find the mines.", "\n. . .\n. . .\nNext?"], ["Open: 2 cells.", "\n. 1 .\n0 1 .\nNext?"], ["A flag.\n", "\nF 1 .\n0 1 .\nNext?"]],
        ["\\boxed{reveal 1 0}", "a flag \\boxed{flag 0 0} \u2713"],
    ),
    "bare": (
        [["go", ""], ["north: a wall", ""], ["", ""], ["a door\n", ""]],
        ["north", "east\n", "open"],
    ),
}


class Replayed(Env):
    def __init__(self, given):
        super().__init__()
        self.given = given

    def reset(self, seed=None):
        self.turn = 0
        return self.told()

    def step(self, action):
        self.turn += 1
        observation, info = self.told()
        return observation, 0.0, False, False, info

    def told(self):
        observation, suffix = self.given[self.turn]
        return observation, {"suffix": suffix} if suffix else {}


def play(env, answers):
    return [env.reset()[0]] + [env.step(answer)[0] for answer in answers]


entries = []
for name, (given, answers) in GAMES.items():
    shown = {
        f"{mode} {length}": play(ObservationWrapper(Replayed(given), max_history_length=length or None, **how), answers)
        for mode, how in MODES.items()
        for length in (0, 1, 2)
    }
    entries.append({"game": name, "given": given, "answers": answers, "shown": shown})
with open(sys.argv[1], "w") as file:
    json.dump(entries, file, indent=1)
    file.write("\n")
