"""Loads the numeric functions of other projects, without what they need to train (Ray, DeepSpeed and so on).

Not run by itself; estimators.py and losses.py use it. Made for torch 2.15.0, verl 0.9.1 and trl 1.16.0 from PyPI
(verl with --no-deps, and omegaconf 2.4.0), and checkouts of
  OpenRLHF  github.com/OpenRLHF/OpenRLHF at 3c3be62
  AReaL     github.com/inclusionAI/AReaL at 4aef98d
  GiGPO     gigpo/core_gigpo.py of github.com/langfengQ/DrMAS at 3b556f2
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import torch

ABSENT = {"ray", "deepspeed", "tensordict", "hydra", "codetiming", "torchdata", "peft", "wandb", "orjson", "areal"}


class Absent(types.ModuleType):
    """Stands for a package that the functions under test do not use."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name[:1].isupper():
            return type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        return MagicMock()


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, AbsentFinder())


def openrlhf(checkout):
    """(models.loss, models.utils, RemoteExperienceMaker, length_penalty)"""
    root = Path(checkout) / "openrlhf"
    # Packages without their __init__, which would import everything.
    for name in ["openrlhf", "openrlhf.models", "openrlhf.trainer", "openrlhf.trainer.ppo_utils", "openrlhf.utils"]:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    sys.modules["openrlhf.trainer.ray"] = Absent("openrlhf.trainer.ray")
    sys.modules["openrlhf.trainer.ray.launcher"] = Absent("openrlhf.trainer.ray.launcher")
    return (
        importlib.import_module("openrlhf.models.loss"),
        importlib.import_module("openrlhf.models.utils"),
        importlib.import_module("openrlhf.trainer.ppo_utils.experience_maker").RemoteExperienceMaker,
        importlib.import_module("openrlhf.trainer.ppo_utils.length_penalty"),
    )


def verl():
    """(core_algos, rollout_corr_helper)"""
    return (
        importlib.import_module("verl.trainer.ppo.core_algos"),
        importlib.import_module("verl.trainer.ppo.rollout_corr_helper"),
    )


def areal(checkout):
    """(utils.functional.functional, and of trainer.ppo.actor the M2PO mask and the approximations of the proximal policy)"""
    functional = from_file("areal_functional", Path(checkout) / "areal/utils/functional/functional.py")
    source = (Path(checkout) / "areal/trainer/ppo/actor.py").read_text()
    wanted = {"_apply_m2po_masking", "_get_m2po_loss_mask", "compute_prox_logp_approximations"}
    body = [node for node in ast.parse(source).body if getattr(node, "name", None) in wanted]
    scope = {"torch": torch, "PROX_APPROX_METHOD_LOGLINEAR": "loglinear"}
    exec(compile(ast.Module(body, []), "actor.py", "exec"), scope)
    return functional, scope["_apply_m2po_masking"], scope["compute_prox_logp_approximations"]


def openrlhf_defaults(checkout, *flags):
    """flag -> its default on the command line of PPO training."""
    source = (Path(checkout) / "openrlhf/cli/train_ppo_ray.py").read_text()
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            flag = getattr(node.args[0], "value", "")  # some flags are made of a variable
            if (flag := str(flag).removeprefix("--")) in flags:
                (found[flag],) = [ast.literal_eval(k.value) for k in node.keywords if k.arg == "default"]
    return found


def from_file(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def rounded(value):
    """Floats to 7 significant digits, for small files; nested lists and dicts keep their shape."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value
