"""What a trained model says of every example: a table in CSV.

python predict.py --run=DIR [--output=FILE]     # of the run's own data
python predict.py --run=DIR --input=PATH        # of other data, if the task can read it
"""

import signal

if __name__ == "__main__":  # at once: while it is imported, jax would swallow a Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import csv
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import jax

import commandline
import experiment
from results.files import write


def main(words: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="predict.py", allow_abbrev=False)
    parser.error = commandline.stop  # type: ignore  # one line
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="a run's folder")
    parser.add_argument("--index", type=int, help="which of its runs; by default the best")
    parser.add_argument("--input", metavar="PATH", help="other data than the run's own")
    parser.add_argument("--output", type=Path, metavar="FILE", help="instead of the terminal")
    asked = parser.parse_args(words)
    with commandline.complaints(ValueError, OSError):
        if asked.output and not asked.output.absolute().parent.is_dir():
            raise ValueError(f"--output={asked.output}: there is no such folder")
        if asked.output and asked.output.is_dir():
            raise ValueError(f"--output={asked.output}: expected a file")
        text = predict(asked.run, asked.index, asked.input)
        if asked.output:
            write(asked.output, text)
        else:  # not through sys.stdout, which would try again at the end to write what failed
            with open(1, "w", encoding="utf-8", newline="", closefd=False) as terminal:
                terminal.write(text)


def predict(folder: Path, index: int | None, path: str | None) -> str:
    """The table of a finished run; ValueError or OSError says why there is none."""
    model, variables, task, run = experiment.load(folder, index)
    if not (hasattr(task, "read") and hasattr(task, "write")):
        raise ValueError(f"{folder}: its task does not read and write, see data/task.py")
    known, batches = task.read(path, run)
    through = functools.partial(experiment.through, model, of=lambda outputs, batch: outputs)
    table = task.write(known, jax.jit(through)(variables, batches))
    lines = csv.writer(SimpleNamespace(write=lambda line: line))  # quotes any kind of line break
    return "".join(lines.writerow(row).removesuffix("\r\n") + "\n" for row in table)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    sys.stderr = commandline.Heedless(sys.stderr)
    commandline.configure_jax()
    main()
