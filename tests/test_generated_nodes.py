"""The karate club and block models are what they say, and hearing neighbours helps on them."""

import functools

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

import experiment
import optimizer
from configs import gcn_karate, gcn_sbm, mlp_sbm
from data.karate import KarateClub
from data.sbm import StochasticBlockModel, links, pair

SBM = functools.partial(StochasticBlockModel, splits=1)


def weights(task):
    """The matrix W [N, N] of who hears whom, and how much."""
    found = np.zeros(task.graph.shape)
    found[task.graph.receivers, task.graph.senders] = task.weights[:, 0]
    return found


def dense(task):
    words, found = task.features.graph, np.zeros(task.features.shape, np.float32)
    found[words.receivers, words.senders] = task.features.weights[:, 0]
    return found


def blocks(task):
    """Where in W both ends are of one block."""
    labels = np.asarray(task.labels)
    return labels[:, None] == labels


def accuracy(config):
    """Of the config's runs on their test splits, on average."""
    model, task = experiment.setup(config)
    hyper = jax.tree.map(jnp.float32, optimizer.hyper(config.optimizer))

    def trained(task, run):
        state = experiment.init(config, model, task, run, hyper)
        step = lambda state, _: (experiment.step(config, model, task, state)[0], None)
        state, _ = jax.lax.scan(step, state, length=config.steps)
        scores, _, _ = experiment.evaluate(model, task, run, state.params, state.vars, "test")
        return scores["accuracy"].value

    runs = jax.tree.map(jnp.asarray, task.runs(range(config.seeds)))
    return jax.jit(lambda task: jax.lax.map(lambda run: trained(task, run), runs).mean())(task)


# ---- The karate club


def test_the_club():
    task = KarateClub()
    assert task.graph.shape == (34, 34) and task.weights is None
    assert len(task.graph.senders) == 2 * 78 and len(task.inputs) == 2
    np.testing.assert_array_equal(dense(task), np.eye(34))
    assert task.facts.classes == ["Mr. Hi", "Officer"]
    labels, parts = np.asarray(task.labels), np.asarray(task.parts[0])
    assert np.bincount(labels).tolist() == [17, 17]
    assert labels[8] == 0  # the club that he joined, not his faction
    for part, members in enumerate(([0, 33], [1, 32])):
        assert np.flatnonzero(parts == part).tolist() == members
        assert labels[members].tolist() == [0, 1]
    assert (parts == 2).sum() == 30
    assert task.about["dataset"] == "karate" and len(task.about["checksum"]) == 64


def test_friendships_have_weights():  # GRAPH-6
    task, club = KarateClub(weighted=True), networkx.karate_club_graph()
    np.testing.assert_array_equal(weights(task), networkx.to_numpy_array(club))
    np.testing.assert_array_equal(weights(task), weights(task).T)
    assert weights(task)[0, 1] == 4 and len(task.inputs) == 3
    assert task.about == KarateClub().about


def test_two_labels_tell_the_others_club():
    config = gcn_karate.get_config()
    assert config.seeds == 20 and config.select.keep == "last"
    assert accuracy(config) >= config.expected.low == 0.95


# ---- Stochastic block models


def test_pairs_are_numbered():
    expected = [[i, j] for i in range(40) for j in range(i)]
    assert pair(np.arange(40 * 39 // 2)).tolist() == expected
    nodes = 1_000_000
    last = nodes * (nodes - 1) // 2 - 1
    ends = np.array([last - (nodes - 1), last - (nodes - 2), last])
    assert pair(ends).tolist() == [[nodes - 2, nodes - 3], [nodes - 1, 0], [nodes - 1, nodes - 2]]


def test_every_pair_has_its_probability():
    labels, draws = np.array([0, 0, 0, 1, 1]), 4000
    rng = np.random.default_rng(0)
    for within, between in ((0.3, 0.1), (0.1, 0.6), (0.2, 0), (1, 0.5)):
        count = np.zeros((5, 5))
        for _ in range(draws):
            found = links(rng, labels, within, between)
            assert len(np.unique(found, axis=0)) == len(found)
            count[tuple(found.T)] += 1
        chance = np.tril(np.where(labels[:, None] == labels, within, between), -1)
        spread = np.sqrt(draws * chance * (1 - chance))
        assert (np.abs(count - draws * chance) <= 4.5 * spread).all()


def test_few_edges_of_many_nodes_cost_little():
    labels = np.repeat(np.arange(10), 10_000)
    found = links(np.random.default_rng(0), labels, 2e-4, 1e-5)
    alike = np.equal(*labels[found].T)
    for count, pairs, chance in ((alike.sum(), 10 * 5e7, 2e-4), ((~alike).sum(), 45e8, 1e-5)):
        assert abs(count - pairs * chance) < 5 * np.sqrt(pairs * chance)


def test_without_chance():
    task = SBM(blocks=2, size=51, within=1, between=0, weighted=True)
    np.testing.assert_array_equal(weights(task) > 0, blocks(task) & ~np.eye(102, dtype=bool))
    task = SBM(blocks=3, size=51, within=0, between=1, weighted=True)
    np.testing.assert_array_equal(weights(task) > 0, ~blocks(task))
    assert len(SBM(within=0, between=0).graph.senders) == 0


def test_weights_are_heavier_within_blocks():  # GRAPH-6
    task = SBM(blocks=2, size=60, within=0.6, between=0.6, weighted=True)
    found, alike = weights(task), blocks(task)
    np.testing.assert_array_equal(found, found.T)
    assert found.min() == 0 and 0.9 < found.max() <= 1 and (found.diagonal() == 0).all()
    for where, mean in ((alike, 2 / 3), (~alike, 1 / 3)):  # of the larger and the smaller of two
        assert abs(found[where & (found > 0)].mean() - mean) < 0.03


def test_features():
    kind = functools.partial(SBM, blocks=3, size=200, within=0.01, between=0.01)
    labels = np.repeat(np.arange(3), 200)
    np.testing.assert_array_equal(dense(kind(features="none")), np.eye(600))
    np.testing.assert_array_equal(dense(kind(features="label", noise=0.0)), np.eye(3)[labels])
    noisy = dense(kind(features="label", noise=0.6))
    assert (noisy.sum(1) == 1).all()
    assert abs(noisy[np.arange(600), labels].mean() - (0.4 + 0.6 / 3)) < 0.06
    still = dense(kind(features="gaussian", noise=0.0))
    assert len(np.unique(still, axis=0)) == 3 and (still == still[200 * labels]).all()
    loud = dense(kind(features="gaussian", noise=3.0))
    own = loud - np.stack([loud[labels == label].mean(0) for label in range(3)])[labels]
    assert abs(own.std() - np.sqrt(0.9)) < 0.03


def test_a_graph_is_its_seed_s():
    usual = SBM(size=60)
    assert usual.about == SBM(size=60).about
    assert usual.about["dataset"] == "sbm 4x60" and usual.about["split"] == "random (1)"
    for changes in (dict(graph_seed=1), dict(within=0.09), dict(noise=2.0)):
        assert SBM(size=60, **changes).about["checksum"] != usual.about["checksum"]
    weighted = SBM(size=60, weighted=True)
    np.testing.assert_array_equal(weighted.graph.senders, usual.graph.senders)
    assert usual.weights is None and weighted.about == usual.about


def test_splits():  # GDATA-7
    task = StochasticBlockModel(blocks=3, size=60, splits=2)
    assert task.runs([5])["split_seed"].tolist() == [0, 1]
    labels, parts = np.asarray(task.labels), np.asarray(task.parts)
    for part in parts:
        for index, count in enumerate((20, 30, 10)):
            assert np.bincount(labels[part == index]).tolist() == [count] * 3
    assert (parts[0] != parts[1]).any()


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(blocks=1), "task.blocks = 1: expected 2 or more"),
        (dict(size=50), "task.size = 50: expected 51 or more: 50 are not tested"),
        (dict(within=1.5), "task.within = 1.5: expected 0 to 1"),
        (dict(between=-0.1), "task.between = -0.1: expected 0 to 1"),
        (dict(features="word"), "task.features = 'word': expected 'none', 'label' or 'gaussian'"),
        (dict(noise=-1.0), "task.noise = -1.0: expected 0 to inf"),
        (dict(features="label", noise=2.0), "task.noise = 2.0: expected 0 to 1"),
        (dict(graph_seed=-1), "task.graph_seed = -1: expected 0 or more"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be(changes, message):
    with pytest.raises(ValueError) as error:
        SBM(**changes)
    assert str(error.value) == message


def test_neighbours_tell_more_than_a_node_s_own_numbers():
    found = {}
    for name, file in {"gcn": gcn_sbm, "mlp": mlp_sbm}.items():
        config = file.get_config()
        config.task.splits = config.seeds = 2
        found[name] = accuracy(config)
    assert found["mlp"] > 0.5 and found["gcn"] > found["mlp"] + 0.15
