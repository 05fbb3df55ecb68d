"""Loads a checkpoint directory that tokenloop wrote in Transformers, or an adapter in PEFT, and compares logits.

Usage:  python tools/golden/check_export.py <checkpoint or adapter directory> [<logits.safetensors>]
tools/golden/export.ts writes both for every family. Made for torch 2.15.0, transformers 5.23.0, peft 0.21.2,
safetensors 0.8.0. An adapter names its base.

The second file holds, for i = 0, 1, ...: tokens.{i} [T] (token ids as float32) and logits.{i} [T, V] (float32, what
tokenloop computed for them; of a model with a value head values [T, 1], of which Transformers gives the last).
Exits 1 when a logit differs by more than 1e-4, or when the checkpoint does not hold exactly the weights that
Transformers expects. Without it only the loading is checked.
"""

import sys
from pathlib import Path

import torch
from peft import PeftConfig, PeftModel
from peft.utils import get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

TOLERANCE = 1e-4


def main(directory, logits_file=None):
    adapter = Path(directory) / "adapter_config.json"
    if adapter.exists():
        adapter, directory = directory, PeftConfig.from_pretrained(directory).base_model_name_or_path
    else:
        adapter = None
    scores = AutoConfig.from_pretrained(directory).architectures[0].endswith("ForSequenceClassification")
    kind = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    model, info = kind.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    problems = {kind: names for kind, names in info.items() if names}
    if problems:
        print("weights do not match:", problems)
        return 1
    if adapter:
        model = PeftModel.from_pretrained(model, adapter).eval()
        stored = load_file(Path(adapter) / "adapter_model.safetensors")
        expected = get_peft_model_state_dict(model)
        if stored.keys() != expected.keys() or any(not torch.equal(stored[k], v) for k, v in expected.items()):
            print("the adapter does not hold what PEFT expects:", sorted(stored.keys() ^ expected.keys()))
            return 1
    print("loaded", adapter or directory, sum(p.numel() for p in model.parameters()), "weights")
    if logits_file is None:
        return 0
    arrays = load_file(logits_file)
    worst = 0.0
    count = sum(name.startswith("tokens.") for name in arrays)
    if count == 0:
        print(logits_file, "holds no tokens.0")
        return 1
    with torch.no_grad():
        for i in range(count):
            ours = arrays[f"logits.{i}"]
            theirs = model(input_ids=arrays[f"tokens.{i}"].long()[None]).logits[0]
            worst = max(worst, ((ours[-1] if scores else ours) - theirs).abs().max().item())
    print(f"{count} sequences, largest difference of a logit {worst:.2e}")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
