"""GraphSAGE by hand, and what it samples."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import filled, largest, mean, neighbours, normal, on, same, sparse

from models import SAGE
from models.dropout import counter_key
from models.graph import Dense, Sparse
from models.network import Unfit
from models.sage import sampled

NODES, FEATURES, OUT, WIDTH = 7, 5, 3, 4
A = neighbours(NODES)
A[4] = A[:, 4] = False  # nobody speaks to node 4
LOOPED = A | np.eye(NODES, dtype=bool)
X, GRAPH = normal(NODES, FEATURES), sparse(A)


def dense(p, x):
    return x @ p["kernel"] + p.get("bias", 0)


def one_layer(how, sample=0):
    return SAGE(OUT, depth=1, aggregate=how, sample=sample)


def in_training(model, graph, seed=0):
    rngs = {"dropout": counter_key(jax.random.key(seed))}
    return lambda params, x: model.apply(params, x, graph, train=True, rngs=rngs)


@pytest.mark.parametrize("how", ["mean", "pool", "gcn"])
def test_sage(how):
    model = SAGE(OUT, width=WIDTH, aggregate=how)

    def layer(p, x):
        if how == "gcn":
            return mean(LOOPED) @ dense(p["linear"], x)
        if how == "mean":
            return dense(p["own"], x) + dense(p["heard"], mean(A) @ x)
        said = jax.nn.relu(dense(p["pool"], x))
        return dense(p["own"], x) + dense(p["heard"], largest(A, said))

    def by_hand(params, x):
        x = jax.nn.relu(layer(params["params"]["layer_0"], x))
        x = x / jnp.sqrt(jnp.maximum(jnp.square(x).sum(1, keepdims=True), 1e-12))
        return layer(params["params"]["layer_1"], x)

    same(on(model, GRAPH), by_hand, filled(model, X, GRAPH), X, tolerance=1e-4)


def test_sage_by_an_lstm():
    """flax's own cell, over the neighbours in the order in which they are drawn."""
    model = one_layer("lstm", NODES)
    drawn = sampled(GRAPH, jax.random.key(0), NODES)
    rows = drawn.senders.reshape(NODES, NODES), drawn.mask.reshape(NODES, NODES)
    rows = [np.asarray(senders)[np.asarray(there)] for senders, there in zip(*rows, strict=True)]
    assert [sorted(row) for row in rows] == [np.flatnonzero(row).tolist() for row in A]

    def by_hand(params, x):
        p = params["params"]["layer_0"]
        names, gates = "ifgo", lambda a: jnp.split(a, 4, axis=-1)
        cell = {f"i{n}": {"kernel": k} for n, k in zip(names, gates(p["input"]["kernel"]))}  # noqa: B905
        biases = gates(p["input"]["bias"] + jnp.repeat(jnp.array([0.0, 1, 0, 0]), OUT))
        for n, k, b in zip(names, gates(p["state"]), biases, strict=True):
            cell[f"h{n}"] = {"kernel": k, "bias": b}
        last = []
        for row in rows:
            carry = (jnp.zeros(OUT), jnp.zeros(OUT))
            for node in row:
                carry, _ = nn.LSTMCell(OUT).apply({"params": cell}, carry, x[node])
            last.append(carry[1])
        return dense(p["own"], x) + dense(p["heard"], jnp.stack(last))

    same(on(model, GRAPH), by_hand, filled(model, X, GRAPH), X)


def test_a_sample_is_of_a_node_s_own_neighbours_and_any_of_them():
    masked = Sparse(GRAPH.senders, GRAPH.receivers, GRAPH.shape, GRAPH.senders != 0)
    draw = jax.jit(jax.vmap(lambda key: sampled(masked, key, 2)))
    found = draw(jax.random.split(jax.random.key(0), 400))
    heard = A & (np.arange(NODES) != 0)
    counts = np.zeros((NODES, NODES))
    for senders, there in zip(*map(np.asarray, (found.senders, found.mask)), strict=True):
        for node, (row, fine) in enumerate(zip(senders.reshape(-1, 2), there.reshape(-1, 2))):  # noqa: B905
            own = row[fine]
            assert len(own) == min(2, heard[node].sum()) and len(set(own)) == len(own)
            counts[node, own] += 1
    share = np.minimum(2, heard.sum(1, keepdims=True)) / np.maximum(heard.sum(1, keepdims=True), 1)
    assert not counts[~heard].any()
    assert np.abs(counts / 400 - share)[heard].max() < 0.13  # five deviations


@pytest.mark.parametrize("how", ["mean", "pool", "gcn"])
def test_a_sample_as_large_as_a_neighbourhood_is_all_of_it(how):
    most = A.sum(1).max()
    whole, model = (SAGE(OUT, width=WIDTH, aggregate=how, sample=size) for size in (0, int(most)))
    same(in_training(model, GRAPH), on(whole, GRAPH), filled(whole, X, GRAPH), X)


@pytest.mark.parametrize("how", ["mean", "pool", "gcn", "lstm"])
def test_training_hears_other_neighbours_every_time_and_evaluation_all(how):
    model = one_layer(how, 1)
    params = filled(model, X, GRAPH)
    run = jax.jit(lambda seed: in_training(model, GRAPH, seed)(params, X))
    draws = np.stack([run(seed) for seed in range(3)])
    several = A.sum(1) > 1
    assert (draws.std(0).max(1) > 0.01)[several].sum() > several.sum() / 2
    np.testing.assert_allclose(draws.std(0)[~several], 0, atol=1e-6)
    if how != "lstm":
        evaluated = (jax.jit(on(m, GRAPH))(params, X) for m in (model, one_layer(how)))
        np.testing.assert_array_equal(*evaluated)


def test_each_layer_draws_for_itself():
    """Node 0 hears all others, each known by its number: one of them in each of two layers."""
    count = 64
    everyone, eye = jnp.arange(1, count), jnp.eye(count)
    graph = Sparse(everyone, jnp.zeros_like(everyone), (count, count))
    layer = {"own": {"kernel": eye, "bias": jnp.zeros(count)}, "heard": {"kernel": eye}}
    model = SAGE(count, width=count, sample=1, normalize=False)
    params = {"params": {"layer_0": layer, "layer_1": layer}}
    found = jax.jit(in_training(model, graph))(params, eye)
    assert sorted(found[0])[-4:] == [0, 1, 1, 1] and (found[1:] == eye[1:]).all()


@pytest.mark.parametrize("how", ["mean", "pool", "lstm"])
def test_a_sample_where_there_are_no_edges(how):  # GRAPH-1
    x, graph, model = X[:2], sparse(np.zeros((2, 2), bool)), one_layer(how, 2)
    alone = lambda params, x: dense(params["params"]["layer_0"]["own"], x)
    same(in_training(model, graph), alone, filled(model, x, graph), x)


def test_what_cannot_be_sampled():
    with pytest.raises(ValueError, match="sample = 0: expected 1 or more for an LSTM"):
        SAGE(OUT, aggregate="lstm")
    with pytest.raises(Unfit, match="the graph is Dense"):
        jax.eval_shape(SAGE(OUT, sample=1).init, jax.random.key(0), X, Dense(jnp.asarray(A)))
