"""Makes tests/goldens/text: small tokenizers, and what Transformers encodes, decodes and renders with them.

Usage, from the repository's root:  python tools/golden/text.py
Needs transformers 5.23.0, tokenizers 0.23.3, jinja2 3.1.6, and node (for the character tokenizer, which is ours).

Written files: {bytes,metaspace,chars}/ (checkpoint directories), tokens.json (ids and texts), templates.json
(renderings of templates/*.jinja, which are written by hand).
"""

import json
import os
import subprocess
from pathlib import Path

from jinja2.exceptions import TemplateError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

OUT = Path("tests/goldens/text")
CORPUS = [
    "The answer is 42. What is the answer to the question?",
    "A tool is called with arguments and the result of the tool is the answer.",
    "Über déjà vu — naïve façade, 你好, 世界!\n\n    indented text\n",
] * 4
SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<bos>", "<start_of_turn>", "<end_of_turn>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
]  # fmt: skip
CHARS = {
    "alphabet": "0123456789+-*/=>.() \nabcdefghijklmnopqrstuvwxyz",
    "special": ["<pad>", "<bos>", "<eos>"],
    "eos": "<eos>",
    "pad": "<pad>",
    "bos": "<bos>",
    "chatTemplate": (OUT / "templates/chars.jinja").read_text(),
}
TEXTS = {
    "bytes": [
        "The answer is 42.",
        "  two  spaces\n\n\nlines\t tab ",
        "déjà vu, nai\u0308ve \u4f60\u597d \U0001f642\U0001f468\u200d\U0001f469",
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
        "half<|im_end a special <|im_end|><|im_end|> token",
        "don't WON'T 1234567 a1b2",
    ],
    "metaspace": [
        "The answer is 42.",
        " leading and  double",
        "\n<eos>\nthe tool",
        "<eos>the answer<eos> is",
        "\u4f60\u597d \U0001f642 unseen",
    ],
    "chars": ["12+3=15", "12+3=<eos>>15=\n(a b)", "<bos><pad><eos>eos", " "],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "calculator",
            "description": "Evaluates 'a+b' & more: <é>",
            "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        },
    }
]
CALL = {
    "role": "assistant",
    "content": "Let me see.",
    "tool_calls": [{"type": "function", "function": {"name": "calculator", "arguments": {"expression": "48/2", "n": 1.5, "all": True}}}],
}
CONVERSATIONS = {
    "question": [{"role": "user", "content": " What is 48/2? "}],
    "system": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    "turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "<think>\na greeting\n</think>\n\nHello\n"},
        {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "<think>\nan end\n</think>\n\nBye"},
    ],
    "tool": [
        {"role": "user", "content": "48/2?"},
        CALL,
        {"role": "tool", "content": "24"},
        {"role": "tool", "content": "24.0"},
        {"role": "assistant", "content": "24"},
    ],
    "two questions": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
}


def write_bytes(directory: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    save(tokenizer, directory, {"bos_token": "<bos>", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})


def write_metaspace(directory: Path) -> None:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<eos>", "<pad>"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=350, special_tokens=special + byte_tokens, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    definition = json.loads(tokenizer.to_str())
    definition["added_tokens"] = [token for token in definition["added_tokens"] if token["content"] in special]
    save(Tokenizer.from_str(json.dumps(definition)), directory, {"unk_token": "<unk>", "eos_token": "<eos>", "pad_token": "<pad>"})


def save(tokenizer: Tokenizer, directory: Path, config: dict) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **config}
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def write_chars(directory: Path) -> None:
    program = "import { writeCharTokenizer as write } from './src/text/char-tokenizer.ts'; const [dir, options] = JSON.parse(process.env.ARGS); await write(dir, options);"
    subprocess.run(
        ["node", "--import", "tsx", "--input-type=module", "-e", program],
        env={**os.environ, "ARGS": json.dumps([str(directory), CHARS])},
        check=True,
    )


def golden_tokens(name: str) -> dict:
    tokenizer = AutoTokenizer.from_pretrained(OUT / name)
    rows = []
    for text in TEXTS[name]:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        shown = {special: tokenizer.decode(ids, skip_special_tokens=not special) for special in (True, False)}
        rows.append({"text": text, "ids": ids, "special": shown[True], "plain": shown[False]})
    return {"size": len(tokenizer), "special": tokenizer.special_tokens_map, "rows": rows}


def golden_templates() -> list:
    tokenizer = AutoTokenizer.from_pretrained(OUT / "bytes")
    rows = []
    for template in ["chatml", "headers", "turns", "thinking", "chars"]:
        source = (OUT / f"templates/{template}.jinja").read_text()
        for conversation, messages in CONVERSATIONS.items():
            for tools in (None, TOOLS) if template == "chatml" else (None,):
                for generation in (False, True):
                    row = {"template": template, "conversation": conversation, "tools": tools is not None, "generation": generation}
                    try:
                        row["text"] = tokenizer.apply_chat_template(
                            messages, tools=tools, chat_template=source, add_generation_prompt=generation, tokenize=False
                        )
                    except TemplateError as error:
                        row["error"] = str(error)
                    rows.append(row)
    return rows


def main() -> None:
    write_bytes(OUT / "bytes")
    write_metaspace(OUT / "metaspace")
    write_chars(OUT / "chars")
    tokens = {"chars options": CHARS, **{name: golden_tokens(name) for name in TEXTS}}
    templates = {"variables": {"bos_token": "<bos>", "eos_token": "<|im_end|>"}, "tools": TOOLS, "conversations": CONVERSATIONS, "rows": golden_templates()}
    for name, value in {"tokens": tokens, "templates": templates}.items():
        (OUT / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
