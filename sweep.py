"""Trains a config over many settings, all seeds of each, and says which is best in validation.

python sweep.py --config=configs/gat_cora.py                    # the points of its get_sweep()
python sweep.py --config=configs/gcn_cora.py --set model.width=8,16 --set optimizer.l2=0,5e-4
python sweep.py --config=configs/gcn_cora.py --set optimizer.learning_rate=1e-4:1e-1:log \\
    --search=tpe --trials=64                                    # needs the extra [sweep]
python sweep.py --config=configs/gat_cora.py --dry_run          # points, populations, time

The same command again goes on with what is missing; several of them, on machines that share the
folder, share the work.
"""

import signal

if __name__ == "__main__":  # at once: while it is imported, jax would swallow a Ctrl-C
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import functools
import shlex
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
from absl import app, flags
from ml_collections import ConfigDict

import commandline
import devices
import experiment
import population
from configs.check import SettingError, changed
from results import files, outcome
from results.live import Board, Tail
from sweeps import cluster
from sweeps import space as spaces
from sweeps.crew import Crew, Source, failures, forget
from sweeps.forecast import forecast
from sweeps.search import SAMPLERS, Listed, Study
from sweeps.space import Population

flags.DEFINE_multi_string("set", [], "NAME=VALUE,VALUE,... or for a search NAME=LOW:HIGH[:log].")
flags.DEFINE_string("workdir", None, "The sweep's folder; by default one under results/.")
flags.DEFINE_integer("jobs", 0, "Populations trained at once; 0: as many as use all CPUs.", 0)
flags.DEFINE_integer("processes", 1, "Processes that train a population together.", 1)
flags.DEFINE_enum("search", None, SAMPLERS, "How to look for points, if not all are tried.")
flags.DEFINE_integer("trials", 64, "Points that a search tries.", 1)
flags.DEFINE_integer("batch", 1, "Points that a search decides on at once.", 1)
flags.DEFINE_integer("confirm", 0, "Train the best so many again, on fresh seeds.", 0)
flags.DEFINE_integer("confirm_seeds", 20, "Fresh seeds for each of them.", 1)
flags.DEFINE_bool("retry_failed", False, "Try again what has failed.")
flags.DEFINE_bool("dry_run", False, "Print points, populations and estimated time; train nothing.")
flags.DEFINE_bool("join", False, "Take what no other command does, then end without a table.")
flags.DEFINE_enum("launcher", "local", ["local", "slurm"], "Where to train.")
flags.DEFINE_string("partition", None, "Slurm's partition.")
flags.DEFINE_integer("minutes", 60, "Slurm: time limit of a job, which is then queued again.", 1)
flags.DEFINE_integer("gpus", 0, "Slurm: GPUs of a job.", 0)
flags.DEFINE_integer("cpus", 2, "Slurm: CPUs of a job.", 1)
flags.declare_key_flag("config")
FLAGS = flags.FLAGS

JOBS = 16  # of Slurm, unless --jobs says how many


class Sweep(NamedTuple):
    """What is swept over, and where."""

    config: ConfigDict
    folder: Path
    space: spaces.Space
    populations: list[Population]  # empty for a search, which decides on them as it goes
    size: int  # runs of a point


def plan(config: ConfigDict) -> Sweep:
    """What the command line asks for. Raises ValueError or OSError for what cannot be."""
    if config.select.split != "validation":
        raise SettingError(f"select.split = {config.select.split!r}: a sweep selects by validation")
    if FLAGS.search and find_spec("optuna") is None:
        raise ValueError(f"--search={FLAGS.search} needs Optuna: pip install 'lineage[sweep]'")
    if FLAGS.search and FLAGS.retry_failed:
        raise ValueError("--retry_failed: a search tries other points instead")
    space, points = wanted(config)
    populations = spaces.populations(config, points)
    for overrides in [found.overrides for found in populations] or [{}]:
        own = changed(config, overrides)
        model, task = experiment.setup(own)  # is there such a model, such data?
    population.check_metrics(population.plan(own, model, task))
    size = len(task.runs(range(config.seeds))["seed"])
    folder = Path(FLAGS.workdir or Path("results", commandline.config_file().stem, name(space)))
    return Sweep(config, folder, space, populations, size)


def wanted(config: ConfigDict) -> tuple[spaces.Space, list[spaces.Point]]:
    """What --set, or else the config's get_sweep(), asks for; the points, unless it is a search."""
    file = commandline.config_file()
    found = spaces.from_words(FLAGS.set, config) or spaces.from_file(file, config)
    points = found if isinstance(found, list) else []
    space = found if isinstance(found, dict) else spaces.of_points(found)
    for name in set(space) & set(commandline.overrides()):
        raise SettingError(f"{name}: is both set by --config.{name} and swept over")
    if FLAGS.search and points:
        raise ValueError(f"--search={FLAGS.search}: get_sweep() of {file} lists its points")
    if FLAGS.search:
        spaces.checked(spaces.corners(space), config)  # anything between them is as good
        return space, []
    return space, points or spaces.grid(space, config)


def name(space: spaces.Space) -> str:
    """The folder of a sweep under results/EXPERIMENT: another for every other sweep."""
    asked = {**commandline.overrides(), **(in_words(space) if FLAGS.set else {})}
    if FLAGS.search:
        asked |= {"search": FLAGS.search, "trials": FLAGS.trials}
    return ",".join(filter(None, ["sweep", commandline.slugged(asked)]))


def in_words(space: spaces.Space) -> dict[str, str]:
    join = lambda values: ",".join(map(str, values))
    return {k: str(v) if isinstance(v, spaces.Range) else join(v) for k, v in space.items()}


def manifest(sweep: Sweep) -> dict[str, Any]:
    """sweep.json: what the folder is of."""
    return {
        "experiment": commandline.config_file().stem,
        "file": commandline.config_file().as_posix(),
        "overrides": commandline.overrides(),
        "command": shlex.join(["python", "sweep.py", *settings()]),
        "metric": sweep.config.expected.metric,
        "space": {k: str(v) if isinstance(v, spaces.Range) else v for k, v in sweep.space.items()},
        "search": {"sampler": FLAGS.search, "trials": FLAGS.trials} if FLAGS.search else None,
        "populations": [found._asdict() for found in sweep.populations],
        "runs": sweep.size,
    }


def settings() -> list[str]:
    """The words of the command line that say what is swept over."""
    words = [f"--config={commandline.config_file().as_posix()}"]
    words += [f"--config.{name}={value}" for name, value in commandline.overrides().items()]
    words += [f"--set={word}" for word in FLAGS.set]
    if FLAGS.search:
        words += [f"--search={FLAGS.search}", f"--trials={FLAGS.trials}"]
    return words


class Stage(NamedTuple):
    """Where populations are trained, and how many at once: those of the sweep, or, on fresh seeds,
    those of its best points."""

    folder: Path
    base: dict[str, Any]  # settings of all
    size: int  # runs of a point
    runs: int  # in all
    jobs: int


def train(sweep: Sweep, source: Source, stage: Stage, asked: list[int]) -> list[str]:
    """Trains what `source` gives. Returns the names of what has not ended."""
    metric, steps = sweep.config.expected.metric, sweep.config.steps
    command = functools.partial(words, stage)
    tail = lambda p: Tail(stage.folder / p.name, len(p.points), stage.size, metric, steps)
    crew = Crew(stage.folder, source, command, tail, stage.jobs, FLAGS.processes)
    board = Board(stage.folder.name, metric, stage.runs, sys.stderr)
    show = lambda: board.show(crew.entries(stage.size))
    try:
        if FLAGS.launcher == "local":
            crew.work(asked, show, FLAGS.join)
        elif crew.left() or source.undecided():
            submit(sweep)
            while not asked and cluster.alive(sweep.folder):
                crew.watch()
                show()
                time.sleep(1)
    finally:
        board.close()
    return crew.left()


def submit(sweep: Sweep) -> None:
    """Has Slurm's jobs do this command's work, unless they do already."""
    if jobs := cluster.alive(sweep.folder):
        files.say(f"jobs {' '.join(jobs)} are at work on this: watching")
        return
    words = [sys.executable, str(Path(__file__).resolve()), *settings(), f"--batch={FLAGS.batch}"]
    words += [f"--workdir={sweep.folder.resolve()}", "--join", "--jobs=1"]
    words += [f"--processes={FLAGS.processes}", f"--confirm={FLAGS.confirm}"]
    words += [f"--confirm_seeds={FLAGS.confirm_seeds}"]
    count = FLAGS.jobs or min(len(sweep.populations) or FLAGS.trials, JOBS)
    workers = [cluster.Worker(words, str(Path.cwd()))] * count
    needs = {"minutes": FLAGS.minutes, "gpus": FLAGS.gpus, "cpus": FLAGS.cpus, "parallel": count}
    jobs = cluster.submit(sweep.folder, workers, partition=FLAGS.partition, **needs)
    files.say(f"jobs {' '.join(jobs)}: scancel ends them, this command only watches")


def words(stage: Stage, of: Population) -> list[str]:
    """What trains a population: train.py, as a person might call it."""
    path, points = stage.folder / of.name, of.points
    command = [sys.executable, str(Path(__file__).with_name("train.py"))]
    command += [f"--config={commandline.config_file()}", f"--workdir={path}"]
    command += [f"--config.{k}={v}" for k, v in (stage.base | of.given()).items()]
    if len(points) > 1:
        file = stage.folder / "points" / f"{of.name}.json"
        file.parent.mkdir(exist_ok=True)
        files.write_json(file, points)
        command += [f"--points={file}"]
    known = files.status(path)
    if known == "unfinished" and of.is_of(files.read_run(path)[0], stage.base):
        return [*command, "--resume"]
    return command if known == "absent" else [*command, "--overwrite"]


def first(sweep: Sweep) -> tuple[Source, Stage]:
    """The sweep's own populations."""
    base, (config, folder, space, found, size) = commandline.overrides(), sweep
    if FLAGS.search:
        study = Study(folder, config, space, FLAGS.search, FLAGS.trials, FLAGS.batch)
        stage = Stage(folder, base, size, size * FLAGS.trials, jobs([size] * FLAGS.trials))
        return study, stage
    return listed(folder, found, base, size)


def listed(
    folder: Path, found: list[Population], base: dict[str, Any], size: int
) -> tuple[Source, Stage]:
    runs = [len(one.points) * size for one in found]
    return Listed(folder, found, base), Stage(folder, base, size, sum(runs), jobs(runs))


def jobs(runs: list[int]) -> int:
    """How many populations, of so many runs, are trained at once: as many as use all CPUs, one if
    there may be an accelerator, which takes all runs of one."""
    most = 1 if find_spec("jax_plugins") or find_spec("libtpu") else commandline.cpus()
    used = max(devices.largest_divisor(count, most) for count in runs)  # CPUs that one can use
    return FLAGS.jobs or min(most // used, len(runs))


def again(sweep: Sweep, best: list[outcome.Part]) -> tuple[Source, Stage]:
    """The best points, on fresh seeds."""
    config = sweep.config
    base = commandline.overrides() | {"seed": config.seed + config.seeds}
    base |= {"seeds": FLAGS.confirm_seeds}
    points = [{name: own["overrides"][name] for name in sweep.space} for own, _ in best]
    found = spaces.populations(config, points)
    folder, size = sweep.folder / outcome.CONFIRM, sweep.size // config.seeds * FLAGS.confirm_seeds
    return listed(folder, found, base, size)


def run(sweep: Sweep, asked: list[int]) -> int:
    """Trains the sweep, confirms the best, tells what came out. Returns the exit code."""
    source, stage = first(sweep)
    left = train(sweep, source, stage, asked)
    parts, confirmed = outcome.gather(sweep.folder, names(source)), []
    failed = failures(stage.folder, names(source))
    confirm, held = sweep.folder / outcome.CONFIRM, [p for p in parts if p[1]["status"] != "failed"]
    if not FLAGS.confirm:  # what was confirmed before stays so
        confirmed = outcome.gather(confirm, [p.parent.name for p in confirm.glob("*/summary.json")])
    elif held and not left and not source.undecided() and not asked:
        fresh, stage = again(sweep, held[: FLAGS.confirm])
        left = train(sweep, fresh, stage, asked)
        confirmed = [] if left else outcome.gather(stage.folder, names(fresh))
        failed |= failures(stage.folder, names(fresh))
    if left and FLAGS.join:
        return 0
    asked_for = manifest(sweep)
    about = {name: asked_for[name] for name in ("experiment", "command", "metric", "space")}
    rest = [name for name in names(source) if name not in {*left, *failed}]
    pruned = [name for name in rest if files.status(sweep.folder / name) == "unfinished"]
    found = outcome.outcome(about, parts, confirmed, failed, pruned, left)
    files.write_json(sweep.folder / "outcome.json", found)
    print(outcome.words(found, sweep.folder))
    if asked:
        files.say("the same command goes on")
        return 128 + asked[0]
    lost = any(point["status"] == "failed" for point in found["points"])
    return int(bool(failed or left or lost))


def names(source: Source) -> list[str]:
    return [found.name for found in source.populations()]


def main(argv: list[str]) -> None:
    commandline.configure_jax()
    if not FLAGS.dry_run:
        jax.config.update("jax_platforms", "cpu")  # an accelerator is for the children
    with commandline.complaints(ValueError, OSError):
        sweep = plan(commandline.CONFIG.value)
        if FLAGS.dry_run:
            populations = sweep.populations or [Population("", {}, [{}], [0])] * FLAGS.trials
            runs = [len(found.points) * sweep.size for found in populations]
            print(forecast(sweep.config, in_words(sweep.space), populations, runs, jobs(runs)))
            return
        outcome.claim(sweep.folder, manifest(sweep))
        if FLAGS.retry_failed:
            forget(sweep.folder)
            forget(sweep.folder / outcome.CONFIRM)
        with commandline.interrupts() as asked:
            code = run(sweep, asked)
    sys.exit(code)


if __name__ == "__main__":
    app.run(main, flags_parser=commandline.parse)
