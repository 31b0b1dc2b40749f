"""Many small graphs: questions about each as a whole, about its nodes or about its edges.

A batch is one big graph in which they lie side by side, in as many places for nodes and for edges
as nearly every batch needs: whatever the graphs' sizes, a step is compiled once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from data import answers, metrics
from data.example import Example
from data.nodes import PARTS
from data.order import epochs
from data.task import Batch, Mean, Run, balanced_accuracy, classify, crossed, multilabel, regress
from models.graph import Sparse

Level = Literal["graph", "node", "edge"]
Kind = Literal["classify", "multilabel", "regress"]
SCORES = {"classify": classify, "multilabel": multilabel, "regress": regress}
DRAWS = 10_000  # batches, of which at most one in this many does not fit


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the graphs besides their arrays. Equal only to itself, as jit compares."""

    about: Mapping[str, Any]
    names: Sequence[str]  # of the classes, or of the columns of the targets
    kind: Kind
    level: Level
    number: str  # of a run: "fold" or "split_seed"
    batch_size: int  # graphs in a batch
    places: int  # for nodes in it
    links: int  # places for edges
    flips: int  # so many of the last features have an arbitrary sign
    ids: Sequence[str]  # [G]
    another: Callable[[str], "Graphs"] | None  # reads other graphs


@struct.dataclass
class Graphs:
    """Graphs one behind the other: those of a batch are drawn without replacement, epoch by epoch.

    A model is called with x [N, F], the graph, what edges carry, the mask of nodes that are there
    and, as the question asked, a graph in which each whole graph hears its nodes; or, about edges,
    the graph itself, whose pairs are to be judged.
    """

    x: Array  # [N, F] features of all nodes
    edges: Array  # [M, 2] sender and receiver, places in x
    carries: Array | None  # [M, D]
    targets: Array  # [G, ...], [N, ...] or [M, ...], as the level says
    scored: Array  # alike: true where a target is known
    nodes: Array  # [G + 1] where the nodes of a graph begin
    links: Array  # [G + 1] where its edges begin
    members: Array  # [P, T] in each of P partitions, the graphs to train on, -1 behind the last
    batches: dict[str, Array]  # [P, S, B] of each part, the graphs of each batch, -1 for none
    facts: Facts = struct.field(pytree_node=False)

    @property
    def dims(self) -> dict[str, int]:
        return {"out": len(self.facts.names)}

    @property
    def about(self) -> dict[str, Any]:
        return dict(self.facts.about)

    def runs(self, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Every seed on every partition."""
        name, count = self.facts.number, len(self.members)
        return crossed(seeds, name, count) if count > 1 else {"seed": np.asarray(seeds)}

    def batch(self, run: Run, step: Array) -> Batch:
        members = self.members[run.get(self.facts.number, 0)]
        count = (members >= 0).sum()
        chosen = epochs(run["seed"], step, self.facts.batch_size, count, len(members))
        signs = jax.random.fold_in(jax.random.key(run["seed"]), step)
        return self._batch(members[chosen], signs)

    def split(self, name: str, run: Run) -> Batch:
        ids = self.batches[name][run.get(self.facts.number, 0)]
        return jax.vmap(lambda ids: self._batch(ids, None))(ids)

    def score(self, outputs: Array, batch: Batch) -> dict[str, Mean]:
        classes = (len(self.facts.names),) if self.facts.kind == "classify" else ()
        wanted = [*batch.targets.shape, *classes]
        if list(outputs.shape) != wanted:
            raise ValueError(f"the model gives outputs {list(outputs.shape)}, expected {wanted}")
        return SCORES[self.facts.kind](outputs, batch.targets, batch.mask)

    def measure(self, outputs: Array, batches: Batch) -> dict[str, Array]:
        """Balanced accuracy, and F1 of edges in the second of two classes; or by column of the
        targets: the mean of ROC AUC, or each rank correlation."""
        targets, mask, kind = batches.targets, batches.mask, self.facts.kind
        if kind == "classify":
            found = {"balanced_accuracy": balanced_accuracy(outputs, targets, mask)}
            if self.facts.level == "edge" and outputs.shape[-1] == 2:
                found["f1"] = metrics.f1(outputs[..., 1] - outputs[..., 0], targets, mask)
            return found
        columns = [a.reshape(-1, a.shape[-1]).T for a in (outputs, targets, mask)]
        if kind == "multilabel":
            return {"auc": jnp.nanmean(jax.vmap(metrics.auc)(*columns))}
        ranks = jax.vmap(metrics.spearman)(*columns)
        return {f"rank_correlation_{name}": ranks[i] for i, name in enumerate(self.facts.names)}

    def read(self, path: str | None, run: Run) -> tuple[Any, Batch]:
        """All that is asked about the graphs in a file, or about these; errors in one line."""
        facts = self.facts
        if path is not None:
            if facts.another is None:
                raise ValueError(f"the task on {self.about['dataset']} reads no other graphs")
            other = facts.another(path)
            return other._read([""] * len(other.facts.ids))
        splits = [""] * len(facts.ids)
        for part in PARTS:  # of those that overlap, the test is what counts
            ids = np.asarray(self.batches[part][run.get(facts.number, 0)])
            for i in ids[ids >= 0]:
                splits[i] = part
        return self._read(splits)

    def _read(self, splits: Sequence[str]) -> tuple[Any, Batch]:
        facts, nodes, links = self.facts, np.asarray(self.nodes), np.asarray(self.links)
        sizes = np.stack([np.diff(nodes), np.diff(links)], 1)
        chosen = pack(np.arange(len(sizes)), sizes, facts)  # [S, B]
        batches = jax.vmap(lambda ids: self._batch(ids, None))(jnp.asarray(chosen))
        ends = np.split(np.asarray(self.edges), links[1:-1])
        ends = [own - start for own, start in zip(ends, nodes, strict=False)]
        room = facts.places, facts.links
        words = answers.walk(facts.level, facts.ids, splits, chosen, sizes, room, ends)
        return answers.known(words, batches, every=facts.level == "graph"), batches

    def write(self, known: answers.Known, outputs: Array) -> Iterable[Sequence[str]]:
        """A table, its head first: what the outputs say, beside the target."""
        facts = self.facts
        return answers.rows(facts.kind, facts.level, facts.names, known, outputs)

    def _batch(self, ids: Array, signs: Array | None) -> Batch:
        """These graphs side by side, ids [B], -1 for none. Those behind the last that fits, about
        once in `DRAWS` batches of training, are left out."""
        facts, start = self.facts, (self.nodes, self.links)
        sizes = [jnp.where(ids >= 0, begin[ids + 1] - begin[ids], 0) for begin in start]
        ends = [size.cumsum() for size in sizes]
        fits = (ends[0] <= facts.places) & (ends[1] <= facts.links)
        places = facts.places, facts.links
        laid = [
            lay(begin[ids], jnp.where(fits, size, 0), room)
            for begin, size, room in zip(start, sizes, places, strict=True)
        ]
        (node, owner, mask), (edge, edge_owner, there) = laid
        x = jnp.where(mask[:, None], self.x[node], 0)
        if facts.flips and signs is not None:
            shape = (len(ids), facts.flips)  # of each graph
            sign = jax.random.rademacher(signs, shape, x.dtype)[owner]
            x = x.at[:, -facts.flips :].multiply(sign)
        moved = (ends[0] - sizes[0] - self.nodes[ids])[edge_owner]  # of each edge's graph
        ends_of = jnp.where(there[:, None], self.edges[edge] + moved[:, None], facts.places - 1)
        graph = Sparse(ends_of[:, 0], ends_of[:, 1], (facts.places, facts.places), there)
        carries = None
        if self.carries is not None:
            carries = jnp.where(there[:, None], self.carries[edge], 0)
        whole = Sparse(jnp.arange(facts.places), owner, (len(ids), facts.places), mask)
        asked, place, real = {
            "graph": (whole, ids, fits & (ids >= 0)),
            "node": (None, node, mask),
            "edge": (graph, edge, there),
        }[facts.level]
        targets, known = self.targets[place], self.scored[place]
        known = known & real.reshape(*real.shape, *[1] * (known.ndim - 1))
        return Batch((x, graph, carries, mask, asked), targets, known)


def lay(start: Array, size: Array, places: int) -> tuple[Array, Array, Array]:
    """Rows of B graphs, each from `start` [B] and `size` [B] of them, into so many places: which
    row, which of the B, and whether there is one: all [places]."""
    owner = jnp.repeat(jnp.arange(len(size)), size, total_repeat_length=places)
    place = jnp.arange(places)
    there = place < size.sum()
    row = start[owner] + place - (size.cumsum() - size)[owner]
    return jnp.where(there, row, 0), owner, there


def graphs(
    examples: Sequence[Example], partitions: Sequence[Mapping[str, np.ndarray]], names, *,
    kind: Kind = "classify", level: Level = "graph", batch_size: int = 32, number: str = "fold",
    flips: int = 0, about: Mapping[str, Any] | None = None, ids=None, another=None,
) -> Graphs:  # fmt: skip
    """The task of many graphs; ValueError names the first thing that is wrong with them.

    partitions: of each run of a population, the examples in each of PARTS, which may overlap where
    a protocol has it so. names: of the classes, or of the columns of the targets. ids: the graphs'
    names, by default their numbers.
    """
    assert kind in get_args(Kind) and level in get_args(Level)
    for i, example in enumerate(examples):
        check(i, example, kind, level, len(names))
    smallest = min(len(partition["train"]) for partition in partitions)
    if not 1 <= batch_size <= smallest:
        expected = f"1 to {smallest}, the graphs to train on"
        raise ValueError(f"task.batch_size = {batch_size}: expected {expected}")
    for partition in partitions:
        for part in PARTS:
            if not len(partition[part]):
                raise ValueError(f"the {part} split is empty: expected a graph or more")
    sizes = np.array([(len(example.x), len(example.edges)) for example in examples])  # [G, 2]
    starts = np.concatenate([np.zeros((1, 2), int), sizes.cumsum(0)])
    places, links = room(sizes, batch_size)
    edges = [example.edges + start for example, (start, _) in zip(examples, starts, strict=False)]
    wanted = [example.y for example in examples]
    masks = [np.ones(np.shape(e.y), bool) if e.mask is None else e.mask for e in examples]
    join = np.stack if level == "graph" else np.concatenate
    targets, scored = join(wanted), join(masks)
    carries = None
    if examples[0].carries is not None:
        carries = np.concatenate([example.carries for example in examples]).astype(np.float32)
    ids = [str(i) for i in range(len(examples))] if ids is None else ids
    shape = batch_size, int(places), int(links)
    facts = Facts(about or {}, names, kind, level, number, *shape, flips, ids, another)
    packed = {part: [pack(p[part], sizes, facts) for p in partitions] for part in PARTS}
    return jax.tree.map(
        jnp.asarray,
        Graphs(
            np.concatenate([example.x for example in examples]).astype(np.float32),
            np.concatenate(edges).astype(np.int32),
            carries,
            targets.astype(np.int32 if kind == "classify" else np.float32),
            scored,
            starts[:, 0].astype(np.int32),
            starts[:, 1].astype(np.int32),
            padded([partition["train"] for partition in partitions]),
            {part: padded(batches) for part, batches in packed.items()},
            facts,
        ),
    )


def check(i: int, example: Example, kind: Kind, level: Level, names: int) -> None:
    """Raises ValueError unless the example is what the task needs."""
    count = len(example.x)
    if not count:
        raise ValueError(f"graph {i} has no nodes: expected one or more")
    for name, low, high, array in (
        ("end of an edge", 0, count, example.edges),
        *([("target", 0, names, example.y)] if kind == "classify" else []),
    ):
        wrong = (array < low) | (array >= high)
        if np.any(wrong):
            value = np.asarray(array)[wrong].flat[0]
            raise ValueError(f"graph {i}: {name} {value}: expected {low} to {high - 1}")
    for name, array in (("features", example.x), ("targets", example.y)):
        known = np.asarray(array, float)
        if name == "targets" and example.mask is not None:
            known = known[example.mask]
        if not np.isfinite(known).all():
            raise ValueError(f"graph {i} has {name} that are not finite")
    lead = {"graph": (), "node": (count,), "edge": (len(example.edges),)}[level]
    shape = lead if kind == "classify" else (*lead, names)
    if np.shape(example.y) != shape:
        found = list(np.shape(example.y))
        raise ValueError(f"graph {i}: targets {found}: expected {list(shape)}")


def room(sizes: np.ndarray, batch_size: int) -> np.ndarray:
    """Places for nodes and edges [2] that hold any one graph and nearly every batch of them."""
    rng = np.random.default_rng(0)
    drawn = sizes[rng.integers(len(sizes), size=(DRAWS, batch_size))].sum(1)  # [DRAWS, 2]
    return np.maximum(drawn.max(0), sizes.max(0))


def pack(ids: np.ndarray, sizes: np.ndarray, facts: Facts) -> np.ndarray:
    """The graphs of each batch [S, B] in order, -1 for none: as many as fit into one."""
    batches: list[list[int]] = [[]]
    total = np.zeros(2, int)
    for i in ids:
        total = total + sizes[i]
        if len(batches[-1]) == facts.batch_size or (total > (facts.places, facts.links)).any():
            batches.append([])
            total = sizes[i]
        batches[-1].append(i)
    return padded(batches, facts.batch_size)


def padded(rows: Iterable[Any], width: int = 0) -> np.ndarray:
    """Arrays of different lengths, one above the other, -1 behind the ends."""
    arrays = [np.asarray(row, np.int32) for row in rows]
    length = max(width, *map(len, arrays), 0)
    fill = lambda a: np.pad(a, [(0, length - len(a))] + [(0, 0)] * (a.ndim - 1), constant_values=-1)
    return np.stack([fill(a) for a in arrays])
