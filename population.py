"""Many runs as one program: who they are, how they start, advance and are tested.

experiment.py says what one run does; here it is mapped over the runs of a config: its seeds, times
the folds or splits that the task has of its own. Runs never meet, so what becomes of one does not
depend on its neighbours.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict

import configs.check
import devices
import experiment
import optimizer
from configs import lower_is_better
from configs.check import SettingError, changed, nearest
from experiment import State
from models.graph import Matrix, Sparse
from results import files
from results.run import Folder


def layout(step: Any, rest: Any) -> Any:
    """A State of marks: `step` for the step, which all runs share, `rest` for all other fields."""
    return State(step, *[rest] * (len(State._fields) - 1))


AXES = layout(None, 0)  # the axis of runs, as vmap takes it

# XLA would hand small groups of operations to a library, whose calls cost more than they save:
# a third of a step of GAT. Matrix products stay with it.
CPU = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT"}


Points = Sequence[Mapping[str, Any]]
ALIKE: Points = ({},)  # one point: the config's own settings


class Program(NamedTuple):
    """A config's population and the programs that start, advance and test it."""

    config: ConfigDict
    model: Any
    task: Any  # on the devices
    points: Points  # settings in which runs differ, each with as many of the runs, in order
    runs: dict[str, np.ndarray]  # the numbers that tell the runs apart, [R]: seed, split_seed, ...
    shapes: State  # shape and place of every array
    start: Any  # (task) -> State
    advance: Any  # (task, State) -> (State, what is measured); the state is donated
    test: Any  # (task, State) -> see `test`
    step: Any  # (task, State of one run) -> see experiment.step
    look: Any  # (task, State, index of a run) -> see experiment.look


def check(config: ConfigDict, points: Points) -> tuple[dict[str, Any], ...]:
    """The points, if the runs of one population can differ in them; else raises SettingError."""
    traced = optimizer.traced(config)
    for point in points:
        for name in point:
            if name not in traced:
                hint = nearest(name, traced)
                raise SettingError(
                    f"{name}: the runs of one population cannot differ in it; {hint}"
                )
        own = changed(config, point)
        configs.check.check(own)
        if bool(own.optimizer.clip) != bool(config.optimizer.clip):
            raise SettingError("optimizer.clip: unclipped runs (0) need a population of their own")
    plain = tuple(
        {name: float(v) if name != "seed" else v for name, v in p.items()} for p in points
    )
    if len({tuple(sorted(point.items())) for point in plain}) < len(plain):
        raise SettingError("points: one stands there twice")
    return plain


def trace(config: ConfigDict, model: Any, task: Any, points: Points = ALIKE) -> Program:
    """A population's programs, `advance` lowered, ready to be compiled.

    Raises SettingError for what only tracing can find, such as a metric that the task lacks.
    """
    program = plan(config, model, task, points)
    check_metrics(program)
    return program._replace(advance=program.advance.lower(program.task, program.shapes))


def check_metrics(program: Program) -> None:
    """Raises SettingError for a metric that the task lacks."""
    config, model = program.config, program.model

    def validation(task, state):
        one = one_run(state, 0)
        return experiment.evaluate(model, task, one.run, one.params, one.vars, "validation")[:2]

    scores, measures = jax.eval_shape(validation, program.task, program.shapes)
    known = scores | measures
    wanted = [("select.metrics", name) for name in config.select.metrics]
    for setting, name in [*wanted, ("expected.metric", config.expected.metric)]:
        if name not in known:
            raise SettingError(f"{setting}: the task has no {name!r}; {nearest(name, known)}")


def plan(config: ConfigDict, model: Any, task: Any, points: Points = ALIKE) -> Program:
    """A population's programs, of which only the start is traced: enough to restore a state."""
    runs, hyper = everyone(config, task, points)
    mesh = devices.mesh(len(runs["seed"]), task)
    places = layout(NamedSharding(mesh, P()), NamedSharding(mesh, P("run")))
    task = jax.device_put(task, places.step)
    first = functools.partial(start, config, model, runs=runs, hyper=hyper)
    chunk = map_runs(advance, config, model, mesh)

    def advance_all(task, state):
        measured = chunk(task, state)
        state = State(*measured.pop("state"))
        return state._replace(step=state.step.max()), measured  # the furthest: others have stopped

    options = CPU if jax.default_backend() == "cpu" else None
    jit = functools.partial(jax.jit, compiler_options=options)
    begin = jit(first, out_shardings=places)
    shapes = begin.eval_shape(task)
    # What is measured and seen lies on every device, so that every process can read it.
    advancing = jit(advance_all, donate_argnums=1, out_shardings=(places, places.step))
    tested = jit(map_runs(test, config, model, mesh), out_shardings=places.step)
    step = jax.jit(functools.partial(experiment.step, config, model))
    look = lambda task, state, i: experiment.look(config, model, task, one_run(state, i))
    look = jax.jit(look, out_shardings=places.step)
    programs = begin, advancing, tested, step, look
    return Program(config, model, task, points, runs, shapes, *programs)


def everyone(
    config: ConfigDict, task: Any, points: Points
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The runs' own numbers, and the optimizer's floats for each: all [R], point by point."""
    numbers, floats = [], []
    for point in points:
        seed = point.get("seed", config.seed)
        runs = task.runs(range(seed, seed + config.seeds))
        own = optimizer.hyper(config.optimizer)
        own = {name: point.get(f"optimizer.{name}", value) for name, value in own.items()}
        numbers.append({name: np.asarray(of, np.int32) for name, of in runs.items()})
        floats.append({name: np.full(len(runs["seed"]), v, np.float32) for name, v in own.items()})
    join = lambda *parts: np.concatenate(parts)
    return jax.tree.map(join, *numbers), jax.tree.map(join, *floats)


def start(
    config: ConfigDict, model: Any, task: Any, runs: dict[str, Any], hyper: dict[str, Any]
) -> State:
    """Every run [R] before its first step."""
    init = functools.partial(experiment.init, config, model, task)
    # lax.map, not vmap: batched QR (orthogonal starts) can hang XLA's CPU thread pool.
    state = jax.lax.map(lambda own: init(*own), jax.tree.map(jnp.asarray, (runs, hyper)))
    return state._replace(step=jnp.int32(0))


def advance(config: ConfigDict, model: Any, task: Any, state: State) -> dict[str, Any]:
    """`every` steps with the validations among them, and what was measured: all [R].

    The step is one number for all runs, so whether to go on is a real branch: the last chunk
    ends where training does.
    """
    update = functools.partial(experiment.step, config, model, task)
    validate = functools.partial(experiment.validate, config, model, task)
    every = min(config.every, config.steps)
    between = config.evaluate or every  # steps from one validation to the next

    @jax.jit  # traced once here, for its shapes as for the loop
    def block(state):
        one = jax.vmap(update, (AXES,), (AXES, 0))
        state, scores = jax.lax.scan(lambda state, _: one(state), state, length=between)
        state, metrics = jax.vmap(validate, (AXES,), (AXES, 0))(state)
        return state, jax.tree.map(lambda a: a.sum(0), scores), metrics

    def go_on(carry):
        state, sums, _ = carry
        state, scores, metrics = block(state)
        return state, jax.tree.map(jnp.add, sums, scores), metrics

    def unless_over(carry, _):
        going = (carry[0].step < config.steps) & devices.anywhere(task, carry[0].live.any())
        return jax.lax.cond(going, go_on, lambda carry: carry, carry), None

    live = state.live
    nothing = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(block, state)[1:])
    carry = (state, *nothing)
    (state, scores, metrics), _ = jax.lax.scan(unless_over, carry, length=every // between)
    ended = jnp.maximum(state.best.stopped_at, state.best.failed_at)
    rate = optimizer.rate(config.optimizer, state.step - 1, config.steps)
    means = {name: mean.total / mean.weight for name, mean in scores.items()}  # nan: of nothing
    return {
        "state": tuple(state._replace(step=jnp.full(live.shape, state.step))),  # [R], as all here
        "live": live,  # when the chunk began
        "step": jnp.where(ended > 0, ended, state.step),
        "learning_rate": state.hyper["learning_rate"] * rate,
        "metrics": {"train": means, config.select.split: metrics},
    }


def test(config: ConfigDict, model: Any, task: Any, state: State) -> dict[str, Any]:
    """With the parameters that are tested, all [R]: the metrics of every split and how many
    examples they are of; targets, mask and outputs of the test split, in order; how it ended."""

    def one(state):
        found = {}
        for split in ("train", "validation", "test"):
            scores, measures, outputs = experiment.evaluate(
                model, task, state.run, *experiment.final(config, state), split
            )
            metrics = {name: mean.value for name, mean in scores.items()} | measures
            found[split] = {"examples": scores["loss"].weight, "metrics": metrics}
        batches = task.split("test", state.run)
        arrays = {"targets": batches.targets, "mask": batches.mask, "outputs": outputs}
        flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), arrays)
        best = state.best
        ends = {"best_step": best.step, "stopped_at": best.stopped_at, "failed_at": best.failed_at}
        return {"splits": found, "arrays": flat, "ends": ends}

    return jax.vmap(one, (AXES,))(state)


def map_runs(f: Callable[..., Any], config: ConfigDict, model: Any, mesh: Mesh) -> Any:
    """(task, state) -> f(config, model, task, state) for a whole population: its runs are shared
    out to the devices along `run`, where each takes `together` of them at a time; those along
    `batch` divide every batch between them or, if it cannot be divided, do the same.

    A CPU is best at one after the other, whose arrays stay in its cache, an accelerator at all at
    once. A part whose runs have all stopped costs nothing more.
    """

    def share(task, state):
        task = devices.Divided(task) if devices.divides(mesh, task) else task
        runs = len(state.best.misses)
        wanted = config.together or (1 if jax.default_backend() == "cpu" else runs)
        size = devices.largest_divisor(runs, wanted)
        parts = jax.tree.map(lambda a: a.reshape(-1, size, *a.shape[1:]), tuple(state[1:]))
        done = jax.lax.map(lambda part: f(config, model, task, State(state.step, *part)), parts)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), done)

    def mapped(task, state):
        ours = {"run"} if devices.divides(mesh, task) else set(mesh.axis_names)  # the rest is XLA's
        specs = (P(), layout(P(), P("run")))
        place = functools.partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=P("run"))
        return place(share, axis_names=ours, check_vma=False)(task, state)

    return mapped


def one_run(state: State, index: Any) -> State:
    """The state of a single run of the population."""
    return State(state.step, *jax.tree.map(lambda a: a[index], tuple(state[1:])))


def best_run(config: ConfigDict, summary: dict[str, Any]) -> int:
    """The run with the best value of the first selected metric, among those that did not fail."""
    metric = config.select.metrics[0]
    values = summary["splits"][config.select.split][metric]["values"]
    sign = 1 if lower_is_better(metric) else -1
    return int(np.argmin([np.inf if v is None else sign * v for v in values]))


def seen(program: Program, state: State, index: int) -> dict[str, np.ndarray]:
    """What the model of one run sows, as flat arrays; weights on a list of edges with their ends,
    those on all pairs [..., Q, K, H] as they are."""

    def plain(leaf):
        if isinstance(leaf, Matrix):
            return leaf.edges() if isinstance(leaf.graph, Sparse) else leaf.weights
        return leaf

    found = program.look(program.task, state, index)
    found = jax.tree.map(plain, found, is_leaf=lambda leaf: isinstance(leaf, Matrix))
    return {name: np.asarray(a) for name, a in optimizer.by_path(found).items()}


def describe(program: Program) -> dict[str, Any]:
    """Parameters, a batch, the operations of a step of one run, as XLA counts them."""
    one = jax.eval_shape(lambda state: one_run(state, 0), program.shapes)
    batch = jax.eval_shape(program.task.batch, one.run, one.step)._asdict()
    cost = program.step.lower(program.task, one).cost_analysis() or {}
    return {
        "parameters": sum(a.size for a in jax.tree.leaves(one.params)),
        "shapes": {name: a.shape for name, a in optimizer.by_path(one.params).items()},
        "batch": {name: f"{a.dtype} {a.shape}" for name, a in optimizer.by_path(batch).items()},
        "flops_per_step": cost.get("flops"),
    }


def finished(path: Path) -> tuple[dict[str, Any], dict[str, Any], Program, State]:
    """A finished run's config.json and summary.json, its programs and its last state.

    Raises ValueError or OSError if there is none, or its data has changed; says if the code has.
    """
    about, summary = files.read_run(path)
    if not summary:
        raise ValueError(f"{path}: no finished run is there")
    config = experiment.saved_config(about)
    model, task = experiment.setup(config)
    was, now = about["data"], dict(task.about)
    for name in sorted(was | now):
        if was.get(name) != now.get(name):
            is_now = f"{name} is {now.get(name)!r}, but was {was.get(name)!r}"
            raise ValueError(f"{path}: the data has changed, its {is_now}")
    if code() not in about["code"]:
        files.say("the code has changed since: the numbers may have too")
    program = plan(config, model, task, about["points"])
    with Folder(path, readonly=True) as folder:
        return about, summary, program, folder.restore(program.shapes)


def code() -> str:
    """A hash of all code that a run's numbers depend on: models, data and what trains them."""
    home = Path(__file__).parent
    ours = sorted([*home.glob("*.py"), *home.glob("models/*.py"), *home.glob("data/*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in ours)).hexdigest()[:16]
