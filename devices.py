"""The devices a population is computed on, and the processes that hold them.

One process is the rule: it agrees with itself, and waits for nobody. Of several, each does all that
is done here, in the same order, since devices and checkpoints are shared; the first one alone
writes files and talks.
"""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

PATIENCE = 20  # seconds without a sign of life after which a process counts as dead

# ---- The mesh


def mesh(runs: int, task: Any) -> Mesh:
    """The devices as (run, batch): as many as can be share the runs, the others a batch of each.

    One process leaves out the devices that can do neither, which on a CPU would only take turns
    with the others. All of several processes have to take part; these devices then do what others
    do as well.
    """
    count = jax.device_count()
    if jax.process_count() > 1:
        shares = math.gcd(runs, count)
        parts = count // shares
    else:
        shares = largest_divisor(runs, count)
        parts = largest_divisor(examples(task), count // shares)
    axes = ("run", "batch"), (AxisType.Auto, AxisType.Auto)
    return jax.make_mesh((shares, parts), *axes, devices=jax.devices()[: shares * parts])


def largest_divisor(n: int, most: int) -> int:
    return max(d for d in range(1, min(n, most) + 1) if n % d == 0)


def examples(task: Any) -> int:
    """How many examples of a training batch are independent; a graph, say, is one."""
    return getattr(task, "examples", 1)


def divides(mesh: Mesh, task: Any) -> bool:
    """Whether batches are shared out; if not, devices along `batch` all do the same."""
    return mesh.shape["batch"] > 1 and examples(task) % mesh.shape["batch"] == 0


def idle(place: Any, runs: int, task: Any) -> str:
    """A line on devices that are of no use where a population is; empty if all are."""
    mesh, count = place.mesh, jax.device_count()
    used = mesh.size if divides(mesh, task) else mesh.shape["run"]
    shared = f"runs ({runs}) and examples of a batch ({examples(task)}) are shared out evenly"
    return f"{used} of {count} devices can be used: {shared}" if used < count else ""


class Divided:
    """A task whose batches are shared out to the devices along `batch`.

    That is all that has to be said: how a sum over examples is then made, XLA knows.
    """

    def __init__(self, task: Any):
        self._task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def batch(self, *which: Any) -> Any:
        return _divide(self._task.batch(*which), 0)

    def split(self, *which: Any) -> Any:
        return _divide(self._task.split(*which), 1)


def _divide(batch: Any, axis: int) -> Any:
    mesh = jax.sharding.get_abstract_mesh()
    place = NamedSharding(mesh, P(*[None] * axis, "batch"))

    def divide(a: Array) -> Array:
        fits = a.ndim > axis and a.shape[axis] % mesh.shape["batch"] == 0
        return jax.lax.with_sharding_constraint(a, place) if fits else a

    return jax.tree.map(divide, batch)


def anywhere(task: Any, condition: Array) -> Array:
    """Whether a condition holds on these devices or, if batches are divided, on any.

    What devices exchange within a batch may be one exchange among all (a permutation is, on a
    CPU): then all have to take the same branch, or some wait for ever.
    """
    if isinstance(task, Divided):
        return jax.lax.pmax(condition.astype(jnp.int32), "run") > 0
    return condition


# ---- Processes


def join() -> None:
    """Makes this process one of several, if it was launched as one of several."""
    number = lambda name: int(os.environ[name]) if name in os.environ else None
    if "JAX_COORDINATOR_ADDRESS" in os.environ or (number("SLURM_STEP_NUM_TASKS") or 1) > 1:
        # Else JAX takes SIGTERM for a notice, which before training nobody would heed.
        jax.config.update("jax_enable_preemption_service", False)
        jax.distributed.initialize(
            num_processes=number("JAX_NUM_PROCESSES"),  # these JAX does not read itself
            process_id=number("JAX_PROCESS_ID"),
            heartbeat_timeout_seconds=PATIENCE,
            shutdown_timeout_seconds=PATIENCE,
        )


def leads() -> bool:
    """Whether this process is the one that writes and talks."""
    return jax.process_index() == 0


def say(line: str) -> None:
    if leads() and line:
        print(line, file=sys.stderr, flush=True)


def every(value: Any) -> np.ndarray:
    """What each process says, numbers of one shape, on all of them: [processes, ...]."""
    return multihost_utils.process_allgather(np.asarray(value))


def first(numbers: Sequence[int]) -> list[int]:
    """The numbers that the first process says, on all of them."""
    counts = every(len(numbers))
    padded = np.zeros(counts.max() + 1, np.int32)  # one shape, and not empty
    padded[: len(numbers)] = numbers
    return every(padded)[0, : counts[0]].tolist()


class Elsewhere(Exception):
    """Another process has failed, and says why."""


@contextmanager
def agreement() -> Iterator[None]:
    """What fails on one process fails on all, here as Elsewhere, so that none waits for another."""
    try:
        yield
    except Exception as e:
        if jax.process_index() == every(True).argmax():  # one of them tells
            raise
        raise Elsewhere from e
    if every(False).any():
        raise Elsewhere
