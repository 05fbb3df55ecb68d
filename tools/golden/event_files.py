"""Event files as torch's SummaryWriter writes them (tests/goldens/tensorboard/torch.tfevents), and, given a directory
that tokenloop wrote, what TensorBoard's own reader finds in it:

    python tools/golden/event_files.py                 # writes the golden
    python tools/golden/event_files.py --read DIR      # prints scalars, histograms and texts as JSON
    python tools/golden/event_files.py --check         # lets tokenloop write, reads that, compares
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "tensorboard" / "torch.tfevents"


def write():
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as directory:
        with SummaryWriter(directory) as writer:
            writer.add_scalar("train/reward", 0.25, 1, walltime=1700000000.5)
            writer.add_scalar("train/kl", -1e-7, 1, walltime=1700000000.5)
            writer.add_scalar("train/loss", float("nan"), 300, walltime=1700000001)
            writer.add_histogram_raw("train/turns", min=1, max=3, num=4, sum=8, sum_squares=18,
                                     bucket_limits=[2, 3], bucket_counts=[1, 3], global_step=2, walltime=1700000002)
            writer.add_text("sample", "**a**: é\n", 2, walltime=1700000003)
        (path,) = pathlib.Path(directory).iterdir()
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, GOLDEN)


def read(directory):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    return {
        "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags["scalars"]},
        "histograms": {
            tag: [[e.step, list(e.histogram_value.bucket_limit), list(e.histogram_value.bucket)]
                  for e in events.Histograms(tag)] for tag in tags["histograms"]},
        "texts": {tag: [[e.step, e.tensor_proto.string_val[0].decode()] for e in events.Tensors(tag)]
                  for tag in tags["tensors"]},
    }


def check():
    """A run of four steps, of which two are written again after a resume."""
    with tempfile.TemporaryDirectory() as directory:
        node = ["node", "--import", "tsx", "tools/golden/event-files.ts", directory]
        subprocess.run(node, cwd=ROOT, check=True)
        found = read(directory)
    assert found["scalars"]["train/reward"] == [[1, 0.25], [2, 0.5], [3, 30.0], [4, 40.0]], found["scalars"]
    assert found["scalars"]["train/kl"] == [[1, -1.0000000116860974e-07]], found["scalars"]
    assert found["histograms"]["train/turns"] == [[2, [1.0], [2.0]]], found["histograms"]
    assert found["texts"]["config"] == [[0, "    a: 1"]], found["texts"]
    (step, text), = found["texts"]["train/sample_0"]
    assert step == 2 and "*policy*" in text, text
    print("TensorBoard's reader finds what was written: 4 steps, none twice")


if __name__ == "__main__":
    if "--read" in sys.argv:
        print(json.dumps(read(sys.argv[-1]), indent=1))
    elif "--check" in sys.argv:
        check()
    else:
        write()
