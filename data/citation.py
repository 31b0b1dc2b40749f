"""Node classification on one graph: to which field does each of these citing papers belong?"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from data.task import Batch, Mean, Run, balanced_accuracy, classify
from models.graph import Matrix, Sparse

PARTS = ("train", "validation", "test")


@struct.dataclass
class Nodes:
    """Classification of one graph's nodes: a batch is the whole graph, its mask says who counts."""

    features: Matrix  # [N, F]
    graph: Sparse  # N nodes
    labels: Array  # [N], -1 where unknown
    parts: Array  # [P, N]: in each of P partitions, a node's index in PARTS, or -1
    classes: int = struct.field(pytree_node=False)
    provenance: tuple[tuple[str, Any], ...] = struct.field(pytree_node=False, default=())

    @property
    def dims(self) -> dict[str, int]:
        return {"out": self.classes}

    @property
    def about(self) -> dict[str, Any]:
        return dict(self.provenance)

    def runs(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Every seed on every partition."""
        seed, partition = np.meshgrid(seeds, np.arange(len(self.parts)), indexing="ij")
        runs = {"seed": seed.ravel()}
        return runs if len(self.parts) == 1 else runs | {"split_seed": partition.ravel()}

    def batch(self, run: Run, step: Array) -> Batch:
        return self._part("train", run)

    def split(self, name: str, run: Run) -> Batch:
        return jax.tree.map(lambda a: a[None], self._part(name, run))

    def score(self, outputs: Array, batch: Batch) -> dict[str, Mean]:
        if outputs.shape != (*batch.targets.shape, self.classes):
            wanted = [*batch.targets.shape, self.classes]
            raise ValueError(f"the model gives outputs {list(outputs.shape)}, expected {wanted}")
        return classify(outputs, batch.targets, batch.mask)

    def measure(self, outputs: Array, batches: Batch) -> dict[str, Array]:
        return {"balanced_accuracy": balanced_accuracy(outputs, batches.targets, batches.mask)}

    def _part(self, name: str, run: Run) -> Batch:
        mask = self.parts[run.get("split_seed", 0)] == PARTS.index(name)
        return Batch((self.features, self.graph), self.labels, mask)


def Citation(
    dataset: str = "cora", split: str = "public", splits: int = 10, normalize: bool = True
) -> Nodes:
    """Cora or CiteSeer with bag-of-words features, rows scaled to sum to one.

    The split is "public", that of Yang et al. 2016 (20 nodes of each class for training, 500 for
    validation, 1,000 for testing), or "random": as many as `splits` says, every seed running on
    each, since another split may have another winner (Shchur et al. 2018).
    """
    if split not in ("public", "random"):
        raise ValueError(f"task.split = {split!r}: expected 'public' or 'random'")
    from data import planetoid  # here, since TFDS is slow to import and --help has no use for it

    raw = planetoid.read(dataset)._asdict()
    about = {"dataset": dataset, "split": split, "checksum": raw.pop("checksum")}
    parts = [np.select([raw.pop(part) for part in PARTS], range(len(PARTS)), -1)]
    if split == "random":
        about["split"] += f" ({splits})"
        parts = [random_partition(raw["labels"], raw["classes"], seed) for seed in range(splits)]
    return nodes(**raw, parts=np.stack(parts), normalize=normalize, about=about)


def random_partition(labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """A random part [N] for each of labels [N]: 20 nodes of every class are for training, 30 for
    validation, the others for testing; -1 without a label."""
    rng = np.random.default_rng(seed)
    parts = np.where(labels >= 0, PARTS.index("test"), -1)
    for label in range(classes):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) <= 50:
            raise ValueError(f"class {label} has {len(members)} nodes: a random split needs 51")
        parts[members[:20]] = PARTS.index("train")
        parts[members[20:50]] = PARTS.index("validation")
    return parts


def nodes(
    *, edges, rows, columns, values, features, labels, classes, parts, normalize=False, about=None
) -> Nodes:
    """The task of one undirected graph; ValueError names the first thing that is wrong with it.

    edges [M, 2] between different nodes, each pair once, heard both ways; rows, columns and values
    [nnz] of the features that are not zero; labels [N]; parts [P, N]. `normalize` divides every
    row of features by its sum, unless that is zero.
    """
    count, nnz = labels.size, rows.size
    for name, array, fits, shape, low, high in (
        ("edges", edges, edges.shape[1:] == (2,), "[M, 2]", 0, count),
        ("rows", rows, rows.ndim == 1, "[nnz]", 0, count),
        ("columns", columns, columns.shape == (nnz,), f"[{nnz}]", 0, features),
        ("labels", labels, labels.ndim == 1, "[N]", -1, classes),
        ("parts", parts, parts.shape == (len(parts) or 1, count), f"[P, {count}]", -1, len(PARTS)),
    ):
        if not (fits and np.issubdtype(array.dtype, np.integer)):
            raise ValueError(f"{name} {array.dtype}{list(array.shape)}: expected integers {shape}")
        _expect((array >= low) & (array < high), array, name, f"{low} to {high - 1}")
    if values.shape != (nnz,) or values.dtype.kind not in "biuf":
        raise ValueError(f"values {values.dtype}{list(values.shape)}: expected numbers [{nnz}]")
    _expect(np.abs(values) < 3.4e38, values, "values", "a finite number (of 32 bits)")
    once = np.zeros(len(edges), bool)
    once[np.unique(np.sort(edges), axis=0, return_index=True)[1]] = True  # where a pair is first
    _expect(once, edges, "edges", "each pair once")
    _expect(edges[:, 0] != edges[:, 1], edges, "edges", "two different nodes")
    for index, part in enumerate(PARTS):
        members = parts == index
        _expect(members.any(-1), members.sum(-1), f"size of the {part} split", "at least 1")
        _expect(~members | (labels >= 0), labels, f"label in {part}", "a class")
    if normalize:
        sums = np.bincount(rows, values, count)
        values = values / np.where(sums == 0, 1, sums)[rows]
    senders, receivers = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((senders, receivers))  # neighbours together: receivers sum in one place
    graph = Sparse(senders[order], receivers[order], (count, count))
    words = Matrix(Sparse(columns, rows, (count, features)), values.astype(np.float32)[:, None])
    task = Nodes(words, graph, labels, parts, classes, tuple((about or {}).items()))
    return jax.tree.map(jnp.asarray, task)


def _expect(fine: np.ndarray, found: np.ndarray, what: str, expected: str) -> None:
    if not fine.all():
        at = tuple(np.argwhere(~fine)[0].tolist())
        value = np.broadcast_to(found, fine.shape + found.shape[fine.ndim :])[at]
        raise ValueError(f"{what} {value} (at {list(at)}): expected {expected}")
