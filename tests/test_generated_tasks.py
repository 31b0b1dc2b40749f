"""The generated examples as tasks: what is asked of whom, and that models can learn it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import experiment
import optimizer
from configs import gat_lookup, gatv2_lookup
from data import DictionaryLookup, Influence, Motifs, SpanningTree
from data.example import checksum, in_order
from data.motifs import motifs

RUN = {"seed": jnp.int32(0)}
SIZES = dict(train=20, validation=4, test=6, batch_size=5)


def test_parts_are_in_order():
    assert {part: ids.tolist() for part, ids in in_order(3, 1, 2).items()} == {
        "train": [0, 1, 2],
        "validation": [3],
        "test": [4, 5],
    }


def test_a_checksum_tells_examples_apart():
    found = {checksum(motifs(4, seed=seed)) for seed in (0, 0, 1)}
    assert len(found) == 2


def test_an_edge_is_asked_about_once():
    task = SpanningTree(**SIZES)
    batches = task.split("test", RUN)
    asked = batches.inputs[-1]
    assert (asked.senders < asked.receivers)[np.asarray(batches.mask)].all()
    assert batches.mask.sum() == asked.mask.sum() / 2
    nodes = batches.inputs[3].sum()
    assert batches.targets[np.asarray(batches.mask)].sum() == nodes - SIZES["test"]  # of trees


def test_queries_alone_are_asked():
    task = DictionaryLookup(k=5, **SIZES)
    batch = jax.jit(task.batch)(RUN, jnp.int32(0))
    x, graph, _, mask, asked = batch.inputs
    assert asked is None and batch.mask.sum() == 5 * 5 and mask.sum() == 5 * 10
    entries = np.asarray(x[np.asarray(graph.senders)])
    queries = np.asarray(x[np.asarray(graph.receivers)])
    own = (entries[:, :5] == queries[:, :5]).all(1) & np.asarray(graph.mask)
    found = entries[own, 5:10].argmax(1)  # the value that goes with the key
    np.testing.assert_array_equal(found, batch.targets[np.asarray(graph.receivers)[own]])
    with pytest.raises(ValueError, match=r"task.k = 3 gives 6 graphs, expected 20 \+ 4 \+ 6"):
        DictionaryLookup(k=3, **SIZES)


def test_numbers_and_motifs_have_names():
    assert Influence(**SIZES, nodes=(9, 12)).facts.names == ["pagerank", "betweenness"]
    task = Motifs(**SIZES)
    assert task.facts.names == ["no triangle", "triangle"] and task.dims == {"out": 2}
    outputs = Influence(**SIZES, nodes=(9, 12))
    batches = outputs.split("test", RUN)
    found = jax.jit(outputs.measure)(2 * batches.targets, batches)
    assert {name: float(v) for name, v in found.items()} == pytest.approx(
        {"rank_correlation_pagerank": 1, "rank_correlation_betweenness": 1}, abs=1e-5
    )


def test_one_head_of_gatv2_learns_a_lookup_that_one_of_gat_does_not():
    """Of three keys, in a few hundred steps."""
    found = {}
    for config in (gatv2_lookup.get_config(), gat_lookup.get_config()):
        config.task.update(k=4, train=16, validation=4, test=4, batch_size=16)
        config.model.width = 32
        config.optimizer.learning_rate = 1e-2
        model, task = experiment.setup(config)
        hyper = jax.tree.map(jnp.float32, optimizer.hyper(config.optimizer))
        state = jax.jit(lambda: experiment.init(config, model, task, RUN, hyper))()  # noqa: B023
        step = lambda state, _: experiment.step(config, model, task, state)  # noqa: B023
        _, scores = jax.jit(lambda state: jax.lax.scan(step, state, length=300))(state)  # noqa: B023
        accuracy = scores["accuracy"]
        found[config.model.name] = float(accuracy.total[-1] / accuracy.weight[-1])
    assert found["GATv2"] > 0.95 and found["GAT"] < 0.7
