"""Node classification on one graph: the task, checked, whatever the graph was read from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from data.task import Batch, Mean, Run, balanced_accuracy, classify, crossed, probabilities
from models.graph import Matrix, Sparse

PARTS = ("train", "validation", "test")
LARGEST = 3.4e38  # what a feature may not reach: numbers are of 32 bits
WEIGHTS = 1e-30, 1e30  # an edge's are between these: sums and roots of them are numbers of 32 bits


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a graph besides its arrays. Two are equal if they are the same object: jit
    compares at every call, and 20,000 names are long to compare."""

    about: Mapping[str, Any]
    ids: Sequence[str]  # [N]
    classes: Sequence[str]  # [C]
    another: Callable[[str], "Nodes"] | None  # reads a graph of the same features and classes
    flips: int = 0  # so many of the last features have an arbitrary sign


@struct.dataclass
class Nodes:
    """Classification of one graph's nodes: a batch is the whole graph, its mask says who counts."""

    features: Matrix  # [N, F]
    graph: Sparse  # N nodes
    weights: Array | None  # [E, 1] of the edges, if the model is to see them
    labels: Array  # [N], -1 where unknown
    parts: Array  # [P, N]: in each of P partitions, a node's index in PARTS, or -1
    facts: Facts = struct.field(pytree_node=False)

    @property
    def dims(self) -> dict[str, int]:
        return {"out": len(self.facts.classes)}

    @property
    def about(self) -> dict[str, Any]:
        return dict(self.facts.about)

    @property
    def inputs(self) -> tuple[Any, ...]:
        known = () if self.weights is None else (self.weights,)
        return (self.features, self.graph, *known)

    def runs(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Every seed on every partition."""
        count = len(self.parts)
        return crossed(seeds, "split_seed", count) if count > 1 else {"seed": np.asarray(seeds)}

    def batch(self, run: Run, step: Array) -> Batch:
        """The graph, in every step with other signs of the features that have none of their own."""
        part, flips = self._part("train", run), self.facts.flips
        if not flips:
            return part
        key = jax.random.fold_in(jax.random.key(run["seed"]), step)
        signs = jax.random.rademacher(key, (flips,), jnp.float32)
        weights = self.features.weights  # [nnz, 1], these features of every node at the end
        last = self.features.shape[0] * flips
        flipped = weights.at[-last:, 0].multiply(jnp.tile(signs, last // flips))
        return part._replace(inputs=(self.features.replace(weights=flipped), *part.inputs[1:]))

    def split(self, name: str, run: Run) -> Batch:
        return jax.tree.map(lambda a: a[None], self._part(name, run))

    def score(self, outputs: Array, batch: Batch) -> dict[str, Mean]:
        wanted = [*batch.targets.shape, self.dims["out"]]
        if list(outputs.shape) != wanted:
            raise ValueError(f"the model gives outputs {list(outputs.shape)}, expected {wanted}")
        return classify(outputs, batch.targets, batch.mask)

    def measure(self, outputs: Array, batches: Batch) -> dict[str, Array]:
        return {"balanced_accuracy": balanced_accuracy(outputs, batches.targets, batches.mask)}

    def read(self, path: str | None, run: Run) -> tuple[Any, Batch]:
        """Every node of another graph, or of this one: its (id, split, target); a batch [1, ...].

        ValueError or OSError says in one line what is wrong with the other graph.
        """
        if path is not None:
            if self.facts.another is None:
                raise ValueError(f"the task on {self.about['dataset']} reads no other graph")
            return self.facts.another(path).read(None, {})
        parts = self.parts[run.get("split_seed", 0)].tolist()
        splits = [(*PARTS, "")[part] for part in parts]  # -1 is the last
        targets = [(*self.facts.classes, "")[label] for label in self.labels.tolist()]
        batch = Batch(self.inputs, self.labels, self.labels >= 0)
        known = list(zip(self.facts.ids, splits, targets, strict=True))
        return known, jax.tree.map(lambda a: a[None], batch)

    def write(self, known: Any, outputs: Array) -> Iterable[Sequence[str]]:
        """A table, its head first: each node's class, as predicted, and all probabilities."""
        classes = self.facts.classes
        yield ("id", "split", "target", "prediction", *(f"p_{name}" for name in classes))
        [logits] = np.asarray(outputs, np.float64)  # [N, C]
        shares = probabilities(logits).astype(str)
        for node, best, share in zip(known, logits.argmax(-1), shares.tolist(), strict=True):
            yield (*node, classes[best], *share)

    def _part(self, name: str, run: Run) -> Batch:
        mask = self.parts[run.get("split_seed", 0)] == PARTS.index(name)
        return Batch(self.inputs, self.labels, mask)


def random_partition(labels: np.ndarray, classes: Sequence[str], seed: int) -> np.ndarray:
    """A random part [N] for each of labels [N]: 20 nodes of every class are for training, 30 for
    validation, the others for testing; -1 without a label."""
    rng = np.random.default_rng(seed)
    parts = np.where(labels >= 0, PARTS.index("test"), -1)
    for label, name in enumerate(classes):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) <= 50:
            found = f"class {name} has {len(members)} nodes"
            raise ValueError(f"task.split = 'random': {found}, expected 51 or more")
        parts[members[:20]] = PARTS.index("train")
        parts[members[20:50]] = PARTS.index("validation")
    return parts


def nodes(
    *, edges, rows, columns, values, features, labels, classes, parts, weights=None,
    directed=False, normalize=False, ids=None, about=None, another=None,
) -> Nodes:  # fmt: skip
    """The task of one graph; ValueError names the first thing that is wrong with it.

    edges [M, 2] between different nodes, each pair once, heard both ways, or if `directed` by the
    second node only; weights [M] of theirs; rows, columns and values [nnz] of the features that are
    not zero; labels [N]; classes, their names; parts [P, N]; ids, the nodes' names, by default
    their numbers. `normalize` divides every row of features by its sum, unless that is zero.
    """
    count, nnz = labels.size, rows.size
    for name, array, fits, shape, low, high in (
        ("edges", edges, edges.shape[1:] == (2,), "[M, 2]", 0, count),
        ("rows", rows, rows.ndim == 1, "[nnz]", 0, count),
        ("columns", columns, columns.shape == (nnz,), f"[{nnz}]", 0, features),
        ("labels", labels, labels.ndim == 1, "[N]", -1, len(classes)),
        ("parts", parts, parts.shape[1:] == (count,), f"[P, {count}]", -1, len(PARTS)),
    ):
        if not (fits and np.issubdtype(array.dtype, np.integer)):
            raise ValueError(f"{name} {array.dtype}{list(array.shape)}: expected integers {shape}")
        _expect((array >= low) & (array < high), array, name, f"{low} to {high - 1}")
    weight = np.ones(len(edges)) if weights is None else weights
    for name, array, length in (("values", values, nnz), ("weights", weight, len(edges))):
        if array.shape != (length,) or array.dtype.kind not in "biuf":
            what = f"{name} {array.dtype}{list(array.shape)}"
            raise ValueError(f"{what}: expected numbers [{length}]")
    _expect(np.abs(values) < LARGEST, values, "values", "a finite number (of 32 bits)")
    fine = (weight > WEIGHTS[0]) & (weight < WEIGHTS[1])
    _expect(fine, weight, "weights", "a positive number from 1e-30 to 1e30")
    once = np.zeros(len(edges), bool)
    pairs = edges if directed else np.sort(edges)
    once[np.unique(pairs, axis=0, return_index=True)[1]] = True  # where a pair is first
    _expect(once, edges, "edges", "each pair once")
    _expect(edges[:, 0] != edges[:, 1], edges, "edges", "two different nodes")
    for index, part in enumerate(PARTS):
        members = parts == index
        _expect(members.any(-1), members.sum(-1), f"size of the {part} split", "at least 1")
        _expect(~members | (labels >= 0), labels, f"label in {part}", "a class")
    if normalize:
        sums, sizes = np.bincount(rows, values, count), np.bincount(rows, np.abs(values), count)
        nothing = np.abs(sums) <= 1e-6 * sizes  # up to the digits of 32 bits
        values = values / np.where(nothing, 1, sums)[rows]
    if not directed:
        edges, weight = np.concatenate([edges, edges[:, ::-1]]), np.tile(weight, 2)
    senders, receivers = edges.T
    order = np.lexsort((senders, receivers))  # neighbours together: receivers sum in one place
    graph = Sparse(senders[order], receivers[order], (count, count))
    words = Sparse(columns, rows, (count, features)).grouped()
    words = Matrix(words, values.astype(np.float32)[:, None])
    weight = None if weights is None else weight[order].astype(np.float32)[:, None]
    ids = [str(node) for node in range(count)] if ids is None else ids
    facts = Facts(about or {}, ids, classes, another)
    return jax.tree.map(jnp.asarray, Nodes(words, graph, weight, labels, parts, facts))


def placed(task: Nodes, kind: str, count: int) -> Nodes:
    """The same task, with so many positions of a kind (data/positions.py) as its last features,
    unless that is "none"; signs that are arbitrary are drawn anew in every step of training."""
    if kind == "none":
        return task
    from data.positions import encode  # here, since few want scipy's solvers

    (nodes, features), graph = task.features.shape, task.features.graph
    edges = np.stack([task.graph.senders, task.graph.receivers], axis=1)
    places = encode(kind, edges, nodes, count)  # [N, count]
    rows = np.concatenate([graph.receivers, np.repeat(np.arange(nodes), count)])
    columns = np.concatenate([graph.senders, np.tile(np.arange(features, features + count), nodes)])
    words = Sparse(columns, rows, (nodes, features + count)).grouped()
    values = np.concatenate([task.features.weights, places.astype(np.float32).reshape(-1, 1)])
    about = {**task.facts.about, "positions": f"{kind} ({count})"}
    facts = replace(task.facts, about=about, flips=count if kind == "laplacian" else 0)
    return task.replace(features=jax.tree.map(jnp.asarray, Matrix(words, values)), facts=facts)


def _expect(fine: np.ndarray, found: np.ndarray, what: str, expected: str) -> None:
    if not fine.all():
        at = tuple(np.argwhere(~fine)[0].tolist())
        value = np.broadcast_to(found, fine.shape + found.shape[fine.ndim :])[at]
        raise ValueError(f"{what} {value} (at {list(at)}): expected {expected}")
