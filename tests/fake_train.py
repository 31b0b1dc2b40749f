"""Stands in for train.py, in a second: leaves the folder of a run that ended as it is told to.

python fake_train.py FOLDER OVERRIDES POINTS WAYS     # the last three as JSON
WAYS: for every point "raise", "kill" (the first time), "wait" (until it is asked to end), or the
values of its runs in validation (null: failed); the tests' values are these in reverse order.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from results import report  # noqa: E402
from results.files import write_json  # noqa: E402


def main(folder: Path, overrides: dict, points: list, ways: list) -> None:
    tries = folder.with_suffix(".tries")
    tries.write_text(f"{(int(tries.read_text()) if tries.exists() else 0) + 1}")
    if "raise" in ways:
        raise RuntimeError("no such thing")
    if "kill" in ways and tries.read_text() == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    if "wait" in ways:
        time.sleep(600)
    values = [[0.5, 0.6] if isinstance(way, str) else way for way in ways]
    valid = np.array([v for way in values for v in way], float)
    test = np.array([v for way in values for v in way[::-1]], float)
    runs, failed = np.arange(len(valid)), np.isnan(valid)
    about = {
        "experiment": "fake", "command": "python train.py", "date": "", "code": "c", "device": "",
        "overrides": overrides, "points": points, "versions": {},
        "data": {"dataset": "d", "split": "own", "checksum": ""},
        "config": {
            "model": {"name": "Net"} | {"width": overrides.get("model.width", 1)},
            "optimizer": {"learning_rate": 0.1}, "select": {"split": "validation"},
            "steps": 20, "every": 10,
            "expected": {"metric": "accuracy", "value": 0, "std": 0, "low": 0, "high": 0}
            | {"source": ""},
        },
    }  # fmt: skip
    ends = {"best_step": runs, "stopped_at": runs, "failed_at": failed * 7}
    of = lambda values: {"examples": runs, "metrics": {"accuracy": values}}
    facts = {"tested": "", "parameters": 9, "flops_per_step": 1.0, "peak_memory": 1}
    facts["seconds"] = {"compile": 1.0, "train": 1.0}
    splits = {"validation": of(valid), "test": of(test)}
    folder.mkdir()
    write_json(folder / "config.json", about)
    write_json(
        folder / "summary.json", report.summarize(about, {"seed": runs}, ends, splits, facts)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(json.loads, sys.argv[2:]))
