"""Link prediction: which pairs of nodes are linked, besides those that training shows?

The links of an undirected graph are cut into three parts, both directions of a pair in one of them.
What a model hears, in validation and testing too, is the graph of the training links alone.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from data import metrics
from data.citation import Citation
from data.nodes import PARTS, Facts
from data.task import Batch, Mean, Run, crossed
from models.graph import Dense, Matrix, Sparse

OBJECTIVES = ("all pairs", "sampled")
LARGEST = 2**16  # nodes: a pair's number is one of 32 bits


@struct.dataclass
class LinkPrediction:
    """Which of the pairs asked about are linked? The first node of a pair hears the second.

    Every part's pairs are its links and, drawn once for each split, as many pairs without a link in
    any part: of these the metrics are. The `objective` of training is a cross-entropy of either

    "all pairs", as in Kipf & Welling 2016 (arXiv:1611.07308) and their code: of every pair of
    nodes, those of a node and itself being links too; links weigh (N^2 - E) / E, where E counts
    both directions of the training links, and all of it N^2 / 2 (N^2 - E). N^2 logits are stored;

    or "sampled": of the training links and as many other pairs, drawn anew in every step from all
    that are no training link. Links of other parts may be among them, since training knows of none.

    Ranks, for "mrr" and "hits@10", are those of each link among all of its part's pairs without.
    """

    features: Matrix  # [N, F]
    graph: Sparse  # [S, E]: of each of S splits the training links, in both directions
    asked: Mapping[str, Sparse]  # [S, P] of each part, links first; in either a pair has i < j
    targets: Mapping[str, Array]  # [P] of each part, true at links
    taken: Array  # [S, E / 2] the training links' numbers, ascending
    objective: str = struct.field(pytree_node=False)
    facts: Facts = struct.field(pytree_node=False)

    dims = {"out": 1}

    @property
    def about(self) -> dict[str, Any]:
        return dict(self.facts.about)

    def runs(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Every seed on every split."""
        return crossed(seeds, "split_seed", len(self.taken))

    def batch(self, run: Run, step: Array) -> Batch:
        if self.objective == "sampled":
            return self._sampled(run, step)
        inputs, count = self._inputs(run, Dense()), self.graph.shape[0]
        heard = inputs[1]
        linked = jnp.eye(count, dtype=bool).at[heard.receivers, heard.senders].set(True)
        return Batch(inputs, linked, jnp.ones((count, count), bool))

    def split(self, name: str, run: Run) -> Batch:
        asked = _one(self.asked[name], run)
        targets = self.targets[name]
        batch = Batch(self._inputs(run, asked), targets, jnp.ones(targets.shape, bool))
        return jax.tree.map(lambda a: a[None], batch)

    def score(self, outputs: Array, batch: Batch) -> dict[str, Mean]:
        if outputs.shape != batch.targets.shape:
            wanted = f"expected {list(batch.targets.shape)}, a number for each pair (models.Pairs)"
            raise ValueError(f"the model gives outputs {list(outputs.shape)}, {wanted}")
        weight = batch.mask.sum(dtype=jnp.float32)
        logits = outputs.astype(jnp.float32)
        if outputs.ndim == 2:
            return {"loss": Mean(weight * self._every(logits, batch.inputs[1]), weight)}
        loss = softplus(jnp.where(batch.targets, -logits, logits))
        return {"loss": Mean(jnp.where(batch.mask, loss, 0).sum(), weight)}

    def measure(self, outputs: Array, batches: Batch) -> dict[str, Array]:
        scored = outputs.ravel(), batches.targets.ravel(), batches.mask.ravel()
        return {
            "auc": metrics.auc(*scored),
            "average_precision": metrics.average_precision(*scored),
            "mrr": metrics.mean_reciprocal_rank(*scored),
            "hits@10": metrics.hits(10, *scored),
        }

    def read(self, path: str | None, run: Run) -> tuple[Any, Batch]:
        """The test pairs: the (id, id, target) of each; a batch [1, ...]."""
        if path is not None:
            raise ValueError(f"the task on {self.about['dataset']} reads no other graph")
        batch, ids = self.split("test", run), self.facts.ids
        asked, [targets] = batch.inputs[-1], batch.targets.astype(int).tolist()
        ends = (side[0].tolist() for side in (asked.receivers, asked.senders))
        return [
            (ids[i], ids[j], linked) for i, j, linked in zip(*ends, targets, strict=True)
        ], batch

    def write(self, known: Any, outputs: Array) -> Iterable[Sequence[str]]:
        """A table, its head first: each pair's probability of a link, and the logit it is of."""
        yield ("first", "second", "target", "prediction", "probability", "score")
        for pair, logit in zip(known, np.asarray(outputs[0]), strict=True):
            share = np.exp(-np.logaddexp(0, -np.float64(logit)))
            yield (*map(str, pair), str(int(logit > 0)), str(share), str(logit))

    def _inputs(self, run: Run, asked: Dense | Sparse) -> tuple[Any, ...]:
        return (self.features, _one(self.graph, run), None, None, asked)

    def _every(self, logits: Array, graph: Sparse) -> Array:
        """The mean cross-entropy of all pairs, logits [N, N], links being those of the graph.

        First none is a link, then links are corrected: their targets are read nowhere else. With
        weights and targets for each pair a step takes twice as long.
        """
        nodes, links = self.graph.shape[0], self.graph.senders.shape[-1]
        others = nodes**2 - links
        node = jnp.arange(nodes)
        ends = jnp.append(graph.receivers, node), jnp.append(graph.senders, node)
        linked = logits[ends]
        correction = others / links * softplus(-linked) - softplus(linked)
        return (softplus(logits).sum() + correction.sum()) / (2 * others)

    def _sampled(self, run: Run, step: Array) -> Batch:
        links, taken = _one(self.asked["train"], run), _one(self.taken, run)
        count, nodes = len(taken), self.graph.shape[0]
        key = jax.random.split(jax.random.key(run["seed"]), 3)[2]  # two are experiment.py's
        there = nodes * (nodes - 1) // 2 - count
        ranks = jax.random.randint(jax.random.fold_in(key, step), (count,), 0, there)
        drawn = pairs(absent(taken, ranks), nodes)
        ends = [links.receivers[:count], links.senders[:count]]
        first, second = (jnp.concatenate(both) for both in zip(ends, drawn, strict=True))
        inputs = self._inputs(run, Sparse(second, first, (nodes, nodes)))
        return Batch(inputs, jnp.arange(2 * count) < count, jnp.ones(2 * count, bool))


def Links(
    dataset: str = "cora", split: str = "random", splits: int = 10, validation: float = 0.05,
    test: float = 0.10, negatives: int = 1, objective: str = "all pairs", features: bool = True,
    normalize: bool = False,
) -> LinkPrediction:  # fmt: skip
    """The citations of Cora or CiteSeer; every seed runs on each of so many random splits.

    `validation` and `test` are shares of the links. `negatives` is how many pairs without a link
    are drawn for each link; with 0 there are none, and nothing but the loss is defined. Without
    `features` every node has one of its own; rows of words are scaled to sum to one if `normalize`.
    """
    if split != "random":
        raise ValueError(f"task.split = {split!r}: expected 'random'")
    known = Citation(dataset, normalize=normalize)
    about = {name: known.about[name] for name in ("dataset", "checksum")}
    about["split"] = f"random links ({splits})"
    about["dataset"] += "" if features else ", no features"
    ends = np.stack([known.graph.receivers, known.graph.senders], 1)
    return links(
        ends[ends[:, 0] < ends[:, 1]],
        known.features if features else identity(len(known.labels)),
        splits=splits, validation=validation, test=test, negatives=negatives,
        objective=objective, ids=known.facts.ids, about=about,
    )  # fmt: skip


def links(
    edges, features, *, splits=1, validation=0.05, test=0.10, negatives=1, objective="all pairs",
    ids=None, about=None,
) -> LinkPrediction:  # fmt: skip
    """The task of any undirected graph: edges [M, 2], each pair once, features a Matrix [N, F]; ids
    and about as in `data.nodes.nodes`. ValueError names the first thing that is wrong."""
    nodes, count = features.shape[0], len(edges)
    _check(edges, nodes, validation, test, negatives, objective)
    every = np.sort(numbers(edges))
    shares = {
        "test": test,
        "validation": validation,
    }  # down to whole links, but for a float's digits
    sizes = {part: int(share * count + 1e-9) for part, share in shares.items()}
    for part, size in sizes.items():
        if not size:
            raise ValueError(f"task.{part} = {shares[part]}: of {count} links that is none")
    sizes["train"] = count - sum(sizes.values())
    if not sizes["train"]:
        raise ValueError(f"of {count} links none is left for training")
    found: dict[str, list] = {part: [] for part in PARTS}
    for seed in range(splits):
        rng = np.random.default_rng(seed)
        linked = rng.permutation(every)
        others = without_link(every, nodes, negatives * count, rng) if negatives else every[:0]
        for part, size in sizes.items():  # where others are few, testing comes first
            (own, linked), (none, others) = (
                (some[:n], some[n:]) for some, n in ((linked, size), (others, negatives * size))
            )
            found[part].append((np.sort(own), none))
    taken = np.stack([own for own, _ in found["train"]])
    asked, targets = {}, {}
    for part, drawn in found.items():
        first, second = pairs(np.stack([np.concatenate(both) for both in drawn]), nodes)
        asked[part] = Sparse(second, first, (nodes, nodes))
        targets[part] = np.arange(first.shape[1]) < sizes[part]
    one, other = pairs(taken, nodes)
    receivers, senders = np.concatenate([one, other], 1), np.concatenate([other, one], 1)
    order = np.lexsort((senders, receivers))  # along the last axis; neighbours together
    senders, receivers = (np.take_along_axis(ends, order, 1) for ends in (senders, receivers))
    facts = Facts(about or {}, ids or [str(node) for node in range(nodes)], (), None)
    arrays = features, Sparse(senders, receivers, (nodes, nodes)), asked, targets, taken
    narrow = lambda a: jnp.asarray(a, np.int32 if a.dtype == np.int64 else a.dtype)
    return LinkPrediction(*jax.tree.map(narrow, arrays), objective, facts)


@jax.custom_jvp
def softplus(x: Array) -> Array:
    """log(1 + e^x), whose slope needs x only, where autodiff keeps every step."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_change(x, change):
    return softplus(*x), jax.nn.sigmoid(*x) * change[0]


def identity(nodes: int) -> Matrix:
    """Features that tell nodes apart, and nothing else: I [N, N]."""
    node = jnp.arange(nodes)
    return Matrix(Sparse(node, node, (nodes, nodes)), jnp.ones((nodes, 1)))


def numbers(edges: np.ndarray) -> np.ndarray:
    """A number for every pair [..., 2] of different nodes, whatever their order: those of N nodes
    are numbered from 0 to N (N - 1) / 2 - 1."""
    first, second = np.moveaxis(np.sort(edges.astype(np.int64)), -1, 0)
    return second * (second - 1) // 2 + first


def pairs(which: Any, nodes: int) -> tuple[Any, Any]:
    """The two nodes i < j of each pair, by its number; of NumPy's arrays or of JAX's."""
    xp = which.__array_namespace__()
    node = xp.arange(nodes)
    start = xp.cumsum(node) - node  # of the pairs whose second node it is
    second = xp.searchsorted(start, which, side="right") - 1
    return which - start[second], second


def absent(taken: Any, ranks: Any) -> Any:
    """The numbers that are not taken, by their ranks, from 0; `taken` [M] ascends."""
    xp = ranks.__array_namespace__()
    below = taken - xp.arange(len(taken))  # how many are absent below each
    return ranks + xp.searchsorted(below, ranks, side="right")


def without_link(
    taken: np.ndarray, nodes: int, wanted: int, rng: np.random.Generator
) -> np.ndarray:
    """The numbers of so many different pairs that are not `taken`, at random; of all, if fewer."""
    there = nodes * (nodes - 1) // 2 - len(taken)
    if not there:
        raise ValueError(f"all pairs of {nodes} nodes are linked: expected some that are not")
    if there < wanted:
        asked = f"{wanted} pairs without a link are asked for"
        warnings.warn(f"{asked}, the graph has {there}", stacklevel=3)
    return absent(taken, rng.choice(there, min(wanted, there), replace=False))


def _one(arrays: Any, run: Run) -> Any:
    """Those of a run's split."""
    return jax.tree.map(lambda a: a[run["split_seed"]], arrays)


def _check(edges, nodes, validation, test, negatives, objective) -> None:
    for name, share in {"validation": validation, "test": test}.items():
        if not 0 < share < 1:
            raise ValueError(f"task.{name} = {share}: expected more than 0 and less than 1")
    if negatives < 0:
        raise ValueError(f"task.negatives = {negatives}: expected 0 or more")
    if objective not in OBJECTIVES:
        expected = " or ".join(map(repr, OBJECTIVES))
        raise ValueError(f"task.objective = {objective!r}: expected {expected}")
    if nodes > LARGEST:
        raise ValueError(f"the graph has {nodes:,} nodes: expected at most {LARGEST:,}")
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(f"edges {edges.dtype}{list(edges.shape)}: expected integers [M, 2]")
    for edge in edges[(edges < 0).any(1) | (edges >= nodes).any(1)][:1].tolist():
        raise ValueError(f"edges {edge}: expected nodes 0 to {nodes - 1}")
    for edge in edges[edges[:, 0] == edges[:, 1]][:1].tolist():
        raise ValueError(f"edges {edge}: expected two different nodes")
    if len(np.unique(numbers(edges))) < len(edges):
        raise ValueError("edges: expected each pair once")
