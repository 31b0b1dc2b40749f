"""Node classification on one graph: papers that cite each other, which field is each of?

Kipf & Welling 2017 made the public split of Yang et al. 2016 the field's benchmark; Shchur et al.
2018 (arXiv:1811.05868) showed that the ranking of models changes with the split. Both are here.
"""

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
    """Classify the nodes of one graph; every batch is the whole graph, the mask says who counts.

    features: Matrix [N, F]; graph: N nodes; labels [N], -1 where unknown; parts [P, N]: of each of
    P partitions, the index in PARTS that a node belongs to, or -1.
    """

    features: Matrix
    graph: Sparse
    labels: Array
    parts: Array
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
    seeded ones after Shchur et al. 2018, each run with every seed.
    """
    if split not in ("public", "random"):
        raise ValueError(f"task.split = {split!r}: expected 'public' or 'random'")
    from data import planetoid  # here, since TFDS is slow to import and --help has no use for it

    raw = planetoid.read(dataset)
    if split == "public":
        parts = np.full((1, len(raw.labels)), -1, np.int8)
        for index, part in enumerate(PARTS):
            parts[0, getattr(raw, part)] = index
    else:
        parts = np.stack([random_partition(raw.labels, raw.classes, s) for s in range(splits)])
    return nodes(
        rows=raw.rows,
        columns=raw.columns,
        values=raw.values,
        features=raw.features,
        edges=raw.edges,
        labels=raw.labels,
        classes=raw.classes,
        parts=parts,
        normalize=normalize,
        about={
            "dataset": dataset,
            "split": split if split == "public" else f"random ({splits})",
            "checksum": raw.checksum,
        },
    )


def random_partition(
    labels: np.ndarray, classes: int, seed: int, train: int = 20, validation: int = 30
) -> np.ndarray:
    """`train` and `validation` nodes of every class, drawn without replacement; the rest is test.

    Shchur et al. 2018, section 3. labels [N] -> indices in PARTS [N]; unlabelled nodes get -1.
    """
    rng = np.random.default_rng(seed)
    parts = np.where(labels >= 0, PARTS.index("test"), -1).astype(np.int8)
    for label in range(classes):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) <= train + validation:
            raise ValueError(
                f"class {label} has {len(members)} nodes: a random split takes {train} for "
                f"training, {validation} for validation and needs one more for test"
            )
        parts[members[:train]] = PARTS.index("train")
        parts[members[train : train + validation]] = PARTS.index("validation")
    return parts


def nodes(
    *,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    features: int,
    edges: np.ndarray,
    labels: np.ndarray,
    classes: int,
    parts: np.ndarray,
    normalize: bool = False,
    about: dict[str, Any] | None = None,
) -> Nodes:
    """The task of one undirected graph, checked: what is wrong is named by its first offender.

    Features as (rows, columns, values) of the nonzeros of [N, features]; edges [M, 2], each pair
    once, heard both ways. `normalize` divides rows by their sums (a row of zeros stays).
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
        _expect(labels[None] >= np.where(members, 0, -1), labels, f"label in {part}", "a class")
    if normalize:
        sums = np.bincount(rows, values, count)
        values = values / np.where(sums == 0, 1, sums)[rows]
    senders, receivers = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((senders, receivers))  # neighbours together: receivers sum in one place
    return Nodes(
        Matrix(
            Sparse(jnp.asarray(columns), jnp.asarray(rows), (count, features)),
            jnp.asarray(values, jnp.float32)[:, None],
        ),
        Sparse(jnp.asarray(senders[order]), jnp.asarray(receivers[order]), (count, count)),
        jnp.asarray(labels),
        jnp.asarray(parts),
        classes,
        tuple((about or {}).items()),
    )


def _expect(fine: np.ndarray, found: np.ndarray, what: str, expected: str) -> None:
    wrong = np.argwhere(~np.atleast_1d(fine))
    if len(wrong):
        value = np.broadcast_to(found, np.shape(np.atleast_1d(fine)))[tuple(wrong[0])]
        raise ValueError(f"{what} {value} (at {wrong[0].tolist()}): expected {expected}")
