"""Who is most influential in a social network? Graphs made at random, answers computed exactly.

Adjacency is sparse, small as the graphs are: dense products of this size are slow wherever threads
of BLAS have to wait for a core.
"""

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve

from data.example import Example, checksum, in_order
from data.graphs import Graphs, graphs

DAMPING = 0.85


def Influence(
    train: int = 300, validation: int = 60, test: int = 120, batch_size: int = 16,
    nodes: tuple[int, int] = (60, 120), graph_seed: int = 0,
) -> Graphs:  # fmt: skip
    """Regression of two numbers of every node, its PageRank and its betweenness, see `influence`;
    how alike they rank the nodes is measured."""
    examples = influence(train + validation + test, nodes, graph_seed)
    return graphs(
        examples,
        [in_order(train, validation, test)],
        ["pagerank", "betweenness"],
        kind="regress",
        level="node",
        batch_size=batch_size,
        about={"dataset": "influence", "split": "generated", "checksum": checksum(examples)},
    )


def influence(count: int, nodes: tuple[int, int] = (60, 120), seed: int = 0) -> list[Example]:
    """Connected graphs of `nodes` nodes (from, to), of three kinds in turn, see `social`.

    All that a node knows is that it is one, x = 1 [N, 1]: even degrees have to be counted. y [N, 2]
    are log(N · PageRank), which is 0 for a node of average rank, and the root of betweenness: both
    keep the order, and spread the crowd that a few hubs would outweigh.
    """
    if not 9 <= nodes[0] <= nodes[1]:
        raise ValueError(f"task.nodes = {nodes}: expected two sizes, the first 9 or more")
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        size = int(rng.integers(nodes[0], nodes[1] + 1))
        adjacency = social(rng, i % 3, size)
        targets = np.log(size * pagerank(adjacency)), np.sqrt(betweenness(adjacency))
        edges = np.argwhere(adjacency)
        examples.append(Example(edges, np.ones((size, 1)), np.stack(targets, axis=1)))
    return examples


def social(rng: np.random.Generator, kind: int, size: int) -> np.ndarray:
    """The adjacency matrix [N, N] of a graph of Barabási & Albert 1999 (0), where who joins meets
    the popular; of Holme & Kim 2002 (1), and friends of friends; or of Watts & Strogatz 1998 (2), a
    ring with shortcuts. How many friends and how many shortcuts is drawn."""
    import networkx  # here, since it is slow to import and --help has no use for it

    few, share, seed = int(rng.integers(1, 5)), rng.random(), int(rng.integers(2**31))
    if kind == 0:
        graph = networkx.barabasi_albert_graph(size, few, seed)
    elif kind == 1:
        graph = networkx.powerlaw_cluster_graph(size, few, share, seed)
    else:
        ring = 2 * max(few, 2)  # a ring of two falls apart with the first shortcut
        graph = networkx.connected_watts_strogatz_graph(size, ring, share / 2, 1000, seed)
    adjacency = np.zeros((size, size))
    senders, receivers = np.array(graph.edges).T
    adjacency[senders, receivers] = adjacency[receivers, senders] = 1
    return adjacency


def pagerank(adjacency: np.ndarray) -> np.ndarray:
    """The share of time [N] that a walk spends at each node of an undirected graph (Brin & Page
    1998): with probability 0.85, and where there is a neighbour, it goes on to one of them; else
    anywhere."""
    count = len(adjacency)
    goes = csc_array(adjacency / np.maximum(adjacency.sum(0), 1))  # from columns to rows
    visits = spsolve(eye_array(count, format="csc") - DAMPING * goes, np.ones(count))
    return visits / visits.sum()  # wherever walks stop, they start again anywhere


def betweenness(adjacency: np.ndarray) -> np.ndarray:
    """For each node [N] of an undirected graph, the mean over all pairs of others of the share of
    their shortest paths that pass through it. Brandes 2001, from all nodes at once."""
    count, neighbours = len(adjacency), csr_array(adjacency)
    levels = [np.eye(count)]  # [N, N] each: paths of so many edges to the row from the column
    paths = levels[0]
    while levels[-1].any():
        levels.append((neighbours @ levels[-1]) * (paths == 0))
        paths = paths + levels[-1]
    behind = np.zeros((count, count))  # how many nodes the column reaches through the row
    for far, near in zip(levels[:1:-1], levels[-2:0:-1], strict=True):
        share = np.where(far > 0, (1 + behind) / np.maximum(paths, 1), 0)
        behind += near * (neighbours @ share)
    return behind.sum(1) / max((count - 1) * (count - 2), 1)
