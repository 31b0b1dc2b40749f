"""A task small enough to compute by hand, and models that show one thing each."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from configs import base
from data.task import Batch, classify


@struct.dataclass
class Points:
    """Classify n points by the sign of a hidden direction, in batches of `size`."""

    x: Array  # [3, n, D]: train, validation, test
    y: Array  # [3, n]
    size: int = struct.field(pytree_node=False)
    poison: tuple[int, int] = (-1, -1)  # seed, step
    examples: int = struct.field(pytree_node=False, default=1)  # size, if batches are divided

    @classmethod
    def make(cls, n: int = 10, size: int = 4, width: int = 3, **changes) -> "Points":
        rng = np.random.default_rng(0)
        x = rng.normal(size=(3, n, width)).astype(np.float32)
        return cls(
            jnp.asarray(x), jnp.asarray(x @ rng.normal(size=width) > 0, int), size, **changes
        )

    dims = {"out": 2}
    about = {"dataset": "points", "split": "own", "checksum": "none"}

    def runs(self, seeds):
        return {"seed": list(seeds)}

    def batch(self, run, step):
        key = jax.random.fold_in(jax.random.key(run["seed"]), step)
        ids = jax.random.choice(key, self.x.shape[1], (self.size,), replace=False)
        poisoned = (run["seed"] == self.poison[0]) & (step == self.poison[1])
        x = jnp.where(poisoned, jnp.nan, self.x[0][ids])
        return Batch((x,), self.y[0][ids], jnp.ones(self.size, bool))

    def split(self, name, run):
        part, n = ("train", "validation", "test").index(name), self.x.shape[1]
        ids = jnp.arange(n + -n % self.size).reshape(-1, self.size)  # the last batch is padded
        return Batch((self.x[part][ids % n],), self.y[part][ids % n], ids < n)

    def score(self, outputs, batch):
        return classify(outputs, batch.targets, batch.mask)


class Net(nn.Module):
    """Dropout, batch statistics, a sown loss and carried memory, each if asked for."""

    out: int
    dropout: float = 0.0
    normed: bool = False
    penalty: float = 0.0
    remembers: bool = False

    @nn.compact
    def __call__(self, x, train=False):
        if self.normed:
            x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.Dropout(self.dropout, deterministic=not train)(nn.tanh(nn.Dense(4)(x)))
        if self.penalty:
            self.sow("losses", "penalty", self.penalty * jnp.square(x).mean())
        if self.remembers:
            count = self.variable("carry", "count", jnp.zeros, ())
            count.value = count.value + 1.0
            x = x + count.value
        return nn.Dense(self.out)(x)


def config(**changes):
    return base(**{"steps": 20, "evaluate": 2, "every": 4, "seeds": 1, **changes})


def timeless(rows):
    """Rows of metrics without the time they took."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]
