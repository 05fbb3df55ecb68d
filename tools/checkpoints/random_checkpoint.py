"""Checkpoint directories of published configurations with random weights, to run a recipe where the hub is out of reach.

Usage: python random_checkpoint.py <smollm2-135m-instruct | qwen3-0.6b> <directory> <text.jsonl> ...

Configuration, special tokens and their ids, and the size of the vocabulary are those of HuggingFaceTB/
SmolLM2-135M-Instruct and Qwen/Qwen3-0.6B; weights are drawn as Transformers draws them and stored in bfloat16, as
published. The tokenizer is NOT theirs: a byte-level BPE learned from the `prompt` texts of the given files, filled up
with tokens that no text is encoded to, so that only sizes and times are those of the published models. The chat
template writes the ChatML layout that both were trained on (no tools, no thinking blocks).

Written with transformers 5.23.0 and tokenizers 0.23.3.
"""

import json
import sys
from pathlib import Path

import tokenizers
import torch
import transformers

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

MODELS = {
    "smollm2-135m-instruct": {
        "config": {
            "model_type": "llama",
            "vocab_size": 49152,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "max_position_embeddings": 8192,
            "rms_norm_eps": 1e-5,
            "rope_theta": 100000,
            "initializer_range": 0.041666666666666664,
            "tie_word_embeddings": True,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 2,
        },
        # Special tokens lead the vocabulary.
        "special": {END: 0, START: 1, STOP: 2},
        "tokenizer": {"bos_token": START, "eos_token": STOP, "pad_token": STOP, "unk_token": END},
    },
    "qwen3-0.6b": {
        "config": {
            "model_type": "qwen3",
            "vocab_size": 151936,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 40960,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1000000,
            "initializer_range": 0.02,
            "tie_word_embeddings": True,
            "bos_token_id": 151643,
            "eos_token_id": 151645,
        },
        # Special tokens follow 151643 others; ids from 151669 on have no text.
        "special": {END: 151643, START: 151644, STOP: 151645},
        "tokenizer": {"eos_token": STOP, "pad_token": END},
    },
}
QWEN_TOKENS = 151669


def write_tokenizer(directory, name, texts):
    model = MODELS[name]
    size = QWEN_TOKENS if name == "qwen3-0.6b" else model["config"]["vocab_size"]
    learned = tokenizers.Tokenizer(tokenizers.models.BPE())
    learned.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    learned.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size - len(model["special"]),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learned.train_from_iterator(texts, trainer)
    definition = json.loads(learned.to_str())
    words = [word for word, _ in sorted(learned.get_vocab().items(), key=lambda item: item[1])]
    taken = set(model["special"].values())
    ids = [i for i in range(size) if i not in taken]
    words += [f"filler{i}" for i in range(len(ids) - len(words))]
    definition["model"]["vocab"] = dict(zip(words, ids)) | model["special"]
    definition["added_tokens"] = [
        {
            "id": i,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for content, i in model["special"].items()
    ]
    (directory / "tokenizer.json").write_text(json.dumps(definition, ensure_ascii=False))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **model["tokenizer"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
    (directory / "chat_template.jinja").write_text(CHATML)


def main():
    name, directory, files = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    directory.mkdir(parents=True)
    config = transformers.AutoConfig.for_model(**MODELS[name]["config"])
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(directory)
    lines = [line for file in files for line in Path(file).read_text().rstrip("\n").split("\n")]
    texts = [json.loads(line)["prompt"] for line in lines]
    write_tokenizer(directory, name, texts)
    print(f"{directory}: {sum(p.numel() for p in model.parameters())} parameters")


main()
