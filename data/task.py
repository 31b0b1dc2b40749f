"""What a task is: batches of (inputs, targets, mask), and how outputs are scored on them.

The mask does all the work: padding, the part of one graph that is trained on, the answer's tokens
in a story. A score is a total and a weight, divided only at the very end, so a mean over batches
is the mean over examples however they were cut into batches.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

Run = Mapping[str, Array]


class Batch(NamedTuple):
    """inputs: what the model is called with; targets [...]; mask [...], true where scored."""

    inputs: tuple[Any, ...]
    targets: Array
    mask: Array


class Mean(NamedTuple):
    """A mean not yet divided. Means of batches are summed by `jax.tree.map(jnp.add, ...)`."""

    total: Array
    weight: Array

    @property
    def value(self) -> Array:
        return jnp.where(self.weight > 0, self.total / jnp.maximum(self.weight, 1e-30), 0)


class Task(Protocol):
    """A frozen pytree dataclass holding its arrays, handed to jit as an argument.

    `run` is a small dict of one run's own numbers, always its `seed` and, where the task has them,
    a fold or a split: a population can be ten folds as well as ten seeds.

    A task whose batches can be divided has `examples: int`, how many independent ones lie along the
    first axis of every array of a training batch (along the second, of a split): where there are
    more devices than runs, they share these. A graph cannot be cut so.

    A task may also have `measure(outputs, batches) -> {name: Array}`, metrics of a whole split such
    as an AUC: traced, its arguments stacked [S, ...]. To be of use on people's own input, by
    predict.py, it has `read(path, run) -> (known, batches)`, all examples in a file, or all of its
    own if path is None, stacked [S, ...], with whatever `write(known, outputs)` then has to know to
    give the rows of a table, its head first.
    """

    dims: Mapping[str, int]  # what the model must know: out, vocab, ...
    about: Mapping[str, Any]  # data set, split and checksum, recorded with every run

    def runs(self, seeds: Sequence[int]) -> dict[str, Any]:
        """The population: one entry [R] per number of a run."""

    def batch(self, run: Run, step: Array) -> Batch:
        """A step's training batch, pure and traced. What changes in training is in its inputs."""

    def split(self, name: str, run: Run) -> Batch:
        """A whole split ("train", "validation", "test"), stacked [S, ...]: each example once."""

    def score(self, outputs: Any, batch: Batch) -> dict[str, Mean]:
        """The data's "loss" and whatever else is counted per example."""


def crossed(seeds: Sequence[int], name: str, count: int) -> dict[str, np.ndarray]:
    """The population of every seed on every one of so many partitions, which `name` numbers."""
    seed, partition = np.meshgrid(seeds, np.arange(count), indexing="ij")
    return {"seed": seed.ravel(), name: partition.ravel()}


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Of classes [..., C], on the host, in the digits that the logits have."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def classify(logits: Array, targets: Array, mask: Array) -> dict[str, Mean]:
    """Cross-entropy in nats and accuracy. logits [..., C], targets [...] int, mask [...] bool."""
    targets, logits = jnp.where(mask, targets, 0), logits.astype(jnp.float32)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
    right, weight = mask & (logits.argmax(-1) == targets), mask.sum(dtype=jnp.float32)
    total = jnp.where(mask, loss, 0).sum()
    return {"loss": Mean(total, weight), "accuracy": Mean(right.sum(dtype=jnp.float32), weight)}


def multilabel(logits: Array, targets: Array, mask: Array) -> dict[str, Mean]:
    """Of yes-or-no questions, each by itself: cross-entropy in nats and accuracy. All [...], the
    targets 0 or 1."""
    targets, logits = jnp.where(mask, targets, 0), logits.astype(jnp.float32)
    loss = jnp.where(mask, optax.sigmoid_binary_cross_entropy(logits, targets), 0)
    right, weight = mask & ((logits > 0) == (targets > 0)), mask.sum(dtype=jnp.float32)
    return {
        "loss": Mean(loss.sum(), weight),
        "accuracy": Mean(right.sum(dtype=jnp.float32), weight),
    }


def regress(outputs: Array, targets: Array, mask: Array) -> dict[str, Mean]:
    """Squared and absolute error of numbers. All [...]."""
    gap, weight = jnp.where(mask, outputs - targets, 0), mask.sum(dtype=jnp.float32)
    return {
        "loss": Mean(jnp.square(gap).sum(), weight),
        "absolute_error": Mean(jnp.abs(gap).sum(), weight),
    }


def balanced_accuracy(logits: Array, targets: Array, mask: Array) -> Array:
    """The mean over classes of the accuracy on that class; classes without targets do not count."""
    classes = jnp.where(mask, targets, -1)[..., None] == jnp.arange(logits.shape[-1])  # [..., C]
    hit = classes & (logits.argmax(-1) == targets)[..., None]
    axes = tuple(range(targets.ndim))
    count = classes.sum(axes, dtype=jnp.float32)
    recall = hit.sum(axes, dtype=jnp.float32) / jnp.maximum(count, 1)  # [C]
    return recall.sum() / jnp.maximum((count > 0).sum(), 1)
