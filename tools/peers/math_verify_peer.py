"""A peer of the math verifier for bench/math.ts: math-verify, with its defaults.

Usage: python math_verify_peer.py <pairs.json>

pairs.json: [[text, label], ...]. Every line read lets it judge all pairs once and is answered with {"seconds", "correct"}:
how many texts give the answer of their label. Labels are read once before, as a trainer can do.

Measured with math-verify 0.9.0, sympy 1.14.0 and antlr4-python3-runtime 4.13.2.
"""

import json
import logging
import sys
import time
from pathlib import Path

from math_verify import parse, verify

logging.disable(logging.WARNING)
pairs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
labels = {label: parse(f"${label}$") for _, label in pairs}
for _ in sys.stdin:
    start = time.perf_counter()
    correct = sum(verify(labels[label], parse(text)) for text, label in pairs)
    print(json.dumps({"seconds": time.perf_counter() - start, "correct": correct}), flush=True)
