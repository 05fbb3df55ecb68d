"""Goldens of LoRA adapters on the golden decoders: logits, gradients and a few updates, from PEFT.

Usage:  python tools/golden/lora.py tests/goldens
Made with torch 2.15.0, transformers 5.23.0, peft 0.21.2, safetensors 0.8.0 (CPU, float32).

For each case below it writes lora/<case>/ with

  adapter_config.json, adapter_model.safetensors   as PEFT saves them; both factors are random, so that the adapter
                                                   changes the model and no gradient is trivially right
  golden.json          {"base": folder of the model under tests/goldens, "sequences": [[token, ...], ...],
                        "loss": number, "adamw": {"lr", "betas", "eps", "weightDecay", "maxNorm", "steps"}}
  golden.safetensors   float32: logits.{i} [T, V] of sequence i, or values.{i} [1] at its last token where the model
                       has a value head; grad.{tensor} for each tensor of the adapter file; after.{tensor} its value
                       after the AdamW updates, each on the gradient of the same loss, clipped by its global norm.

The loss of language models is the mean of -log p(token t | tokens before t) over all tokens but the first of each
sequence, all sequences together; of value models the mean over sequences of value² at the last token.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

LENGTHS = [2, 7, 12]
ADAMW = dict(lr=0.01, betas=[0.9, 0.95], eps=1e-8, weightDecay=0.1, maxNorm=1.0, steps=4)

CASES = {
    "grouped-all": dict(base="decoders/grouped-tied", r=3, lora_alpha=8, target_modules="all-linear"),
    "biases-qv": dict(base="decoders/llama3-biases", r=2, lora_alpha=2, target_modules=["q_proj", "v_proj"]),
    "gemma-mlp": dict(base="decoders/gemma2", r=4, lora_alpha=16, target_modules=["up_proj", "down_proj", "k_proj"]),
    "fused-rslora": dict(base="decoders/phi3", r=4, lora_alpha=3, target_modules="all-linear", use_rslora=True),
    "score": dict(base="scores/llama", r=2, lora_alpha=4, target_modules="all-linear", task_type="SEQ_CLS"),
}


def golden(root, case, fields, seed):
    generator = torch.Generator().manual_seed(seed)
    fields = {"task_type": "CAUSAL_LM", **fields}
    name = fields.pop("base")
    scores = fields["task_type"] == "SEQ_CLS"
    kind = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    base = kind.from_pretrained(root / name, dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(base, LoraConfig(**fields)).eval()
    model.peft_config["default"].base_model_name_or_path = Path(name).name
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.data.copy_(0.25 * torch.randn(parameter.shape, generator=generator))

    target = root / "lora" / case
    shutil.rmtree(target, ignore_errors=True)
    model.save_pretrained(target)
    (target / "README.md").unlink(missing_ok=True)

    vocabulary = base.config.vocab_size
    sequences = [torch.randint(vocabulary, (n,), generator=generator) for n in LENGTHS]

    def loss_of(arrays=None):
        terms = []
        for i, tokens in enumerate(sequences):
            logits = model(input_ids=tokens[None]).logits[0]
            if arrays is not None:
                arrays[f"values.{i}" if scores else f"logits.{i}"] = logits.detach()
            if scores:
                terms.append(logits.square())
            else:
                terms.append(-logits[:-1].log_softmax(-1).gather(-1, tokens[1:, None])[:, 0])
        return torch.cat(terms).mean()

    def named(prefix, values):
        # The state dict of the adapter holds the parameters themselves: find each one's value by its identity.
        places = {parameter.data_ptr(): value for parameter, value in zip(trained, values)}
        state = get_peft_model_state_dict(model)
        return {f"{prefix}.{tensor}": places[p.data_ptr()].detach().clone() for tensor, p in state.items()}

    arrays = {}
    loss = loss_of(arrays)
    arrays |= named("grad", torch.autograd.grad(loss, trained))
    optimizer = torch.optim.AdamW(
        trained, lr=ADAMW["lr"], betas=tuple(ADAMW["betas"]), eps=ADAMW["eps"], weight_decay=ADAMW["weightDecay"]
    )
    for _ in range(ADAMW["steps"]):
        optimizer.zero_grad()
        loss_of().backward()
        torch.nn.utils.clip_grad_norm_(trained, ADAMW["maxNorm"])
        optimizer.step()
    arrays |= named("after", trained)
    save_file({key: value.contiguous() for key, value in arrays.items()}, target / "golden.safetensors")
    document = {"base": name, "sequences": [t.tolist() for t in sequences], "loss": loss.item(), "adamw": ADAMW}
    (target / "golden.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    for seed, (case, fields) in enumerate(CASES.items()):
        golden(Path(sys.argv[1]), case, fields, seed)
        print(case, sum(f.stat().st_size for f in (Path(sys.argv[1]) / "lora" / case).iterdir()), "bytes")
