"""Does a graph hold a triangle, or a square? Questions on which counting edges is no help."""

import numpy as np

from data.example import Example, checksum, in_order
from data.graphs import Graphs, graphs

SIZES = 8, 20
DEGREES = 1.0, 3.0  # on average in a graph: at less nearly none holds a motif, at more nearly all
DRAWN = 32  # graphs at once


def Motifs(
    motif: str = "triangle", train: int = 2000, validation: int = 500, test: int = 1000,
    batch_size: int = 64, graph_seed: int = 0,
) -> Graphs:  # fmt: skip
    """Classification of whole graphs by whether they hold a motif, see `motifs`."""
    examples = motifs(train + validation + test, motif, graph_seed)
    return graphs(
        examples,
        [in_order(train, validation, test)],
        [f"no {motif}", motif],
        batch_size=batch_size,
        about={"dataset": motif, "split": "generated", "checksum": checksum(examples)},
    )


def motifs(count: int, motif: str = "triangle", seed: int = 0) -> list[Example]:
    """Random graphs of 8 to 20 nodes, x = 1 [N, 1], half of which hold a "triangle", or a "square":
    a cycle of four, whether or not it has diagonals. y is 1 if it does.

    Every graph that does is followed by one that does not, of as many nodes and as many edges; both
    are uniform among the graphs of this kind.
    """
    if motif not in COUNTS:
        raise ValueError(f"task.motif = {motif!r}: expected {' or '.join(map(repr, COUNTS))}")
    rng = np.random.default_rng(seed)
    examples: list[Example] = []
    while len(examples) < count:
        size = int(rng.integers(SIZES[0], SIZES[1] + 1))
        edges = round(size * rng.uniform(*DEGREES) / 2)
        drawn = uniform(rng, size, edges)
        holds = COUNTS[motif](drawn) > 0
        if holds.any() and not holds.all():
            for answer, graph in ((1, drawn[holds.argmax()]), (0, drawn[holds.argmin()])):
                ends = np.argwhere(graph)
                examples.append(Example(ends, np.ones((size, 1)), np.array(answer)))
    return examples[:count]


def uniform(rng: np.random.Generator, size: int, edges: int) -> np.ndarray:
    """Adjacency matrices [DRAWN, N, N] of graphs of so many edges, all equally likely."""
    rows, columns = np.triu_indices(size, 1)
    chosen = rng.random((DRAWN, len(rows))).argpartition(edges - 1)[:, :edges]
    graphs = np.zeros((DRAWN, size, size), int)
    graphs[np.arange(DRAWN)[:, None], rows[chosen], columns[chosen]] = 1
    return graphs + graphs.swapaxes(1, 2)


def triangles(graphs: np.ndarray) -> np.ndarray:
    """How many there are in adjacency matrices A [..., N, N]: tr(A³) / 6."""
    return (graphs @ graphs * graphs).sum((-2, -1)) // 6


def squares(graphs: np.ndarray) -> np.ndarray:
    """How many there are in adjacency matrices A [..., N, N]: of the closed walks of four steps,
    tr(A⁴), those that go back on themselves do not count (Harary & Manvel 1971)."""
    two = graphs @ graphs
    degree = graphs.sum(-1)
    back = 2 * (degree * degree).sum(-1) - degree.sum(-1)
    return ((two * two).sum((-2, -1)) - back) // 8


COUNTS = {"triangle": triangles, "square": squares}
