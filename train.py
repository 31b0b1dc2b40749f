"""Trains what a config describes, all its runs as one program, and tests what validation chose.

python train.py --config=configs/gat_cora.py [--config.model.heads=4 ...] [--workdir=DIR]
python train.py --config=configs/gat_cora.py --resume       # go on with an unfinished run
python train.py --config=configs/gat_cora.py --dry_run      # parameters, shapes, cost; no training
python train.py --evaluate=DIR                              # test a finished run again
"""

import signal

if __name__ == "__main__":  # at once: while it is imported, jax would swallow a Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import shlex
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
from absl import app, flags
from ml_collections import ConfigDict

import commandline
import experiment
import population
from experiment import State
from population import Program
from results import points, report
from results.files import FolderError, Row, read_run
from results.run import Folder

flags.DEFINE_string("workdir", None, "The run's folder; by default one under results/.")
flags.DEFINE_string("points", None, "A file: settings in which the runs are to differ, as JSON.")
flags.DEFINE_bool("resume", False, "Go on with the unfinished run in the folder.")
flags.DEFINE_bool("overwrite", False, "Begin anew in a folder that holds a run.")
flags.DEFINE_bool("dry_run", False, "Print config, parameters, shapes and cost; write nothing.")
flags.DEFINE_string("evaluate", None, "Test the run in this folder again; change nothing.")
flags.declare_key_flag("config")  # commandline.py's, for --help to show
FLAGS = flags.FLAGS


def fit(
    program: Program, folder: Folder, stop: Callable[[list[Row]], bool]
) -> tuple[State, dict[str, float]]:
    """Trains a population in its folder, from the folder's checkpoint if there is one.

    Every `config.every` steps new rows are recorded and handed to `stop`; training ends there if it
    returns true. Returns the state, saved, and the seconds it took to compile and to train.
    """
    config, task = program.config, program.task
    began = time.monotonic()
    advance = program.advance.compile()
    state = folder.restore(program.shapes) or program.start(task)
    ready = time.monotonic()
    seconds = {"compile": ready - began, "train": folder.seconds}  # of former sittings
    while state.step < config.steps and state.live.any():
        state, measured = advance(task, state)
        measured = jax.device_get(measured)
        seconds["train"] = folder.seconds + time.monotonic() - ready
        rows = report.rows(program.runs, measured, seconds["train"], program.points)
        folder.append(rows)
        folder.save(int(state.step), state, every=config.save)
        if stop(rows):
            break
    folder.save(int(state.step), state)
    return state, {name: round(value, 2) for name, value in seconds.items()}


def conclude(
    program: Program, state: State, about: Mapping[str, Any], cost: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary of a trained population, and the arrays that plots are made from."""
    found = jax.device_get(program.test(program.task, state))
    best = jax.device_get(state.best)
    ends = {"best_step": best.step, "stopped_at": best.stopped_at, "failed_at": best.failed_at}
    known = population.describe(program)
    facts = {name: known[name] for name in ("parameters", "flops_per_step")}
    facts |= {"tested": experiment.tested(program.config), **cost}
    summary = report.summarize(about, program.runs, ends, found["splits"], facts)
    index = population.best_run(program.config, summary)
    return summary, {"best": index, **found["arrays"], **population.seen(program, state, index)}


def train(config: ConfigDict) -> int:
    """The command: train, resume or dry run. Returns the exit code."""
    with commandline.complaints(ValueError, OSError):
        differ = commandline.points(config)
        model, task = experiment.setup(config)
        about, path = commandline.about(config, task, differ), commandline.workdir()
    with commandline.complaints(experiment.SettingError):
        program = population.trace(config, model, task, differ)
    if FLAGS.dry_run:
        print(report.dry_run(about, population.describe(program)))
        return 0
    with commandline.complaints(ValueError, OSError):
        if FLAGS.resume and Folder.is_done(path, about):
            print(f"{path}: nothing is left to do", file=sys.stderr)
            return ended(*read_run(path), path)
        folder = Folder.open(path, about, FLAGS.resume, FLAGS.overwrite)
    print(f"{path}: compiling, then up to {config.steps} steps", file=sys.stderr)
    progress = report.Progress(config.steps, config.select, sys.stderr)
    with commandline.complaints(FolderError, OSError), folder:
        with commandline.interrupts() as asked:

            def stop(rows):
                progress.show(rows)
                return bool(asked)

            state, seconds = fit(program, folder, stop)
        progress.close()
        if asked:
            again = f"{folder.about['command']} --resume --workdir={shlex.quote(str(path))}"
            print(f"saved; go on with: {again}", file=sys.stderr)
            return 128 + asked[0]
        cost = {"seconds": seconds, "peak_memory": report.peak_memory()}
        summary, outputs = conclude(program, state, folder.about, cost)
        folder.finish(summary, outputs)
    return ended(folder.about, summary, path)


def evaluate(path: Path) -> int:
    """The command --evaluate: a finished run's block, its numbers computed again."""
    with commandline.complaints(ValueError, OSError):
        about, summary, program, state = population.finished(path)
    cost = {name: summary[name] for name in ("seconds", "peak_memory")}
    return ended(about, conclude(program, state, about, cost)[0], path)


def ended(about: Mapping[str, Any], summary: Mapping[str, Any], path: Path) -> int:
    """Prints the final block; the exit code is 1 if every run failed."""
    print(points.final_block(about, summary, path))
    return 1 if summary["status"] == "failed" else 0


def main(argv: list[str]) -> None:
    commandline.configure_jax()
    try:
        if FLAGS.evaluate:
            sys.exit(evaluate(Path(FLAGS.evaluate)))
        sys.exit(train(commandline.CONFIG.value))
    except jax.errors.JaxRuntimeError as e:
        if "out of memory" not in str(e).lower():
            raise
        commandline.stop(f"this does not fit, try a smaller model or --config.together=1: {e}")


if __name__ == "__main__":
    app.run(main, flags_parser=commandline.parse)
