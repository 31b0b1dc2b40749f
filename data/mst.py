"""Which edges are of the minimum spanning tree? Points in the plane, answers computed exactly."""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from data.example import Example, checksum, in_order
from data.graphs import Graphs, graphs


def SpanningTree(
    train: int = 1000, validation: int = 200, test: int = 500, batch_size: int = 32,
    nodes: tuple[int, int] = (20, 30), neighbours: int = 8, graph_seed: int = 0,
) -> Graphs:  # fmt: skip
    """Classification of edges: is it of the minimum spanning tree, see `mst`. Each is asked about
    once, from its lower node to the higher."""
    examples = [
        example._replace(mask=example.edges[:, 0] < example.edges[:, 1])
        for example in mst(train + validation + test, nodes, neighbours, graph_seed)
    ]
    return graphs(
        examples,
        [in_order(train, validation, test)],
        ["not in the tree", "in the tree"],
        level="edge",
        batch_size=batch_size,
        about={"dataset": "spanning tree", "split": "generated", "checksum": checksum(examples)},
    )


def mst(
    count: int, nodes: tuple[int, int] = (20, 30), neighbours: int = 8, seed: int = 0
) -> list[Example]:
    """Graphs of `nodes` points (from, to), uniform in the unit square, x [N, 2] their places.

    Two are linked if either is one of the other's nearest `neighbours`, or if the minimum spanning
    tree of all pairs has them: so every graph is connected, and this is its own tree too. Edges
    carry their length [M, 1]; y [M] is 1 for those of the tree, both ways.
    """
    if not 2 <= nodes[0] <= nodes[1]:
        raise ValueError(f"task.nodes = {nodes}: expected two sizes, the first 2 or more")
    if neighbours < 1:
        raise ValueError(f"task.neighbours = {neighbours}: expected 1 or more")
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        size = int(rng.integers(nodes[0], nodes[1] + 1))
        x = rng.random((size, 2))
        distance = np.sqrt(((x[:, None] - x) ** 2).sum(-1))  # [N, N]
        inside = tree(distance)
        near = distance.argsort(1)[:, 1 : neighbours + 1]  # behind itself
        linked = inside.copy()
        linked[np.arange(size)[:, None], near] = True
        edges = np.argwhere(linked | linked.T)
        senders, receivers = edges.T
        y, length = inside[senders, receivers], distance[senders, receivers]
        examples.append(Example(edges, x, y.astype(int), length[:, None]))
    return examples


def tree(distance: np.ndarray) -> np.ndarray:
    """Whether the tree links each of the pairs [N, N], both ways."""
    found = minimum_spanning_tree(distance).toarray() > 0
    return found | found.T
