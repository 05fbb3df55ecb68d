"""Goldens of GEM's tool wrapper with its Python tool, beside its wrapper `concat_with_action`.

Usage:  python tools/golden/tool_use.py tests/goldens/games/tool-use.json
Made with Python 3.11.7 and gem-llm 0.1.0 of PyPI; its dependency reasoning_gym is replaced by an empty module, its
explanation of the tool and its sentence at the last use by words of our own. The environment answers every action with
its number. `results`: what the tool said of each call; `shown`: what the wrapper gave before each answer and at the end.
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
from gem.tools.python_code_tool import PythonCodeTool  # noqa: E402
from gem.tools.tool_env_wrapper import ToolEnvWrapper  # noqa: E402
from gem.wrappers.observation_wrapper import ObservationWrapper  # noqa: E402


class Counting(Env):
    def reset(self, seed=None):
        self.turn = 0
        return "Go.", {}

    def step(self, action):
        self.turn += 1
        return f"Step {self.turn}.", 1.0, False, False, {}


class Tool(PythonCodeTool):
    def __init__(self):
        super().__init__()
        self.results = []

    def instruction_string(self):
        return "Use Python."

    def execute_action(self, action):
        given = super().execute_action(action)
        if given[0]:
            self.results.append({"text": given[2], "failed": given[1]})
        return given


ANSWERS = [
    "I count. <python>print(6 * 7)</python> And more.",
    "left",
    "first ```python\nprint('a')\n``` then <python>print('b')</python>",
    "<python>1 / 0</python>",
    "```\npython\nprint(3)```",
    "<python>print('never run')</python>",
    "<python>not closed",
]
tool = Tool()
inner = ToolEnvWrapper(Counting(), tools=[tool], tool_reward=0.05, tool_success_reward=0.25, max_tool_uses=4)
env = ObservationWrapper(inner, include_action=True, include_chat_template=False)
shown, rewards = [env.reset()[0]], []
for answer in ANSWERS:
    text, reward, *_ = env.step(answer)
    shown.append(text.replace("\n\nReached the maximum number of tool use. Please output final answer directly.", "\nLAST"))
    rewards.append(reward)
for result in tool.results:
    if "Traceback" in result["text"]:  # names places on the machine
        shown = [text.replace(result["text"], "Code execution result: no\n") for text in shown]
        result["text"] = "Code execution result: no\n"
uses = {"uses": inner.tool_use_counter, "successes": inner.tool_success_counter}
with open(sys.argv[1], "w") as file:
    json.dump({"answers": ANSWERS, "rewards": rewards, "results": tool.results, "shown": shown, **uses}, file, indent=1)
    file.write("\n")
