"""The stochastic block model (Holland et al. 1983): which block is each node of?"""

import math

import numpy as np

from data.example import digest
from data.nodes import Nodes, nodes, random_partition

FEATURES = ("none", "label", "gaussian")
WIDTH = 16  # numbers of a node with Gaussian features


def StochasticBlockModel(
    blocks: int = 4,
    size: int = 100,
    within: float = 0.08,
    between: float = 0.02,
    features: str = "gaussian",
    noise: float = 3.0,
    weighted: bool = False,
    graph_seed: int = 0,
    splits: int = 5,
) -> Nodes:
    """One random graph of `blocks` blocks of `size` nodes: any two of a block are linked with
    probability `within`, any others with probability `between`, each pair by itself.

    Features are "none", every node a word of its own; "label", a word for each node, that of its
    block or, with probability `noise`, of any; or "gaussian", the block's 16 numbers plus `noise`
    times the node's own, all standard normal, scaled to be of variance 1 again (Deshpande et al.
    2018, for two blocks). If `weighted`, an edge carries the larger of two uniform numbers within a
    block, the smaller between blocks. `graph_seed` draws all of it. Every seed runs on each of so
    many random `splits`, drawn as Citation's.
    """
    most = 1 if features == "label" else math.inf
    for name, value, fits, expected in (
        ("blocks", blocks, blocks >= 2, "2 or more"),
        ("size", size, size > 50, "51 or more: 50 are not tested"),
        ("within", within, 0 <= within <= 1, "0 to 1"),
        ("between", between, 0 <= between <= 1, "0 to 1"),
        ("features", features, features in FEATURES, "'none', 'label' or 'gaussian'"),
        ("noise", noise, 0 <= noise <= most, f"0 to {most}"),
        ("graph_seed", graph_seed, graph_seed >= 0, "0 or more"),
    ):
        if not fits:
            raise ValueError(f"task.{name} = {value!r}: expected {expected}")
    rng = np.random.default_rng(graph_seed)
    labels = np.repeat(np.arange(blocks), size)
    edges = links(rng, labels, within, between)
    # Drawn whether asked for or not, so that the graph is the same.
    uniform = 1 - rng.random((2, len(edges)))  # none is 0
    alike = np.equal(*labels[edges].T)
    weights = np.where(alike, uniform.max(0), uniform.min(0))
    words = described(rng, labels, features, noise)
    classes = [str(block) for block in range(blocks)]
    arrays = edges, weights, words["columns"], words["values"]
    about = {"dataset": f"sbm {blocks}x{size}", "split": f"random ({splits})"}
    about["checksum"] = digest(arrays)
    parts = np.stack([random_partition(labels, classes, seed) for seed in range(splits)])
    weights = weights if weighted else None
    return nodes(
        edges=edges, weights=weights, labels=labels, classes=classes, parts=parts, about=about,
        **words,
    )  # fmt: skip


def links(
    rng: np.random.Generator, labels: np.ndarray, within: float, between: float
) -> np.ndarray:
    """The pairs [M, 2] of the N labels that are linked, the greater of each first.

    Of all pairs, as many as the larger probability would have are drawn and then thinned, so that
    the cost grows with the edges and not with N²."""
    count, most = math.comb(len(labels), 2), max(within, between)
    pairs = pair(rng.choice(count, rng.binomial(count, most), replace=False))
    chance = np.where(np.equal(*labels[pairs].T), within, between)
    return pairs[rng.random(len(pairs)) * most < chance]


def pair(place: np.ndarray) -> np.ndarray:
    """Where each pair is in the list (1, 0), (2, 0), (2, 1), (3, 0), ...: [M] -> [M, 2]."""
    high = (np.sqrt(8 * place + 1).astype(int) + 1) // 2  # exact, as roots of squares are
    return np.stack([high, place - high * (high - 1) // 2], axis=1)


def described(rng: np.random.Generator, labels: np.ndarray, features: str, noise: float) -> dict:
    """The features that are not zero, as `nodes` takes them."""
    count, blocks = len(labels), labels.max() + 1
    every = np.arange(count)
    if features == "none":
        return dict(rows=every, columns=every, values=np.ones(count), features=count)
    if features == "label":
        lost, other = rng.random(count) < noise, rng.integers(blocks, size=count)
        word = np.where(lost, other, labels)
        return dict(rows=every, columns=word, values=np.ones(count), features=blocks)
    means, own = rng.normal(size=(blocks, WIDTH)), rng.normal(size=(count, WIDTH))
    values = (means[labels] + noise * own) / math.hypot(1, noise)
    rows, columns = np.indices(values.shape).reshape(2, -1)
    return dict(rows=rows, columns=columns, values=values.ravel(), features=WIDTH)
