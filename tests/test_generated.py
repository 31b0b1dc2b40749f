"""Generated examples: their answers are exact, and what else they hold does not give these away."""

import math

import networkx
import numpy as np
import pytest

from data.graphs import check
from data.influence import betweenness, influence, pagerank, social
from data.lookup import lookup
from data.motifs import COUNTS, motifs, squares, triangles, uniform
from data.mst import mst, tree

GRAPHS = {
    "one": networkx.empty_graph(1),
    "no edges": networkx.empty_graph(3),
    "pair": networkx.path_graph(2),
    "path": networkx.path_graph(5),
    "star": networkx.star_graph(4),
    "ring": networkx.cycle_graph(6),
    "complete": networkx.complete_graph(5),
    "bipartite": networkx.complete_bipartite_graph(2, 3),
    "grid": networkx.grid_2d_graph(3, 4),
    "apart": networkx.disjoint_union(networkx.path_graph(3), networkx.cycle_graph(4)),
    **{f"random {i}": networkx.gnm_random_graph(9, 4 + 2 * i, seed=i) for i in range(8)},
}
each = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def as_networkx(example):
    graph = networkx.empty_graph(len(example.x))
    graph.add_edges_from(example.edges.tolist())
    return graph


def undirected(example):
    """Every edge is listed both ways, once, and none from a node to itself."""
    edges = example.edges.tolist()
    listed = {(i, j) for i, j in edges}
    return (
        len(listed) == len(edges)
        and listed == {(j, i) for i, j in edges}
        and all(i != j for i, j in edges)
    )


def alike(one, other):
    """All the arrays of two lists of examples are."""
    join = lambda examples: [array for example in examples for array in example]
    return all(map(np.array_equal, join(one), join(other)))


@pytest.mark.parametrize(
    "make, kind, level, names",
    [
        (lambda seed: influence(6, (9, 12), seed), "regress", "node", 2),
        (lambda seed: motifs(6, "triangle", seed), "classify", "graph", 2),
        (lambda seed: motifs(6, "square", seed), "classify", "graph", 2),
        (lambda seed: mst(6, (5, 9), 3, seed), "classify", "edge", 2),
        (lambda seed: lookup(4, 6, seed), "classify", "node", 4),
    ],
    ids=["influence", "triangle", "square", "mst", "lookup"],
)
def test_examples_are_their_seed_s_and_fit_the_task(make, kind, level, names):
    examples = make(0)
    assert len(examples) == 6 and alike(examples, make(0)) and not alike(examples, make(1))
    for i, example in enumerate(examples):
        check(i, example, kind, level, names)


# ---- Influence


@each
def test_ranks_are_those_of_networkx(graph):
    adjacency = networkx.to_numpy_array(graph)
    ranks = networkx.pagerank(graph, max_iter=1000, tol=1e-12)
    np.testing.assert_allclose(pagerank(adjacency), list(ranks.values()), atol=1e-9)
    between = networkx.betweenness_centrality(graph)
    np.testing.assert_allclose(betweenness(adjacency), list(between.values()), atol=1e-12)


def test_ranks_by_hand():
    star = networkx.to_numpy_array(networkx.star_graph(3))
    hub = (0.15 / 4 + 0.85) / 1.85  # p = 0.15 / 4 + 0.85 (1 - p)
    np.testing.assert_allclose(pagerank(star), [hub, *[(1 - hub) / 3] * 3])
    np.testing.assert_allclose(betweenness(star), [1, 0, 0, 0])
    # Of the three pairs of others, two go through an inner node of a path of four.
    path = networkx.to_numpy_array(networkx.path_graph(4))
    np.testing.assert_allclose(betweenness(path), [0, 2 / 3, 2 / 3, 0])
    # Opposite nodes of a square have two ways: half of one pair of three.
    ring = networkx.to_numpy_array(networkx.cycle_graph(4))
    np.testing.assert_allclose(betweenness(ring), [1 / 6] * 4)


def test_influence():
    for example in influence(9, (20, 24), seed=3):
        graph = as_networkx(example)
        assert undirected(example) and networkx.is_connected(graph)
        assert 20 <= len(example.x) <= 24 and (example.x == 1).all()
        between = np.array(list(networkx.betweenness_centrality(graph).values()))
        ranks = np.array(list(networkx.pagerank(graph, max_iter=1000, tol=1e-12).values()))
        np.testing.assert_allclose(example.y[:, 0], np.log(ranks * len(graph)), atol=1e-6)
        np.testing.assert_allclose(example.y[:, 1] ** 2, between, atol=1e-9)


def test_social_graphs_are_of_three_kinds():
    rng, count = np.random.default_rng(0), 12
    drawn = [[social(rng, kind, 60) for _ in range(count)] for kind in range(3)]
    hubs, closed, rings = (
        [(graph.sum(0), networkx.transitivity(networkx.Graph(graph))) for graph in graphs]
        for graphs in drawn
    )
    clustering = [np.mean([share for _, share in kind]) for kind in (hubs, closed, rings)]
    assert clustering[0] < clustering[1]
    widest = [np.mean([d.max() / d.mean() for d, _ in kind]) for kind in (hubs, closed, rings)]
    assert min(widest[:2]) > 2 * widest[2]
    for degrees, _ in rings:
        assert degrees.mean() in (4, 6, 8)


# ---- Motifs


@each
def test_triangles_and_squares_are_those_of_networkx(graph):
    adjacency = networkx.to_numpy_array(graph).astype(int)
    cycles = [len(cycle) for cycle in networkx.simple_cycles(graph, length_bound=4)]
    assert triangles(adjacency) == cycles.count(3)
    assert squares(adjacency) == cycles.count(4)


def test_triangles_and_squares_by_hand():
    """Of a triangle, a square, a square with a diagonal, and all pairs of four nodes."""
    graphs = np.zeros((4, 4, 4), int)
    for graph, ends in zip(graphs, ("01 12 20", "01 12 23 30", "01 12 23 30 02", ""), strict=True):
        for i, j in ends.split():
            graph[int(i), int(j)] = graph[int(j), int(i)] = 1
    graphs[3] = 1 - np.eye(4, dtype=int)
    assert triangles(graphs).tolist() == [1, 0, 2, 4]
    assert squares(graphs).tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("motif", COUNTS)
def test_motifs_come_in_pairs_that_counting_cannot_tell_apart(motif):
    examples = motifs(400, motif, seed=1)
    length = {"triangle": 3, "square": 4}[motif]
    assert [int(example.y) for example in examples] == [1, 0] * 200
    for example in examples:
        cycles = networkx.simple_cycles(as_networkx(example), length_bound=length)
        assert any(len(cycle) == length for cycle in cycles) == example.y
        assert undirected(example) and (example.x == 1).all()
    sizes = [(len(example.x), len(example.edges)) for example in examples]
    assert sizes[::2] == sizes[1::2]
    assert {size for size, _ in sizes} == set(range(8, 21))
    degrees = [edges / size for size, edges in sizes]
    assert min(degrees) < 1.3 and max(degrees) > 2.3


def test_graphs_of_so_many_edges_are_equally_likely():
    rng, found = np.random.default_rng(0), {}
    for _ in range(100):
        for graph in uniform(rng, 4, 2):
            found[graph.tobytes()] = found.get(graph.tobytes(), 0) + 1
    expected = 3200 / math.comb(6, 2)
    assert len(found) == math.comb(6, 2)
    assert max(abs(count - expected) for count in found.values()) < 5 * math.sqrt(expected)


def test_a_motif_that_is_not_there():
    with pytest.raises(ValueError, match="task.motif = 'ring': expected 'triangle' or 'square'"):
        motifs(2, "ring")


# ---- Minimum spanning trees


def test_tree_by_hand():
    """Points on a line are linked one to the next; in a triangle, the longest side is left out."""
    line = np.array([0.0, 3, 1, 7])
    found = tree(np.abs(line[:, None] - line))
    assert np.argwhere(np.triu(found)).tolist() == [[0, 2], [1, 2], [1, 3]]
    found = tree(np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0.0]]))
    assert np.argwhere(found).tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]


@pytest.mark.parametrize("neighbours", [1, 8, 99])
def test_mst(neighbours):
    """With one neighbour each, most graphs would fall apart, were it not for the tree."""
    for example in mst(20, (20, 30), neighbours, seed=2):
        count = len(example.x)
        assert undirected(example) and 20 <= count <= 30
        length = np.linalg.norm(np.subtract(*example.x[example.edges.T]), axis=1)
        np.testing.assert_allclose(example.carries[:, 0], length, rtol=1e-12)
        assert np.bincount(example.edges[:, 0]).min() >= min(neighbours, count - 1)
        apart = np.linalg.norm(example.x[:, None] - example.x, axis=-1)
        own, every = networkx.empty_graph(count), networkx.Graph(apart)
        for (i, j), d in zip(example.edges.tolist(), length, strict=True):
            own.add_edge(i, j, weight=d)
        listed = {(i, j) for i, j in example.edges[example.y == 1].tolist()}
        for graph in (own, every):
            found = networkx.minimum_spanning_edges(graph, algorithm="kruskal", data=False)
            ends = {tuple(sorted(pair)) for pair in found}
            assert len(ends) == count - 1 and listed == ends | {(j, i) for i, j in ends}


# ---- Lookups


def test_lookup_by_hand():
    """Of two keys: the dictionaries 0 -> 0, 1 -> 1 and 0 -> 1, 1 -> 0, in either order."""
    examples = sorted(lookup(2), key=lambda example: example.y[0])
    assert len(examples) == 2
    for example, (first, second) in zip(examples, ((0, 1), (1, 0)), strict=True):
        assert example.edges.tolist() == [[2, 0], [3, 0], [2, 1], [3, 1]]
        assert example.x.tolist() == [[0, 2], [1, 2], [0, first], [1, second]]
        assert example.y.tolist() == [first, second, first, second]
        assert example.mask.tolist() == [True, True, False, False]


def test_no_dictionary_comes_twice():
    for k, count, expected in ((1, 5, 1), (3, 100, 6), (4, 24, 24), (6, 500, 500), (30, 50, 50)):
        examples = lookup(k, count)
        assert len({tuple(example.y) for example in examples}) == len(examples) == expected
        for example in examples:
            assert sorted(example.x[k:, 1]) == list(range(k)) and (example.x[:k, 1] == k).all()
            np.testing.assert_array_equal(example.y[:k], example.x[k:, 1])
    assert len(lookup(8)) == 32_000


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: lookup(0), "task.k = 0: expected 1 or more"),
        (lambda: influence(1, (8, 20)), "task.nodes = (8, 20): expected two sizes, the first 9"),
        (lambda: influence(1, (20, 10)), "task.nodes = (20, 10): expected two sizes"),
        (lambda: mst(1, (1, 4)), "task.nodes = (1, 4): expected two sizes, the first 2 or more"),
        (lambda: mst(1, neighbours=0), "task.neighbours = 0: expected 1 or more"),
    ],
)
def test_a_setting_that_cannot_be(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value).startswith(message)
