"""What is said of many small graphs, as the rows of a table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jax import Array

from data.task import Batch, probabilities

WHERE = {"graph": (), "node": ("node",), "edge": ("source", "target")}


class Known(NamedTuple):
    """What is known of the things that are asked about."""

    words: Sequence[tuple[str, ...]]  # graph, split, and which of its nodes or edges
    places: np.ndarray  # of each in the outputs, flattened
    targets: np.ndarray  # of each
    scored: np.ndarray  # alike, whether the target is known


def known(words: Iterable[tuple[int, tuple[str, ...]]], batches: Batch, every: bool) -> Known:
    """Of places in the outputs, and what is there: those that are asked about, or `every` one."""
    targets, mask = (np.asarray(a).reshape(-1, *a.shape[2:]) for a in batches[1:])
    found = [(place, names) for place, names in words if every or mask[place].any()]
    places = np.array([place for place, _ in found], int)
    return Known([names for _, names in found], places, targets[places], mask[places])


def walk(
    level: str, ids: Sequence[str], splits: Sequence[str], chosen: np.ndarray, sizes: np.ndarray,
    room: tuple[int, int], ends: Sequence[np.ndarray],
) -> Iterator[tuple[int, tuple[str, ...]]]:  # fmt: skip
    """Where in the outputs the graphs of batches [S, B] are, or their nodes or edges, which are
    numbered from 0 in each graph. sizes [G, 2]; room, the places of a batch; ends [M, 2] of edges
    in each graph."""
    which = int(level == "edge")
    for batch, members in enumerate(chosen):
        first = 0
        for slot, graph in enumerate(members):
            if graph < 0:
                continue
            about = ids[graph], splits[graph]
            if level == "graph":
                yield batch * len(members) + slot, about
                continue
            count = sizes[graph, which]
            start = batch * room[which] + first
            for i in range(count):
                local = (i,) if level == "node" else ends[graph][i].tolist()
                yield start + i, (*about, *map(str, local))
            first += count


def rows(
    kind: str, level: str, names: Sequence[str], known: Known, outputs: Array
) -> Iterator[Sequence[str]]:
    """A row for each, the head first. Of classes: the target, the prediction, each probability; of
    several yes-or-no questions or numbers: each one's target, empty if unknown, and what is said.
    """
    columns = ("class", "prediction", *(f"p_{name}" for name in names))
    if kind != "classify":
        said = "p_" if kind == "multilabel" else "predicted_"
        columns = tuple(word for name in names for word in (name, f"{said}{name}"))
    yield ("id", "split", *WHERE[level], *columns)
    outputs = np.asarray(outputs, np.float64)
    outputs = outputs.reshape(-1, outputs.shape[-1])[known.places]  # [things, C]
    best = outputs.argmax(-1)
    if kind == "multilabel":
        outputs = 1 / (1 + np.exp(-outputs))
    elif kind == "classify":
        outputs = probabilities(outputs)
    texts = outputs.astype(np.float32).astype(str)  # the digits they have
    for i, words in enumerate(known.words):
        target, scored = known.targets[i], known.scored[i]
        if kind == "classify":
            yield (*words, names[target] if scored else "", names[best[i]], *texts[i])
        else:
            shown = [str(t) if fine else "" for t, fine in zip(target, scored, strict=True)]
            yield (*words, *(w for pair in zip(shown, texts[i], strict=True) for w in pair))
