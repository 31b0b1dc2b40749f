"""Trains what a config describes, all its runs as one program, and tests what validation chose.

python train.py --config=configs/gat_cora.py [--config.model.heads=4 ...] [--workdir=DIR]
python train.py --config=configs/gat_cora.py --resume       # go on with an unfinished run
python train.py --config=configs/gat_cora.py --dry_run      # parameters, shapes, cost; no training
python train.py --evaluate=DIR                              # test a finished run again
"""

import signal

if __name__ == "__main__":  # at once: while it is imported, jax would swallow a Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
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
import devices
import experiment
import population
from experiment import State
from population import Program
from results import files, points, report
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
    program: Program, state: State, about: Mapping[str, Any], cost: Mapping[str, Any], path: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary of a population trained in this folder, and the arrays for its plots."""
    found = jax.device_get(program.test(program.task, state))
    known = population.describe(program)
    facts = {name: known[name] for name in ("parameters", "flops_per_step")}
    facts |= {"tested": experiment.tested(program.config), **cost}
    rows = files.read_rows(path) if program.config.select.keep == "common" else ()
    summary = report.summarize(about, program.runs, found["ends"], found["splits"], facts, rows)
    index = population.best_run(program.config, summary)
    return summary, {"best": index, **found["arrays"], **population.seen(program, state, index)}


def train(config: ConfigDict) -> int:
    """The command: train, resume or dry run. Returns the exit code."""
    with commandline.complaints(ValueError, OSError), devices.agreement():
        differ = commandline.points(config)
        model, task = experiment.setup(config)
        about, path = commandline.about(config, task, differ), commandline.workdir()
    with commandline.complaints(experiment.SettingError), devices.agreement():
        program = population.trace(config, model, task, differ)
    if FLAGS.dry_run:
        if devices.leads():
            print(report.dry_run(about, population.describe(program)))
        return 0
    with commandline.complaints(ValueError, OSError), devices.agreement():
        if FLAGS.resume and Folder.is_done(path, about):
            devices.say(f"{path}: nothing is left to do")
            return ended(*read_run(path), path)
        folder = Folder.open(path, about, FLAGS.resume, FLAGS.overwrite)
    devices.say(devices.idle(program.shapes.step.sharding, len(program.runs["seed"]), program.task))
    devices.say(f"{path}: compiling, then up to {config.steps} steps")
    progress = report.Progress(config.steps, config.select, sys.stderr)
    with commandline.complaints(FolderError, OSError), folder:
        with commandline.interrupts() as asked:
            # One for all: training ends everywhere at once, whichever process was signalled.
            signalled = lambda: int(devices.every(asked[0] if asked else 0).max())

            def stop(rows):
                if devices.leads():
                    progress.show(rows)
                return bool(signalled())

            state, seconds = fit(program, folder, stop)
        progress.close()
        if number := signalled():
            again = f"{folder.about['command']} --resume --workdir={shlex.quote(str(path))}"
            devices.say(f"saved; go on with: {again}")
            return 128 + number
        cost = {"seconds": seconds, "peak_memory": report.peak_memory()}
        summary, outputs = conclude(program, state, folder.about, cost, path)
        folder.finish(summary, outputs)
    return ended(folder.about, summary, path)


def evaluate(path: Path) -> int:
    """The command --evaluate: a finished run's block, its numbers computed again."""
    with commandline.complaints(ValueError, OSError):
        about, summary, program, state = population.finished(path)
    cost = {name: summary[name] for name in ("seconds", "peak_memory")}
    return ended(about, conclude(program, state, about, cost, path)[0], path)


def ended(about: Mapping[str, Any], summary: Mapping[str, Any], path: Path) -> int:
    """Prints the final block; the exit code is 1 if every run failed."""
    if devices.leads():
        print(points.final_block(about, summary, path))
    return 1 if summary["status"] == "failed" else 0


def main(argv: list[str]) -> None:
    commandline.configure_jax()
    try:
        if FLAGS.evaluate:
            sys.exit(evaluate(Path(FLAGS.evaluate)))
        with commandline.complaints(ValueError, RuntimeError):
            devices.join()
        sys.exit(train(commandline.CONFIG.value))
    except jax.errors.JaxRuntimeError as e:
        if "out of memory" in str(e).lower():
            commandline.stop(f"this does not fit, try a smaller model or --config.together=1: {e}")
        if jax.process_count() == 1:
            raise
        files.say(f"error: another process has ended; go on with --resume: {e}")
        os._exit(1)  # at once: JAX would wait for the other


if __name__ == "__main__":
    app.run(main, flags_parser=commandline.parse)
