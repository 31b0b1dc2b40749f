"""Node classification on one graph: papers that cite each other, which field is each of?"""

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
    """Classify the nodes of one graph; every batch is the whole graph, the mask says who counts."""

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

    split: "public" (Yang et al. 2016: 20 a class for training, 500, 1,000), or "random": `splits`
    seeded ones, each run with every seed (Shchur et al. 2018: other splits, other winners).
    """
    if split not in ("public", "random"):
        raise ValueError(f"task.split = {split!r}: expected 'public' or 'random'")
    from data import planetoid  # here, since TFDS is slow to import and --help has no use for it

    raw = planetoid.read(dataset)._asdict()
    about = {"dataset": dataset, "split": split, "checksum": raw.pop("checksum")}
    public = [raw.pop(part) for part in PARTS]
    if split == "public":
        parts = np.select(public, range(len(PARTS)), -1)[None]
    else:
        about["split"] += f" ({splits})"
        labels, classes = raw["labels"], raw["classes"]
        parts = np.stack([random_partition(labels, classes, seed) for seed in range(splits)])
    return nodes(**raw, parts=parts, normalize=normalize, about=about)


def random_partition(labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """Indices in PARTS [N] of labels [N]: 20 nodes a class, 30, and the rest; -1 if unlabelled."""
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
    """The task of one undirected graph, checked: what is wrong is named by its first offender.

    edges [M, 2], each pair once, heard both ways; rows, columns, values [nnz] of the features that
    are not zero; labels [N]; parts [P, N]. `normalize` divides rows by their sums, if not zero.
    """
    count = len(labels)
    _expect((edges >= 0) & (edges < count), edges, "edge to node", f"0 to {count - 1}")
    _expect((rows >= 0) & (rows < count), rows, "features of node", f"0 to {count - 1}")
    _expect((columns >= 0) & (columns < features), columns, "feature", f"0 to {features - 1}")
    _expect(np.isfinite(values), values, "feature value", "a finite number")
    _expect((labels >= -1) & (labels < classes), labels, "label", f"0 to {classes - 1}, or -1")
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
        value = np.broadcast_to(found, fine.shape)[at]
        raise ValueError(f"{what} {value} (at {list(at)}): expected {expected}")
