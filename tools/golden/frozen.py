"""Golden values of matrices in 8 and 4 bits, for src/nn/frozen.test.ts.

Usage:  python tools/golden/frozen.py tests/goldens
Made with bitsandbytes 0.50.2, torch 2.15.0 (CPU).

Writes frozen.json: one matrix [rows, columns], and what bitsandbytes makes of it: its vector-wise int8 levels with the
largest magnitude of each row, its NF4 bytes with the largest magnitude of each block of 64, and the matrix that those stand for.
"""

import json
import sys
from pathlib import Path

import bitsandbytes.functional as bnb
import torch

ROWS, COLUMNS = 6, 26


def flat(tensor):
    return tensor.flatten().tolist()


def main():
    torch.manual_seed(3)
    matrix = torch.randn(ROWS, COLUMNS) * 0.3
    levels, largest, _ = bnb.int8_vectorwise_quant(matrix.half(), threshold=0.0)
    # It takes half precision: the matrix is one that half precision holds.
    matrix = matrix.half().float()
    packed, state = bnb.quantize_4bit(matrix, blocksize=64, quant_type="nf4", compress_statistics=False)
    result = {
        "shape": [ROWS, COLUMNS],
        "matrix": flat(matrix),
        "int8": {"values": flat(levels), "largest": flat(largest)},
        "nf4": {
            "values": flat(packed),
            "largest": flat(state.absmax),
            "thawed": flat(bnb.dequantize_4bit(packed, state)),
        },
    }
    Path(sys.argv[1], "frozen.json").write_text(json.dumps(result) + "\n")


main()
