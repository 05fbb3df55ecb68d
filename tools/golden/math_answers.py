"""Goldens of the math verifier: what math-verify says of every pair of tests/goldens/math/pairs.txt.

Usage:  python tools/golden/math_answers.py tests/goldens/math
Made with Python 3.11.7, math-verify 0.9.0, latex2sympy2_extended 1.11.0, sympy 1.14.0 and antlr4-python3-runtime 4.13.2
(with 4.9.3 it reads less, percentages for one).

pairs.txt, one pair a line: gold ~~ answer ~~ verdict [~~ why math-verify says something else]. The verdict is = or !. An
answer stands in a box; in a line that begins with "text:" it is the whole text that a policy writes, with \\n for a new
line. math-verify is called with its defaults, the gold answer between dollar signs. Writes verdicts.txt: a line for each pair, = or !.
"""

import sys
from pathlib import Path

from math_verify import parse, verify

directory = Path(sys.argv[1])
verdicts = []
for line in (directory / "pairs.txt").read_text(encoding="utf-8").splitlines():
    if " ~~ " not in line:
        continue
    gold, answer, *_ = line.split(" ~~ ")
    text = gold.startswith("text:")
    gold = gold.removeprefix("text:").strip()
    answer = answer.replace("\\n", "\n") if text else f"\\boxed{{{answer}}}"
    same = verify(parse(f"${gold}$"), parse(answer))
    verdicts.append("=" if same else "!")
(directory / "verdicts.txt").write_text("\n".join(verdicts) + "\n")
print(len(verdicts), "pairs,", verdicts.count("="), "equal")
