"""The optimizer of a config: optax's, with a rate that follows a shape in [0, 1].

It is built anew inside the traced step, so its floats may differ between the runs of a population
that is compiled once. Steps are counted from 0, updates from 1.
"""

import functools
import inspect
import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from ml_collections import ConfigDict

from configs.check import SettingError, nearest

# Fields of the config's section that are ours; the rest are the arguments of optax's.
OURS = ("name", "learning_rate", "schedule", "warmup", "drops", "clip", "accumulate", "l2", "l2_on")


def drops(n: Array, spec: ConfigDict) -> Array:
    """How many drops of the rate lie before update n."""
    return sum((jnp.float32(n > drop) for drop in spec.drops), start=jnp.float32(0))


# The rate's shape at update n of `steps`, before the warm-up; what exceeds 1 is taken as 1.
SHAPES = {
    "constant": lambda n, steps, spec: 1.0,
    "linear": lambda n, steps, spec: 1 - (n - 1) / steps,
    "cosine": lambda n, steps, spec: (1 + jnp.cos(jnp.pi * (n - 1) / steps)) / 2,
    "rsqrt": lambda n, steps, spec: jnp.sqrt(max(spec.warmup, 1) / n),
    "stairs": lambda n, steps, spec: 0.1 ** drops(n, spec),
    "halves": lambda n, steps, spec: 0.5 ** drops(n, spec),
}


def check(spec: ConfigDict) -> None:
    """Raises SettingError for an optimizer, schedule, argument or pattern that cannot be."""
    takes = {
        name: list(inspect.signature(made).parameters)
        for name, made in vars(optax).items()
        if inspect.isfunction(made) and name[0] != "_"
    }
    names = [name for name, fields in takes.items() if fields[:1] == ["learning_rate"]]
    if spec.name not in names:
        raise SettingError(f"optimizer.name = {spec.name!r}: {nearest(spec.name, names)}")
    if spec.schedule not in SHAPES:
        hint = nearest(spec.schedule, SHAPES)
        raise SettingError(f"optimizer.schedule = {spec.schedule!r}: {hint}")
    for key in spec:
        if key not in (*OURS, *takes[spec.name]):
            hint = nearest(key, takes[spec.name])
            raise SettingError(f"optimizer.{key} is no argument of {spec.name}: {hint}")
    try:
        re.compile(spec.l2_on)
    except re.error as e:
        raise SettingError(f"optimizer.l2_on = {spec.l2_on!r}: {e}") from None

    def use(params, floats):
        rule = optimizer(spec, floats, jnp.int32(0), 1)
        return rule.update(params, rule.init(params), params)

    try:  # an argument may be of the wrong type; some optimizers evaluate the loss themselves
        jax.eval_shape(use, jnp.zeros(1), hyper(spec))
    except (TypeError, ValueError) as e:
        raise SettingError(f"optimizer.name = {spec.name!r} cannot be used so: {e}") from e


def hyper(spec: ConfigDict) -> dict[str, float]:
    """What may differ between the runs of a population: the floats."""
    return {key: value for key, value in spec.items() if isinstance(value, float)}


def traced(config: ConfigDict) -> list[str]:
    """The settings in which runs of one population may differ: their seed and these floats."""
    return ["seed", *(f"optimizer.{name}" for name in hyper(config.optimizer))]


def rate(spec: ConfigDict, step: Array, steps: int) -> Array:
    """What the learning rate is multiplied by: a linear rise over `warmup` updates, of which the
    first is not zero, then the schedule's shape."""
    n = step + 1.0
    shape = jnp.minimum(SHAPES[spec.schedule](n, steps, spec), 1.0)
    return jnp.where(n < spec.warmup, n / max(spec.warmup, 1), shape)


def optimizer(
    spec: ConfigDict, hyper: Mapping[str, Any], step: Array, steps: int
) -> optax.GradientTransformation:
    """The transformation of the gradient at `step`, with this run's floats."""
    own = {key: value for key, value in {**spec, **hyper}.items() if key not in OURS}
    update = getattr(optax, spec.name)(hyper["learning_rate"] * rate(spec, step, steps), **own)
    return optax.chain(optax.clip_by_global_norm(hyper["clip"]), update) if spec.clip else update


def half_squares(params: Any, pattern: str) -> Array:
    """Half the squared norm of the parameters whose path ("layer/kernel") matches."""
    leaves = by_path(params)
    found = [p for path, p in leaves.items() if re.search(pattern, path)]
    if not found:
        raise SettingError(f"optimizer.l2_on = {pattern!r} matches none of {', '.join(leaves)}")
    return 0.5 * sum((jnp.vdot(p, p) for p in found), start=jnp.float32(0))


def by_path(tree: Any) -> dict[str, Any]:
    """{"layer": {"kernel": a}} -> {"layer/kernel": a}: the leaves of any pytree by their path."""
    name = functools.partial(jax.tree_util.keystr, simple=True, separator="/")
    return {name(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}
