"""Makes tests/goldens/dataset-cards.json: which files the `configs` of a dataset card choose, as Python's datasets says.

Usage, from the repository's root:  python tools/golden/dataset_cards.py
Needs datasets 5.2.0.

Format: `paths`, the files of one repository, and `cards`: each with its `head` (YAML), the name of its `default`
configuration (null: one must be named; absent: refused), and `files`: configuration -> split -> paths in order, none
where nothing matches.
"""

import json
import tempfile
from pathlib import Path

import yaml
from datasets import disable_caching, load_dataset_builder
from datasets.utils.metadata import MetadataConfigs

OUT = Path("tests/goldens/dataset-cards.json")
PATHS = [
    "README.md", "dataset_infos.json", "all.jsonl", "data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl",
    "data/test-00000-of-00001.jsonl", "data/deep/train-a.jsonl", "data/deep/er/train-b.jsonl", "data/.hidden.jsonl",
    "data/__cache__/x.jsonl", "data/notes.rst", "en/train.jsonl", "en/dev[1].jsonl", "fr/train.jsonl", "fr/a-1.jsonl",
    "fr/a-2.jsonl", "fr/a-30.jsonl", "fr/a+1.jsonl",
]  # fmt: skip
CARDS = {
    "text": "configs:\n- config_name: default\n  data_files: all.jsonl",
    "glob": "configs:\n- config_name: one\n  data_files: data/*.jsonl",
    "list": "license: mit\nconfigs:\n- config_name: one\n  data_files:\n  - fr/train.jsonl\n  - en/train.jsonl",
    "splits": "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/train-*\n"
    "  - split: test\n    path:\n    - data/test-*\n    - en/tr*n.jsonl",
    "several": "configs:\n- config_name: en\n  data_files: en/train.*\n- config_name: fr\n  data_files: fr/train.*",
    "marked": "configs:\n- config_name: en\n  data_files: en/train.*\n- config_name: fr\n  data_files: fr/train.*\n  default: yes",
    "two defaults": "configs:\n- config_name: default\n  data_files: en/train.*\n- config_name: fr\n  data_files: fr/train.*\n"
    "  default: true",
    "folder": "configs:\n- config_name: all\n  data_files: all.jsonl\n- config_name: fr\n  data_dir: fr\n  data_files:\n  - split: validation\n    path: a-?.jsonl\n"
    "  - split: odd\n    path: a-[13]*.jsonl\n  - split: even\n    path: a-[!13].jsonl\n  - split: plus\n    path: a+1.jsonl",
    "deep": "configs:\n- config_name: all\n  data_files: data/**\n- config_name: named\n  data_files: '**/train*.jsonl'\n"
    "- config_name: middle\n  data_files: data/**/train-b.jsonl",
    "unusual": "configs:\n- config_name: hidden\n  data_files: data/.*\n- config_name: cache\n  data_files: data/__*__/*\n"
    "- config_name: top\n  data_files: '*'\n- config_name: dot\n  data_files: ./en/train.jsonl\n"
    "- config_name: none\n  data_files: gone/*.jsonl",
}  # fmt: skip


def files(folder, name):
    found = load_dataset_builder(str(folder), name).config.data_files
    return {str(split): [str(Path(one).relative_to(folder)) for one in paths] for split, paths in found.items()}


def main():
    disable_caching()
    cards = {}
    for title, head in CARDS.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place).resolve() / "cards"
            for path in PATHS:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text("{}")
            (folder / "README.md").write_text(f"---\n{head}\n---\n# Card\n")
            configs = MetadataConfigs.from_dataset_card_data(yaml.safe_load(head))
            card = {"head": head}
            try:
                card["default"] = configs.get_default_config_name()
                card["files"] = {name: files(folder, name) for name in configs}
            except ValueError as error:
                print(title, "refused:", error)
            cards[title] = card
    OUT.write_text(json.dumps({"paths": PATHS, "cards": cards}, indent=1) + "\n")


if __name__ == "__main__":
    main()
