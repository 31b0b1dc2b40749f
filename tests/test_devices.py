"""One program on four devices: runs and batches are shared out, and the numbers stay."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_train import Lowered, about
from toy import Points, config, timeless

import devices
import population
import train
from results.files import read_rows
from results.run import Folder


class Mixed(nn.Module):
    """Every example hears the one before it: what devices then exchange is a permutation."""

    out: int

    @nn.compact
    def __call__(self, x, train=False):
        h = nn.Dense(4, use_bias=False)(x)  # [B, 4]
        h = nn.BatchNorm(use_running_average=not train)(h)
        h = nn.Dropout(0.5, deterministic=not train)(nn.tanh(h))
        return nn.Dense(self.out)(h + jnp.roll(h, 1, axis=0))


@functools.cache
def program(count, runs, together):
    """Of `runs` runs on the first `count` devices; the first run fails when the others go on."""
    rule = dict(name="sgd", learning_rate=0.1)  # compiles soonest
    cfg = config(seeds=runs, together=together, optimizer=rule)
    task = Points.make(size=4, examples=4, poison=(0, 6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "device_count", lambda: count)
        traced = population.trace(cfg, Mixed(2), task)
    return traced._replace(advance=Lowered(traced.advance))


def trained(path, count, runs, together=0, resume=False, until=20):
    """The rows of a run in `path`, trained by `count` devices, and its last state."""
    traced = program(count, runs, together)
    with Folder.open(path, about(traced.config), resume) as folder:
        state, _ = train.fit(traced, folder, lambda rows: rows[-1]["step"] == until)
    return timeless(read_rows(path)), jax.device_get(tuple(state))


def assert_close(one, other):
    """The same rows of the same runs, up to the order of sums."""
    numbers = lambda row: {name: v for name, v in row.items() if name != "split"}
    for row, same in zip(one, other, strict=True):
        assert row["split"] == same["split"]
        assert numbers(row) == pytest.approx(numbers(same), rel=1e-3)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Two runs on one device."""
    return trained(tmp_path_factory.mktemp("devices") / "alone", 1, runs=2)


@pytest.mark.parametrize(
    ("runs", "examples", "shape", "idle"),
    [
        (4, 8, (4, 1), ""),
        (8, 1, (4, 1), ""),
        (2, 8, (2, 2), ""),
        (1, 8, (1, 4), ""),
        (1, 6, (1, 3), "3 of 4 devices can be used: runs (1) and examples of a batch (6)"),
        (3, 8, (3, 1), "3 of 4 devices can be used"),
        (2, 1, (2, 1), "2 of 4 devices can be used"),
        (6, 1, (3, 1), "3 of 4 devices can be used"),
    ],
)
def test_runs_come_first_then_examples(runs, examples, shape, idle):
    task = Points.make(examples=examples)
    mesh = devices.mesh(runs, task)
    assert tuple(mesh.shape.items()) == (("run", shape[0]), ("batch", shape[1]))
    assert devices.divides(mesh, task) == (shape[1] > 1)
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    assert devices.idle(place, runs, task).startswith(idle) and bool(idle) == (mesh.size < 4)


@pytest.mark.parametrize(
    ("count", "runs", "together", "shape"),
    [
        (4, 2, 0, (2, 2)),  # runs that part ways
        pytest.param(2, 3, 3, (1, 2), marks=pytest.mark.slow),  # vmapped
    ],
)
def test_a_divided_batch_is_the_same_batch(tmp_path, alone, count, runs, together, shape):
    mesh = program(count, runs, together).shapes.step.sharding.mesh
    assert mesh.devices.shape == shape
    rows, state = trained(tmp_path / "run", count, runs, together)
    assert_close([row for row in rows if row["run"] < 2], alone[0])
    assert {row["step"] for row in rows if row["run"] == 0} == {4, 7}  # it failed
    for leaf, same in zip(*map(jax.tree.leaves, (state[1:], alone[1][1:])), strict=True):
        np.testing.assert_allclose(leaf[:2], same, rtol=1e-3, atol=1e-5)  # [R, ...]


def test_saved_with_two_devices_resumed_with_one_and_four(tmp_path, alone):  # RESUME-6
    """The batch stays the same four examples, whoever computes them."""
    path = tmp_path / "run"
    trained(path, 2, runs=2, until=8)
    trained(path, 1, runs=2, resume=True, until=12)
    rows, _ = trained(path, 4, runs=2, resume=True)
    assert_close(rows, alone[0])
