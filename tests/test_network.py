"""What networks share: what lies between layers, and how answers are read off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, normal, on, same

from models import GAT, GCN, MLP, SAGE, MessagePassing
from models.graph import Sparse
from models.layers import Linear, Norm
from models.network import Unfit

NODES, FEATURES, OUT, WIDTH = 5, 4, 3, 16
# Two graphs, a path of three nodes and a pair, side by side.
RECEIVERS, SENDERS = jnp.array([0, 1, 1, 2, 3, 4]), jnp.array([1, 0, 2, 1, 4, 3])
GRAPH = Sparse(SENDERS, RECEIVERS, (NODES, NODES))
WHOLE = Sparse(jnp.arange(NODES), jnp.array([0, 0, 0, 1, 1]), (2, NODES))


def alone(params, name, x):
    return Linear(params[name]["kernel"].shape[-1]).apply({"params": params[name]}, x)


def test_a_residual_adds_what_a_hidden_layer_hears():
    x, model = normal(NODES, FEATURES), MLP(OUT, WIDTH, depth=3, residual=True)

    def by_hand(params, x):
        p = {name: layer["linear"] for name, layer in params["params"].items()}
        x = jax.nn.relu(alone(p, "layer_0", x))
        return alone(p, "layer_2", x + jax.nn.relu(alone(p, "layer_1", x)))

    same(on(model, GRAPH), by_hand, filled(model, x, GRAPH), x)


def test_embedded_features_are_added_too():
    x, model = normal(NODES, FEATURES), MLP(OUT, WIDTH, depth=2, residual=True, embed=True)

    def by_hand(params, x):
        p = params["params"]
        x = alone(p, "embed", x)
        x = x + jax.nn.relu(alone(p["layer_0"], "linear", x))
        return alone(p["layer_1"], "linear", x)

    same(on(model, GRAPH), by_hand, filled(model, x, GRAPH), x)


POOLS = {"sum": jnp.sum, "mean": jnp.mean, "max": jnp.max}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("readout", ["last", "linear", "mlp", "jump"])
def test_graphs_are_pooled_from_their_nodes(pool, readout):
    x, model = normal(NODES, FEATURES), MLP(OUT, WIDTH, depth=2, pool=pool, readout=readout)
    pooled = lambda x: jnp.stack([POOLS[pool](part, axis=0) for part in (x[:3], x[3:])])

    def by_hand(params, x):
        p = params["params"]
        first = jax.nn.relu(alone(p["layer_0"], "linear", x))
        second = alone(p["layer_1"], "linear", first)
        if readout == "last":
            return pooled(second)
        second = jax.nn.relu(second)
        if readout == "jump":
            steps = enumerate([x, first, second])
            return sum(alone(p, f"jump_{i}", pooled(x)) for i, x in steps)
        hidden = pooled(second)
        for name in ("read_1", "read_2") if readout == "mlp" else ():
            hidden = jax.nn.relu(alone(p, name, hidden))
        return alone(p, "read", hidden)

    ours = lambda params, x: model.apply(params, x, GRAPH, asked=WHOLE)
    same(ours, by_hand, filled(model, x, GRAPH), x)


def test_batch_statistics_are_those_of_real_nodes():  # EVAL-2, EVAL-3
    x, mask = normal(NODES, FEATURES), jnp.arange(NODES) < 3
    model = GCN(OUT, WIDTH, norm="batch")
    variables = model.init(jax.random.key(0), x, GRAPH, None, mask)
    run = jax.jit(
        lambda x, train: model.apply(
            variables, x, GRAPH, None, mask, train=train, mutable=["batch_stats"]
        ),
        static_argnums=1,
    )
    other = x.at[3:].multiply(1e3)
    (one, moved), (same_one, also) = run(x, True), run(other, True)
    close(one[:3], same_one[:3])
    jax.tree.map(close, moved, also)
    still, kept = run(x, False)
    jax.tree.map(np.testing.assert_array_equal, kept["batch_stats"], variables["batch_stats"])
    assert np.isfinite(one).all() and np.abs(one[:3] - still[:3]).max() > 0.01


def test_batch_norm_by_hand():
    x, mask = normal(NODES, FEATURES), jnp.arange(NODES) < 3
    value, new = Norm("batch").apply(
        Norm("batch").init(jax.random.key(0), x, mask, True), x, mask, True, mutable="batch_stats"
    )
    mean, var = x[:3].mean(0), x[:3].var(0)
    close(value[:3], (x[:3] - mean) / np.sqrt(var + 1e-5), 1e-4)
    close(new["batch_stats"]["BatchNorm_0"]["mean"], 0.1 * mean)


@pytest.mark.parametrize("rows", [0, 3])
def test_where_nothing_is_batch_statistics_are_numbers(rows):  # EVAL-3
    """As of a batch of graphs in which nobody hears anybody."""
    x, mask, norm = normal(rows, FEATURES), jnp.zeros(rows, bool), Norm("batch")
    known = norm.init(jax.random.key(0), normal(2, FEATURES), None, False)
    value, new = norm.apply(known, x, mask, True, mutable="batch_stats")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((value, new)))


@pytest.mark.parametrize(
    "model, setting",
    [(GCN, "readout"), (GCN, "pool"), (MessagePassing, "aggregate"), (SAGE, "aggregate")],
)
def test_a_setting_that_cannot_be(model, setting):
    with pytest.raises(ValueError, match=f"{setting} = 'typo': expected one of"):
        model(OUT, **{setting: "typo"})


def test_a_norm_that_cannot_be():
    with pytest.raises(ValueError, match="norm = 'typo': expected 'none', 'batch' or 'layer'"):
        Norm("typo")


def test_what_edges_carry_must_be_of_use():
    x, edges = normal(NODES, FEATURES), normal(6, 2)
    for model, why in ((GAT(OUT), "GAT has no use for what edges"), (GCN(OUT), "not 2 numbers")):
        with pytest.raises(Unfit, match=why):
            jax.eval_shape(model.init, jax.random.key(0), x, GRAPH, edges)
