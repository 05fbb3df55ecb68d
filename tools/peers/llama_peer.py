"""A peer of the embedded engine for bench/peers.ts: decoding with llama.cpp on the CPU.

Usage: python llama_peer.py <checkpoint directory of a Llama model> <threads>

Writes the checkpoint's weights to GGUF files beside it, one for each type that is asked for. Reads one JSON request a
line and answers each with one line:
  {"op": "score", "type": t, "tokens": [[...], ...]}
        natural log-probability of all tokens but the first of each row, summed; {"logprob"}
  {"op": "decode", "type": t, "tokens": [[...], ...], "new": n}
        after the prompts, n steps of one token for each row, all rows in one batch of several sequences.
        {"seconds": of llama_decode alone, "sampling": of drawing each token at temperature 1 by llama.cpp's own sampler}
  t is f32 (with keys and values in f32 as well), f16 or q8_0 (keys and values in f16, llama.cpp's default).

Measured with llama-cpp-python 0.3.36, built from source for the machine it runs on, and gguf 0.19.0.
"""

import ctypes
import json
import sys
import time
from pathlib import Path

import gguf
import llama_cpp as llama
import numpy as np
from safetensors.numpy import load_file

FILE_TYPES = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
BLOCK_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OUTER_TENSORS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    stem = name.removesuffix(".weight")
    if stem in OUTER_TENSORS:
        return f"{OUTER_TENSORS[stem]}.weight"
    layer, rest = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{BLOCK_TENSORS[rest]}.weight"


def interleaved(weight, heads):
    """Rotary pairs (i, i + D/2) of each head brought together: GGUF's Llama rotates neighbours (2i, 2i + 1)."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def stored_type(weight, quantization):
    """Vectors stay in float32, and rows that blocks of 32 do not divide in float16, as llama.cpp's own quantiser has it."""
    if weight.ndim != 2:
        return gguf.GGMLQuantizationType.F32
    if quantization == gguf.GGMLQuantizationType.Q8_0 and weight.shape[1] % 32 != 0:
        return gguf.GGMLQuantizationType.F16
    return quantization


def write_gguf(directory, kind):
    path = directory / f"{kind}.gguf"
    config = json.loads((directory / "config.json").read_text())
    quantization, file_type = FILE_TYPES[kind]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(file_type)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    for name, weight in load_file(directory / "model.safetensors").items():
        if "q_proj" in name or "k_proj" in name:
            weight = interleaved(weight, heads if "q_proj" in name else kv_heads)
        stored = stored_type(weight, quantization)
        writer.add_tensor(gguf_name(name), gguf.quants.quantize(weight, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Batch:
    """A batch of llama.cpp with its arrays as numpy views."""

    def __init__(self, capacity):
        self.batch = llama.llama_batch_init(capacity, 0, 1)
        view = lambda pointer: np.ctypeslib.as_array(pointer, shape=(capacity,))
        self.tokens, self.positions, self.wanted = view(self.batch.token), view(self.batch.pos), view(self.batch.logits)
        self.sequences = [self.batch.seq_id[i] for i in range(capacity)]
        view(self.batch.n_seq_id)[:] = 1

    def set_rows(self, rows, wanted):
        """All tokens of rows of one length, with logits after every token or only after the last ones."""
        count, length = rows.shape
        self.batch.n_tokens = count * length
        self.tokens[: count * length] = rows.reshape(-1)
        self.positions[: count * length] = np.tile(np.arange(length), count)
        last = np.tile(np.arange(length) == length - 1, count)
        self.wanted[: count * length] = 1 if wanted == "all" else last
        for i in range(count * length):
            self.sequences[i][0] = i // length

    def set_step(self, tokens, position):
        self.tokens[: len(tokens)] = tokens
        self.positions[: len(tokens)] = position


class Model:
    def __init__(self, path, kind, threads):
        self.kind, self.threads = kind, threads
        self.model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
        self.vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))

    def context(self, rows, length):
        params = llama.llama_context_default_params()
        # llama.cpp rounds the share of a sequence up to 256 positions.
        params.n_ctx = rows * 256 * -(-length // 256)
        params.n_batch = params.n_ubatch = max(512, rows * length)
        params.n_seq_max = rows
        params.n_threads = params.n_threads_batch = self.threads
        if self.kind == "f32":
            params.type_k = params.type_v = llama.GGML_TYPE_F32
        return llama.llama_init_from_model(self.model, params)

    def score(self, rows):
        context = self.context(*rows.shape)
        batch = Batch(rows.size)
        batch.set_rows(rows, "all")
        decode(context, batch)
        logits = np.ctypeslib.as_array(llama.llama_get_logits(context), shape=(rows.size, self.vocabulary))
        logits = logits.astype(np.float64).reshape(*rows.shape, -1)[:, :-1]
        logp = logits - logits.max(-1, keepdims=True)
        logp -= np.log(np.exp(logp).sum(-1, keepdims=True))
        llama.llama_free(context)
        return {"logprob": float(np.take_along_axis(logp, rows[:, 1:, None], -1).sum())}

    def decode(self, rows, new):
        count, length = rows.shape
        context = self.context(count, length + new + 1)
        sampler = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        llama.llama_sampler_chain_add(sampler, llama.llama_sampler_init_temp(ctypes.c_float(1.0)))
        llama.llama_sampler_chain_add(sampler, llama.llama_sampler_init_dist(0))
        prompt, step = Batch(rows.size), Batch(count)
        prompt.set_rows(rows, "last")
        decode(context, prompt)
        outputs = range(length - 1, rows.size, length)
        tokens = [llama.llama_sampler_sample(sampler, context, i) for i in outputs]
        step.set_rows(rows[:, :1], "all")
        decoding = sampling = 0.0
        for position in range(length, length + new):
            start = time.perf_counter()
            step.set_step(tokens, position)
            decode(context, step)
            middle = time.perf_counter()
            tokens = [llama.llama_sampler_sample(sampler, context, i) for i in range(count)]
            decoding += middle - start
            sampling += time.perf_counter() - middle
        llama.llama_sampler_free(sampler)
        llama.llama_free(context)
        return {"seconds": decoding, "sampling": sampling}


def decode(context, batch):
    status = llama.llama_decode(context, batch.batch)
    if status != 0:
        raise RuntimeError(f"llama_decode returned {status}")
    llama.llama_synchronize(context)


@llama.llama_log_callback
def errors_only(level, text, _):
    if level == 4:
        sys.stderr.write(text.decode())


def main():
    directory, threads = Path(sys.argv[1]), int(sys.argv[2])
    llama.llama_log_set(errors_only, ctypes.c_void_p())
    llama.llama_backend_init()
    models = {}
    for line in sys.stdin:
        request = json.loads(line)
        kind = request["type"]
        if kind not in models:
            models[kind] = Model(write_gguf(directory, kind), kind, threads)
        rows = np.array(request["tokens"], dtype=np.int32)
        model = models[kind]
        result = model.score(rows) if request["op"] == "score" else model.decode(rows, request["new"])
        print(json.dumps(result), flush=True)


main()
