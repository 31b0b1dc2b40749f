"""Trains what a config describes, all its runs as one program, and tests what validation chose.

python train.py --config=configs/gat_cora.py [--config.model.heads=4 ...] [--workdir=DIR]
python train.py --config=configs/gat_cora.py --resume       # go on with an unfinished run
python train.py --config=configs/gat_cora.py --dry_run      # parameters, shapes, cost; no training
python train.py --evaluate=DIR                              # test a finished run again
"""

import math
import signal
import sys
import time
from collections.abc import Generator, Mapping
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
from results import report
from results.run import ENDED, Folder, Row, read_json, status

flags.DEFINE_string("workdir", None, "The run's folder; by default one under results/.")
flags.DEFINE_bool("resume", False, "Go on with the unfinished run in the folder.")
flags.DEFINE_bool("overwrite", False, "Begin anew in a folder that holds a run.")
flags.DEFINE_bool("dry_run", False, "Print config, parameters, shapes and cost; write nothing.")
flags.DEFINE_string("evaluate", None, "Test the run in this folder again; change nothing.")
FLAGS = flags.FLAGS


def run(program: Program, folder: Folder) -> Generator[list[Row], None, None]:
    """Trains a population in its folder; yields its rows every `config.every` steps.

    Goes on from the folder's checkpoint if there is one. The generator may be closed at any row:
    the state is saved first. When it ends by itself, the folder has its summary.
    """
    config, task = program.config, program.task
    began = time.monotonic()
    advance = program.advance.compile()
    state = folder.restore(program.shapes)
    state = program.start(task) if state is None else state
    ready = time.monotonic()
    while state.step < config.steps and state.live.any():
        state, measured = advance(task, state)
        rows = report.rows(program.runs, jax.device_get(measured))
        folder.append(rows)
        folder.save(int(state.step), state, every=config.save)
        try:
            yield rows
        except GeneratorExit:
            folder.save(int(state.step), state)
            raise
    folder.save(int(state.step), state)
    spent = {"compile": ready - began, "train": time.monotonic() - ready}
    known = population.describe(program)
    facts = {
        "tested": experiment.tested(config),
        "parameters": sum(math.prod(shape) for shape in known["parameters"].values()),
        "flops_per_step": known["flops_per_step"],
        "peak_memory": report.peak_memory(),
        "seconds": {name: round(value, 2) for name, value in spent.items()},
    }
    folder.finish(*conclude(program, state, folder.about, facts))


def conclude(
    program: Program, state: State, about: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary of a trained population, and the arrays that plots are made from."""
    found = jax.device_get(program.test(program.task, state))
    best = jax.device_get(state.best)
    ends = {"best_step": best.step, "stopped_at": best.stopped_at, "failed_at": best.failed_at}
    summary = report.summarize(about, program.runs, ends, found["splits"], facts)
    index = population.best_run(program.config, summary)
    return summary, {"best": index, **found["rows"], **population.sown(program, state, index)}


def train(config: ConfigDict) -> int:
    """The command: train, resume or dry run. Returns the exit code."""
    with commandline.complaints(ValueError, OSError):
        if FLAGS.resume and FLAGS.overwrite:
            raise ValueError("--resume and --overwrite contradict each other")
        model, task = experiment.setup(config)
        about, path = commandline.about(config, task), commandline.workdir()
    with commandline.complaints(experiment.SettingError):
        program = population.trace(config, model, task)
    if FLAGS.dry_run:
        print(report.dry_run(about, population.describe(program)))
        return 0
    with commandline.complaints(ValueError, OSError):
        if FLAGS.resume and Folder.is_done(path, about):
            return ended(read_json(path / "summary.json"), path)
        folder = Folder.open(path, about, FLAGS.resume, FLAGS.overwrite)
    progress = report.Progress(config.steps, config.select.metrics)
    with folder, commandline.interrupts() as asked:
        rows = run(program, folder)
        for new in rows:
            progress.show(new)
            if asked:
                rows.close()
                print(f"saved; go on with --resume --workdir={path}", file=sys.stderr)
                return 128 + asked[0]
    progress.close()
    return ended(read_json(path / "summary.json"), path)


def evaluate(path: Path) -> int:
    """The command --evaluate: a finished run's block, its numbers computed again."""
    with commandline.complaints(ValueError, OSError):
        if status(path) not in ENDED:
            raise ValueError(f"--evaluate={path}: no finished run is there")
        about, summary = read_json(path / "config.json"), read_json(path / "summary.json")
        config = experiment.saved_config(about)
        model, task = experiment.setup(config)
        if task.about != about["data"]:
            raise ValueError(f"{path}: the data is {task.about}, the run's is {about['data']}")
        program = population.trace(config, model, task)
        state = Folder(path, readonly=True).restore(program.shapes)
    again, _ = conclude(program, state, about, {name: summary[name] for name in report.FACTS})
    return ended(again, path)


def ended(summary: Mapping[str, Any], path: Path) -> int:
    """Prints the final block; the exit code is 1 if every run failed."""
    print(report.final_block(summary, path))
    return 1 if summary["status"] == "failed" else 0


def main(argv: list[str]) -> None:
    commandline.configure_jax()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while there is nothing to save
    if FLAGS.evaluate:
        sys.exit(evaluate(Path(FLAGS.evaluate)))
    if commandline.CONFIG.value is None:
        commandline.stop("--config=FILE is required, such as --config=configs/gat_cora.py")
    sys.exit(train(commandline.CONFIG.value))


if __name__ == "__main__":
    app.run(main, flags_parser=commandline.parse)
