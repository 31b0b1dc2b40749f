"""Positions are those of the formulas, finite for every graph, and flipped in training alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close
from test_citation import cache as cache  # what reads Cora for all tests of a file
from test_citation import small

from data.citation import Citation
from data.nodes import placed
from data.own_graph import OwnGraph
from data.positions import encode, laplacian, random_walk

KINDS = {"laplacian": laplacian, "random_walk": random_walk}
each = pytest.mark.parametrize("kind", KINDS)


def undirected(*pairs):
    edges = np.array(pairs, int).reshape(-1, 2)
    return np.concatenate([edges, edges[:, ::-1]])


def path(nodes):
    return undirected(*zip(range(nodes - 1), range(1, nodes), strict=True))


def random_graph(nodes, share):
    """Around a ring, so that it is in one piece; hardly any two eigenvalues are equal."""
    mask = np.triu(np.random.default_rng(nodes).random((nodes, nodes)) < share, 1)
    ring = np.arange(nodes)
    mask[np.minimum(ring, (ring + 1) % nodes), np.maximum(ring, (ring + 1) % nodes)] = True
    return undirected(*np.argwhere(mask))


def matrix(edges, nodes):
    adjacency = np.zeros((nodes, nodes))
    adjacency[edges[:, 1], edges[:, 0]] = 1
    return adjacency


@pytest.mark.parametrize("nodes", [7, 1200], ids=["by all eigenvectors", "by a few"])
def test_those_of_a_path_are_cosines(nodes):
    found = laplacian(path(nodes), nodes, 4)
    waves = np.cos(np.pi * np.arange(1, 5) * np.arange(nodes)[:, None] / (nodes - 1))  # [N, 4]
    waves *= np.sqrt(np.where(np.isin(np.arange(nodes), (0, nodes - 1)), 1, 2))[:, None]
    waves /= np.linalg.norm(waves, axis=0)
    np.testing.assert_allclose(np.abs((waves * found).sum(0)), 1, atol=1e-9)


def test_eigenvectors_of_lowest_eigenvalues():
    nodes, count = 30, 5
    edges = random_graph(nodes, 0.1)
    adjacency = matrix(edges, nodes)
    scale = np.diag(adjacency.sum(1) ** -0.5)
    whole = np.eye(nodes) - scale @ adjacency @ scale
    found = laplacian(edges, nodes, count)
    lowest = np.linalg.eigvalsh(whole)[1 : count + 1]
    np.testing.assert_allclose(whole @ found, found * lowest, atol=1e-9)
    np.testing.assert_allclose(found.T @ found, np.eye(count), atol=1e-9)
    largest = np.abs(found).argmax(0)
    assert (found[largest, np.arange(count)] > 0).all()


def test_of_equal_entries_the_first_is_positive():
    """Whatever rounding says: in a cycle of four, the last eigenvector is 1, -1, 1, -1."""
    square = undirected((0, 1), (1, 2), (2, 3), (3, 0))
    np.testing.assert_allclose(laplacian(square, 4, 3)[:, 2], [0.5, -0.5, 0.5, -0.5], atol=1e-9)


def test_walks_that_come_back():
    nodes, count = 12, 6
    edges = random_graph(nodes, 0.2)[::2]  # most of them in one direction
    adjacency = np.vstack([matrix(edges, nodes)[:-1], np.zeros(nodes)])  # the last hears nobody
    edges = np.argwhere(adjacency.T)
    step = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
    powers = [np.diag(np.linalg.matrix_power(step, k)) for k in range(1, count + 1)]
    assert max(map(np.max, powers)) > 0.1
    np.testing.assert_allclose(random_walk(edges, nodes, count), np.stack(powers, 1), atol=1e-12)


def test_walks_on_more_nodes_than_are_walked_from_at_once():
    found = random_walk(path(1100), 1100, 2)
    inner = np.full(1100, 0.5)
    inner[[0, 1, -2, -1]] = 0.5, 0.75, 0.75, 0.5
    np.testing.assert_allclose(found, np.stack([np.zeros(1100), inner], 1), atol=1e-12)


def test_two_nodes_and_two_pairs():  # GRAPH-8
    one = np.array([[1, 0, 0, 0], [-1, 0, 0, 0]]) / np.sqrt(2)
    np.testing.assert_allclose(laplacian(path(2), 2, 4), one, atol=1e-12)
    pairs = undirected((0, 1), (2, 3))
    np.testing.assert_allclose(laplacian(pairs, 4, 4), np.concatenate([one, one]), atol=1e-12)
    np.testing.assert_allclose(random_walk(pairs, 4, 4), np.tile([0, 1, 0, 1], (4, 1)))


@each
@pytest.mark.parametrize("nodes", [0, 1, 3])
def test_no_edges(kind, nodes):
    found = encode(kind, np.zeros((0, 2), int), nodes, 3)
    np.testing.assert_array_equal(found, np.zeros((nodes, 3)))


@each
def test_graphs_side_by_side_are_what_each_is_alone(kind):  # GDATA-3
    sizes = (9, 14)
    first, second = (random_graph(nodes, 0.3) for nodes in sizes)
    found = encode(kind, np.concatenate([first, second + 9]), 23, 10)
    alone = [encode(kind, edges, n, 10) for edges, n in zip((first, second), sizes, strict=True)]
    np.testing.assert_allclose(found, np.concatenate(alone), atol=1e-9)


@each
def test_other_numbers_for_nodes_are_other_rows(kind):
    edges, order = random_graph(15, 0.2), np.random.default_rng(1).permutation(15)
    found = encode(kind, order[edges], 15, 4)[order]
    np.testing.assert_allclose(found, encode(kind, edges, 15, 4), atol=1e-9)


@each
def test_a_pair_listed_again_is_one(kind):
    edges = random_graph(10, 0.2)
    twice = np.concatenate([edges, edges[:5]])
    np.testing.assert_array_equal(encode(kind, twice, 10, 3), encode(kind, edges, 10, 3))


def test_they_are_a_task_s_last_features():
    """As they are: words alone are normalised."""
    plain, task = small(), placed(small(), "laplacian", 3)
    edges = np.stack([plain.graph.senders, plain.graph.receivers], axis=1)
    expected = [[[0.25, 0.75], [0, 0], [0, 1], [0, 0]], laplacian(edges, 4, 3)]
    for batch in (task.split("train", {"seed": 0}), task.split("test", {"seed": 0})):
        words = jax.tree.map(lambda a: a[0], batch.inputs[0])
        close(jax.jit(lambda words: words @ jnp.eye(5))(words), np.concatenate(expected, axis=1))
    assert task.about["positions"] == "laplacian (3)" and "positions" not in plain.about


def test_signs_are_drawn_for_every_step_and_seed():
    """Of a path of three nodes, which has two positions."""
    task = placed(small(), "laplacian", 2)
    run = jax.jit(jax.vmap(lambda *ids: task.batch({"seed": ids[0]}, ids[1]).inputs[0].weights))
    seeds, steps = jnp.repeat(jnp.arange(2), 32), jnp.tile(jnp.arange(32), 2)
    found, plain = np.asarray(run(seeds, steps)), np.asarray(task.features.weights)
    np.testing.assert_array_equal(run(seeds, steps), found)
    np.testing.assert_array_equal(found[:, :-8], np.tile(plain[:-8], (64, 1, 1)))
    found, plain = found[:, -8:].reshape(64, 4, 2), plain[-8:].reshape(4, 2)
    signs = np.sign(found[:, 0] * plain[0])
    np.testing.assert_array_equal(found, signs[:, None] * plain)
    assert len(np.unique(signs, axis=0)) == 4 and np.abs(signs).min() == 1
    assert (signs[:32] != signs[32:]).any()


def test_chances_have_signs_of_their_own():
    task = placed(small(), "random_walk", 3)
    for step in range(4):
        features = task.batch({"seed": 0}, step).inputs[0]
        np.testing.assert_array_equal(features.weights, task.features.weights)


def test_cora():  # GDATA-6
    """Of one data set, each option in turn."""
    plain = Citation()
    for kind in KINDS:
        task = Citation(positions=kind, dimensions=4)
        assert task.about["positions"] == f"{kind} (4)"
        assert task.features.shape == (2708, 1433 + 4)
        values = np.asarray(task.features.weights)[-4 * 2708 :, 0].reshape(2708, 4)
        edges = np.stack([task.graph.senders, task.graph.receivers], axis=1)
        np.testing.assert_allclose(values, KINDS[kind](edges, 2708, 4), atol=1e-6)
        assert np.isfinite(values).all() and np.abs(values).max() > 0.1
        weights = np.asarray(task.features.weights)[: -4 * 2708]
        np.testing.assert_array_equal(weights, plain.features.weights)


def test_own_graphs_have_them_too(tmp_path):
    """A graph to predict on has its own."""
    for name, edges in (("one", ["a,b", "b,c"]), ("other", ["a,c"])):
        (tmp_path / name).mkdir()
        nodes = ["a,x,train,1", "b,y,validation,2", "c,x,test,4"]
        for file, head, rows in (
            ("nodes", "id,label,split,size", nodes), ("edges", "source,target", edges)
        ):  # fmt: skip
            (tmp_path / name / f"{file}.csv").write_text("\n".join([head, *rows, ""]))
    task = OwnGraph(str(tmp_path / "one"), positions="random_walk", dimensions=2)
    places = lambda words: words.weights.reshape(-1)[-6:].reshape(3, 2).tolist()
    assert places(task.features) == [[0, 0.5], [0, 1], [0, 0.5]]
    _, batch = task.read(str(tmp_path / "other"), {"seed": 0})
    assert places(batch.inputs[0]) == [[0, 1], [0, 0], [0, 1]]
    assert task.features.shape == batch.inputs[0].graph.shape == (3, 3)


def test_no_such_positions():
    expected = "task.positions = 'typo': expected one of 'none', 'laplacian', 'random_walk'"
    with pytest.raises(ValueError, match=expected):
        placed(small(), "typo", 3)
