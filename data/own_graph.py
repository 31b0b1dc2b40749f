"""Your own graph: a folder of nodes.csv and edges.csv, or GraphML, for node classification."""

import math

import jax.numpy as jnp
import numpy as np

from data.graph_files import Files, Table, number, read
from data.nodes import LARGEST, PARTS, WEIGHTS, Nodes, nodes, placed, random_partition


def OwnGraph(
    path: str = "",
    split: str = "own",
    splits: int = 10,
    features: tuple = (),
    label: str = "label",
    weighted: bool = False,
    directed: bool = False,
    normalize: bool = False,
    standardize: bool = False,
    positions: str = "none",
    dimensions: int = 8,
) -> Nodes:
    """The graph in a folder's nodes.csv (id, label, split, features ...) and edges.csv (source,
    target, weight), comma-separated UTF-8 with a line of names; or in a .graphml file.

    Ids are any text and stay as written. `label` names the column of the classes: any text, empty
    where unknown, in order of numbers if all are numbers. `split` is "own", the column's (train,
    validation, test, or empty for a node that is only heard), or "random": as many as `splits`
    says, drawn as Citation's. `features` names the columns of a node's numbers; by default they are
    all others, of GraphML's attributes (colours and places too) all declared as numbers or
    booleans. Zeros are not stored. Without features every node is a word of its own. `normalize`
    divides a node's numbers by their sum; `standardize` takes each column to mean 0 and deviation 1
    over all nodes, as numbers of different units need it, but counts of words do not. `positions`
    and their `dimensions` are those of Citation.

    An edge is heard both ways, whatever GraphML declares, unless `directed`: then the target hears
    the source. A pair named again is one edge with the mean of the weights. A node that names
    itself is passed over, since models add such loops. Weights, positive numbers, are read only if
    `weighted`, and are one more input of the model. Other columns of edges are ignored.
    """
    if split not in ("own", "random"):
        raise ValueError(f"task.split = {split!r}: expected 'own' or 'random'")
    if normalize and standardize:
        raise ValueError("task.normalize and task.standardize contradict each other")
    files = read(path)
    dataset = files.name
    names = numeric(files.nodes, features, label)
    classes = distinct(files.nodes, label)
    known = numbers(files.nodes, names)  # [N, F]
    shift, scale = np.zeros(len(names)), np.ones(len(names))
    if standardize:
        shift, scale = known.mean(0), known.std(0)
        scale = np.where(scale > 1e-6 * np.abs(known).max(0), scale, 1)  # a constant becomes 0

    def task(files: Files, dense: np.ndarray, parts: np.ndarray, **facts) -> Nodes:
        one = nodes(
            **words(dense, shift, scale), **pairs(files, directed, weighted), parts=parts,
            labels=files.nodes.indices(label, classes), classes=classes, directed=directed,
            normalize=normalize, ids=list(files.ids), **facts,
        )  # fmt: skip
        return placed(one, positions, dimensions)

    def another(path: str) -> Nodes:
        """A graph to predict on: of the same features; labels and splits may be there."""
        if not names:
            raise ValueError(f"{dataset} has no features: its nodes are all that a run knows")
        other = read(path)
        there = numeric(other.nodes, features, label)
        for name in sorted({*names} ^ {*there}):
            verb = "lacks the feature" if name in names else "has one more feature,"
            raise ValueError(f"{other.nodes.file} {verb} {name!r}: expected those of {dataset}")
        parts = np.full(len(other.ids), -1)
        if split == "own":
            parts = other.nodes.indices("split", PARTS)
        none = np.empty((0, len(other.ids)), int)  # as nothing is trained, none is too small
        return task(other, numbers(other.nodes, names), none).replace(
            parts=jnp.asarray(parts[None])
        )

    labels = files.nodes.indices(label, classes)
    if split == "own":
        parts = own_partition(files.nodes, labels, label)[None]
    else:
        parts = np.stack([random_partition(labels, classes, seed) for seed in range(splits)])
    about = {
        "dataset": dataset,
        "split": split if split == "own" else f"random ({splits})",
        "checksum": files.checksum,
        "classes": classes,
    }
    return task(files, known, parts, about=about, another=another)


def numeric(table: Table, asked: tuple, label: str) -> list[str]:
    """The columns that are features: those asked for, or all that can be."""
    others = [name for name in table.columns if name not in ("id", "split", label)]
    for name in map(str, asked):
        if name not in others:
            raise ValueError(f"task.features: {table.file} has no column {name!r}")
    return list(dict.fromkeys(map(str, asked))) or [name for name in others if table.numeric(name)]


def distinct(table: Table, label: str) -> list[str]:
    """The classes, sorted."""
    cells = table.column(label, " of classes (task.label says which)")
    classes = sorted({cell for cell in cells if cell})
    if all(math.isfinite(number(name)) for name in classes):
        classes.sort(key=number)
    if len(classes) < 2:
        found = f"only {classes[0]!r}" if classes else "none"
        raise ValueError(f"{table.file}: expected two classes or more in {label!r}, found {found}")
    return classes


def own_partition(table: Table, labels: np.ndarray, label: str) -> np.ndarray:
    """The part [N] of each node by the column `split`, -1 where that is empty."""
    table.column("split", " (or --config.task.split=random)")
    parts = table.indices("split", PARTS)
    for row in np.flatnonzero((parts >= 0) & (labels < 0))[:1]:
        raise table.wrong(row, label, f"a class, since the node is in {PARTS[parts[row]]}")
    for index, part in enumerate(PARTS):
        if index not in parts:
            raise ValueError(f"{table.file}: expected a node or more in split {part!r}, found none")
    return parts


def numbers(table: Table, names: list[str]) -> np.ndarray:
    """The columns [N, F]."""
    expected = "a number (task.features chooses columns)"
    found = [table.numbers(name, -LARGEST, LARGEST, expected) for name in names]
    return np.stack(found, axis=1) if names else np.empty((len(table.places), 0))


def words(dense: np.ndarray, shift: np.ndarray, scale: np.ndarray) -> dict:
    """The features that are not zero; where there are none, the identity."""
    if not dense.shape[1]:
        every = np.arange(len(dense))
        return dict(rows=every, columns=every, values=np.ones(len(every)), features=len(every))
    dense = ((dense - shift) / scale).astype(np.float32)  # [N, F]
    rows, columns = dense.nonzero()
    return dict(rows=rows, columns=columns, values=dense[rows, columns], features=dense.shape[1])


def pairs(files: Files, directed: bool, weighted: bool) -> dict:
    """The edges [M, 2] between different nodes, each once, and the means [M] of their weights."""
    edges, columns = files.edges, ("source", "target")
    ends = [[files.ids.get(cell, -1) for cell in edges.column(name)] for name in columns]
    ends = np.array(ends, int).T  # [E, 2]
    for row, end in np.argwhere(ends < 0)[:1]:
        raise edges.wrong(row, columns[end], "the id of a node")
    weights = np.ones(len(ends))
    if weighted:
        weights = edges.numbers("weight", *WEIGHTS, "a positive number from 1e-30 to 1e30")
    apart = ends[:, 0] != ends[:, 1]
    ends = ends[apart] if directed else np.sort(ends[apart])
    ends, place, count = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(place.ravel(), weights[apart], len(ends)) / count
    return {"edges": ends, "weights": means if weighted else None}
