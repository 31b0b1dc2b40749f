"""One run as pure functions: build, init, step, evaluate, select. Populations are population.py's.

All that changes during a run is in its State, as plain arrays. No random key is kept there: each is
made from the run's seed and the step. So a saved state is a saved run, and resuming is exact.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import Array
from ml_collections import ConfigDict

import configs.check
import optimizer
from configs import lower_is_better
from configs.check import SettingError, check_type, nearest
from data.task import Batch, Mean, Task
from models.dropout import counter_key
from models.network import Unfit

Scores = dict[str, Mean]


class Best(NamedTuple):
    """The best validation so far: what training is judged by, and when it ends."""

    values: dict[str, Array]  # the best of each selected metric
    step: Array  # of the parameters kept
    params: Any  # those parameters; () if the last ones are wanted
    vars: Any  # the statistics that go with them
    misses: Array  # validations since one improved
    stopped_at: Array  # step, 0 while live
    failed_at: Array  # step whose loss or update was not finite, 0 if none


class State(NamedTuple):
    """A run. In a population all but `step` have a leading axis of runs."""

    step: Array
    run: dict[str, Array]  # its numbers, of the task's making: seed, fold, ...
    hyper: dict[str, Array]  # the optimizer's floats
    params: Any
    vars: Any  # every other collection: batch statistics, carried memory
    opt: Any
    best: Best

    @property
    def live(self) -> Array:
        return (self.best.stopped_at == 0) & (self.best.failed_at == 0)


def setup(config: ConfigDict) -> tuple[nn.Module, Task]:
    """The config's model and task. Raises ValueError or OSError with one line: what is wrong."""
    import data
    import models

    configs.check.check(config)
    optimizer.check(config.optimizer)
    task = build(data, config.task, "task")
    if missing := {"dataset", "split", "checksum"} - set(task.about):
        raise ValueError(f"task {config.task.name}: its `about` lacks {', '.join(sorted(missing))}")
    return build(models, config.model, "model", **task.dims), task


def build(namespace: Any, spec: Mapping[str, Any], section: str, **known: Any) -> Any:
    """namespace.NAME(**fields): how a section of the config becomes a task or a model.

    `known` is what the data tells the model, given to it where it has such a field. A field with a
    name of its own, such as the encoder of an auto-encoder, is built likewise.
    """
    names = [name for name, value in vars(namespace).items() if callable(value)]
    name = str(spec.get("name"))
    if name not in names:
        raise SettingError(f"{section}.name = {name!r}: {nearest(name, names)}")
    make = getattr(namespace, name)
    takes = inspect.signature(make).parameters
    fields = {key: value for key, value in spec.items() if key != "name"}
    free = [key for key in takes if key not in {"parent", "name", *known}]
    for key, value in fields.items():
        if key not in free:
            hint = nearest(key, free)
            raise SettingError(f"{section}.{key} is no field of {name}: {hint}")
        if isinstance(value, Mapping | ConfigDict):
            fields[key] = build(namespace, value, f"{section}.{key}")
        else:
            check_type(f"{section}.{key}", value, takes[key].annotation)
    return make(**fields, **{key: value for key, value in known.items() if key in takes})


def check_inputs(model: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Raises SettingError unless the model can be called with as many inputs as the task gives."""
    signature = inspect.signature(model.__call__)
    try:
        signature.bind(*inputs, train=False)
    except TypeError:
        takes = f"model {type(model).__name__} takes ({', '.join(signature.parameters)})"
        kinds = [type(x).__name__ if is_dataclass(x) else "Array" for x in inputs]
        gives = f"the task gives {len(inputs)} inputs ({', '.join(kinds)}) and train"
        raise SettingError(f"{takes}, {gives}") from None


def init(config: ConfigDict, model: nn.Module, task: Task, run: dict, hyper: dict) -> State:
    """The state before the first step."""
    key, _ = jax.random.split(jax.random.key(run["seed"]))
    inputs = task.batch(run, jnp.int32(0)).inputs
    check_inputs(model, inputs)
    try:
        variables = dict(model.init({"params": key, "dropout": key}, *inputs, train=False))
    except Unfit as e:
        raise SettingError(str(e)) from None
    params = variables.pop("params")
    vars = {k: v for k, v in variables.items() if k not in ("intermediates", "losses")}
    if "carry" in vars:  # initialising has run the model once: memory starts from zero
        vars["carry"] = jax.tree.map(jnp.zeros_like, vars["carry"])
    worst = {m: jnp.inf if lower_is_better(m) else -jnp.inf for m in config.select.metrics}
    values = {m: jnp.float32(v) for m, v in worst.items()} if config.evaluate else {}
    keep = config.select.keep == "best"
    kept_params, kept_vars = (params, statistics(vars)) if keep else ((), ())
    zero = jnp.int32(0)
    best = Best(values, zero, kept_params, kept_vars, zero, zero, zero)
    opt = optimizer.optimizer(config.optimizer, hyper, zero, config.steps).init(params)
    return State(zero, run, hyper, params, vars, opt, best)


def statistics(vars: dict) -> dict:
    """The collections that belong to the parameters: all but carried memory."""
    return {name: value for name, value in vars.items() if name != "carry"}


def step(config: ConfigDict, model: nn.Module, task: Task, state: State) -> tuple[State, Scores]:
    """One update: data, loss (with sown losses and l2), gradient, update; and the batch's scores.

    A run that has stopped stays as it is; so does one whose loss or update is not finite, for good.
    """
    _, key = jax.random.split(jax.random.key(state.run["seed"]))

    def objective(params, vars, count):
        batch = task.batch(state.run, count)
        noise = counter_key(jax.random.fold_in(key, count))
        outputs, new = model.apply(
            {"params": params, **vars}, *batch.inputs, train=True,
            rngs={"dropout": noise}, mutable=[*vars, "losses"],
        )  # fmt: skip
        scores = task.score(outputs, batch)
        loss = scores["loss"]
        vars = {name: value for name, value in new.items() if name != "losses"}
        sown = sum(map(jnp.sum, jax.tree.leaves(new.get("losses", {}))))
        extra = sown + state.hyper["l2"] * optimizer.half_squares(params, config.optimizer.l2_on)
        scores["objective"] = Mean(loss.total + loss.weight * extra, loss.weight)
        return scores["objective"].total, (vars, scores)

    def add(sums, count):
        vars, total = sums
        gradient, (vars, scores) = jax.grad(objective, has_aux=True)(state.params, vars, count)
        new = (gradient, scores)
        return (vars, new if total is None else jax.tree.map(jnp.add, total, new)), None

    # Totals are summed over the batches of an update and divided once: exact for ragged batches.
    # The first batch makes the sums: the scan over the rest then knows their shapes.
    batches = config.optimizer.accumulate
    sums, _ = add((state.vars, None), state.step * batches)
    if batches > 1:
        sums, _ = jax.lax.scan(add, sums, state.step * batches + jnp.arange(1, batches))
    vars, (gradient, scores) = sums
    weight = jnp.maximum(scores["loss"].weight, 1e-30)  # without targets: no gradient
    gradient = jax.tree.map(lambda g: g / weight, gradient)

    rule = optimizer.optimizer(config.optimizer, state.hyper, state.step, config.steps)
    updates, opt = rule.update(gradient, state.opt, state.params)
    finite = jnp.isfinite(scores["objective"].value) & jnp.isfinite(optax.tree.norm(updates))
    taken = state.live & finite
    moved = (optax.apply_updates(state.params, updates), vars, opt)
    params, vars, opt = choose(taken, moved, (state.params, state.vars, state.opt))
    failed_at = jnp.where(state.live & ~finite, state.step + 1, state.best.failed_at)
    scores = choose(taken, scores, jax.tree.map(jnp.zeros_like, scores))
    state = state._replace(params=params, vars=vars, opt=opt, step=state.step + 1)
    return state._replace(best=state.best._replace(failed_at=failed_at)), scores


def evaluate(
    model: nn.Module, task: Task, run: dict, params: Any, vars: dict, split: str
) -> tuple[Scores, dict[str, Array], Any]:
    """A split's scores, its whole-split measures, and the outputs stacked [S, ...]."""
    batches = task.split(split, run)
    score = lambda outputs, batch: (task.score(outputs, batch), outputs)
    scores, outputs = through(model, {"params": params, **vars}, batches, score)
    measures = task.measure(outputs, batches) if hasattr(task, "measure") else {}
    return jax.tree.map(lambda a: a.sum(0), scores), measures, outputs


def through(model: nn.Module, variables: dict, batches: Batch, of: Callable) -> Any:
    """of(outputs, batch) for each of the batches [S, ...], stacked likewise.

    Only carried memory moves from batch to batch, from a zero start; all else is frozen.
    """
    carry = {}
    if "carry" in variables:
        first = jax.tree.map(lambda a: a[0], batches)
        init = functools.partial(model.init, train=False)
        shapes = jax.eval_shape(init, jax.random.key(0), *first.inputs)["carry"]
        carry["carry"] = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)

    def one(carry, batch):
        inputs = {**statistics(variables), **carry}, *batch.inputs
        outputs, carry = model.apply(*inputs, train=False, mutable=["carry"])
        return dict(carry), of(outputs, batch)

    return jax.lax.scan(one, carry, batches)[1]


def validate(config: ConfigDict, model: nn.Module, task: Task, state: State) -> tuple[State, dict]:
    """A validation, if there is one: its metrics, and the state with what they say is best."""
    if not config.evaluate:
        return state, {}
    split = config.select.split
    scores, measures, _ = evaluate(model, task, state.run, state.params, state.vars, split)
    metrics = {name: mean.value for name, mean in scores.items()} | measures
    return select(config, state, metrics), metrics


def select(config: ConfigDict, state: State, metrics: Mapping[str, Array]) -> State:
    """Keeps what the validation's metrics say is best, and stops a run that ran out of patience.

    Patience starts anew when any metric improves; parameters are kept when all are at their best
    (the rule of Veličković et al. 2018; with one metric, everybody's).
    """
    best = state.best
    improved = {}
    for name, old in best.values.items():
        sign = -1 if lower_is_better(name) else 1
        gain = sign * (metrics[name] - old)
        improved[name] = state.live & ((gain > 0) | (config.select.ties & (gain == 0)))
    some = functools.reduce(jnp.logical_or, improved.values())
    every = functools.reduce(jnp.logical_and, improved.values())
    values = {m: jnp.where(improved[m], metrics[m], old) for m, old in best.values.items()}
    keep = config.select.keep == "best"
    now = (state.step, *((state.params, statistics(state.vars)) if keep else ((), ())))
    step, params, vars = choose(every, now, (best.step, best.params, best.vars))
    misses = jnp.where(some, 0, best.misses + state.live)
    first = state.step <= config.evaluate  # may miss, if it is not finite, but not end a run
    out = state.live & (config.patience > 0) & (misses >= config.patience) & ~first
    stopped_at = jnp.where(out, state.step, best.stopped_at)
    best = Best(values, step, params, vars, misses, stopped_at, best.failed_at)
    return state._replace(best=best)


def final(config: ConfigDict, state: State) -> tuple[Any, dict]:
    """The parameters and statistics that are tested."""
    if config.select.keep == "best":
        return state.best.params, {**state.vars, **state.best.vars}
    return state.params, state.vars


def tested(config: ConfigDict) -> str:
    """Which these are, in words."""
    if config.select.keep == "last":
        return "at the last step"
    if config.select.keep == "common":
        split, metric = config.select.split, config.select.metrics[0]
        return f"on {split}, at the one step of all runs where the mean {metric} is best"
    ways = {m: "lowest" if lower_is_better(m) else "highest" for m in config.select.metrics}
    return "at the " + " and ".join(f"{way} {config.select.split} {m}" for m, way in ways.items())


def choose(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(functools.partial(jnp.where, condition), new, old)


def look(config: ConfigDict, model: nn.Module, task: Task, state: State) -> dict[str, Any]:
    """What the model sows on the first test batch: attention, features, memory reads."""
    params, vars = final(config, state)
    inputs = jax.tree.map(lambda a: a[0], task.split("test", state.run).inputs)
    _, found = model.apply(
        {"params": params, **vars}, *inputs, train=False, mutable=["intermediates", "carry"]
    )
    return dict(found.get("intermediates", {}))


def load(folder: str | Path, index: int | None = None) -> tuple[nn.Module, dict, Task, dict]:
    """A finished run's model, the variables that were tested, its task and the run's own numbers.

    Of a folder's runs, `index` says which; by default it is the one with the best validation.
    """
    import population  # which stands on this module

    _, summary, program, state = population.finished(Path(folder))
    index = population.best_run(program.config, summary) if index is None else index
    if not 0 <= index < summary["n"]:
        raise ValueError(f"run {index} of {folder}: expected 0 to {summary['n'] - 1}")
    if failed_at := summary["runs"][index]["failed_at"]:
        raise ValueError(f"run {index} of {folder} failed at step {failed_at}")
    own = population.one_run(jax.device_get(state), index)
    # On one device, which calls model and task without being told where things are.
    task, own = jax.tree.map(jnp.asarray, (jax.device_get(program.task), own))
    params, vars = final(program.config, own)
    run = {name: int(number) for name, number in own.run.items()}
    return program.model, {"params": params, **vars}, task, run


def saved_config(about: Mapping[str, Any]) -> ConfigDict:
    """The config of a run folder: JSON has no tuples, a config no lists."""
    is_list = lambda value: isinstance(value, list)
    tuples = lambda value: tuple(value) if is_list(value) else value
    return ConfigDict(jax.tree.map(tuples, dict(about["config"]), is_leaf=is_list))
