"""A peer of the embedded engine for bench/peers.ts: PyTorch eager and Transformers' generate on the CPU in float32.

Usage: python torch_peer.py <checkpoint directory> <threads>

Reads one JSON request a line and answers each with one line:
  {"op": "train", "tokens": [[...], ...]}             one forward and backward pass over rows of equal length in which
                                                      every token but the first is predicted; {"seconds", "loss"}
  {"op": "generate", "tokens": [[...], ...], "new": n} samples exactly n tokens a row at temperature 1; {"seconds"}

Measured with torch 2.15.0 and transformers 5.23.0.
"""

import json
import sys
import time

import torch
import transformers


def train(model, tokens):
    model.zero_grad(set_to_none=True)
    start = time.perf_counter()
    logits = model(tokens[:, :-1]).logits
    logp = torch.log_softmax(logits, dim=-1)
    loss = -logp.gather(2, tokens[:, 1:, None]).sum()
    loss.backward()
    return {"seconds": time.perf_counter() - start, "loss": loss.item()}


def generate(model, tokens, new):
    start = time.perf_counter()
    with torch.inference_mode():
        model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=new,
            min_new_tokens=new,
            do_sample=True,
            top_k=0,
            pad_token_id=0,
        )
    return {"seconds": time.perf_counter() - start}


def main():
    directory, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    for line in sys.stdin:
        request = json.loads(line)
        tokens = torch.tensor(request["tokens"])
        result = train(model, tokens) if request["op"] == "train" else generate(model, tokens, request["new"])
        print(json.dumps(result), flush=True)


main()
