"""Makes tests/goldens/masks: which tokens of a conversation are the assistant's, as Transformers says.

Usage, from the repository's root:  python tools/golden/masks.py
Needs transformers 5.23.0 and tokenizers 0.23.3.

tests/goldens/masks/templates/*.jinja are written by hand: each produces the published format of a family of models, with
`generation` marks around what the model samples. Written files: tokenizer.json (that of tests/goldens/text/bytes with
the special tokens of all formats) and masks.json: per format its stop tokens (in the order in which the published
generation_config.json and tokenizer_config.json name them) and per conversation the rendered text, ids and
`assistant_masks` of apply_chat_template, or the error of the template.
"""

import json
from pathlib import Path

from jinja2.exceptions import TemplateError
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

OUT = Path("tests/goldens/masks")
STOPS = {
    "chatml": ["<|im_end|>"],
    "smollm2": ["<|im_end|>"],
    "qwen2.5": ["<|im_end|>", "<|endoftext|>"],
    "qwen3": ["<|im_end|>", "<|endoftext|>"],
    "llama3": ["<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"],
    "mistral": ["</s>"],
    "gemma": ["<eos>", "<end_of_turn>"],
    "phi3": ["<|endoftext|>", "<|assistant|>", "<|end|>"],
    "zephyr": ["</s>"],
    "tulu": ["<|endoftext|>"],
    "deepseek": ["<｜end▁of▁sentence｜>"],
    "deepseek-r1": ["<｜end▁of▁sentence｜>"],
    "command-r": ["<|END_OF_TURN_TOKEN|>"],
}
SPECIAL = sorted({stop for stops in STOPS.values() for stop in stops}) + [
    "<|begin_of_text|>", "<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<|system|>",
    "<|user|>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>",
    "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>",
]  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "calculator", "description": "a sum", "parameters": {"type": "object"}}}]
THOUGHT = "<think>\nhalf of it\n</think>\n\n"


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


CONVERSATIONS = {
    "one answer": {"messages": [user("What is the answer?"), assistant("The answer is 42.")]},
    "two answers": {"messages": [user("Hi"), assistant("Hello, déjà vu"), user("And the tool?"), assistant("A tool is called.")]},
    "system": {"messages": [{"role": "system", "content": "Be brief."}, user("a"), assistant("b"), user("c"), assistant("d e")]},
    "white space": {"messages": [user(" x "), assistant("two\n\nlines \n"), user("y"), assistant("end\n")]},
    "leading white space": {"messages": [user("x"), assistant("\n\nlate"), user("y"), assistant("  indented")]},
    "reasoning": {"messages": [user("48/2?"), assistant(THOUGHT + "24"), user("4/2?"), assistant(THOUGHT + "2")]},
    "tool": {
        "tools": TOOLS,
        "messages": [
            user("48/2?"),
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "calculator", "arguments": {"expression": "48/2", "exact": True}}}]},
            {"role": "tool", "content": "24"},
            assistant("It is 24."),
        ],
    },
}


def write_tokenizer():
    tokenizer = Tokenizer.from_file("tests/goldens/text/bytes/tokenizer.json")
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    (OUT / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def row(tokenizer, source, conversation):
    try:
        made = tokenizer.apply_chat_template(
            conversation["messages"], tools=conversation.get("tools"), chat_template=source,
            tokenize=True, return_dict=True, return_assistant_tokens_mask=True,
        )  # fmt: skip
    except (TemplateError, TypeError) as error:
        return {"error": str(error)}
    ids, mask = made["input_ids"], made["assistant_masks"]
    return {"text": tokenizer.decode(ids), "ids": ids, "mask": "".join(map(str, mask))}


def main():
    tokenizer = write_tokenizer()
    formats = {}
    for name, stops in STOPS.items():
        source = (OUT / f"templates/{name}.jinja").read_text()
        rows = {title: row(tokenizer, source, conversation) for title, conversation in CONVERSATIONS.items()}
        formats[name] = {"stops": stops, "rows": rows}
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    lines = [f"{json.dumps(name)}:{json.dumps(value, **compact)}" for name, value in formats.items()]
    conversations = json.dumps(CONVERSATIONS, **compact)
    (OUT / "masks.json").write_text('{"conversations":' + conversations + ',\n"formats":{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
