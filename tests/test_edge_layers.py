"""Layers in which edges have features of their own: their formulas, and the identity that a graph
Transformer's layer is a Transformer's on the complete graph."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, normal, same

from models import GatedGCN, GraphTransformer
from models.attention import Attention
from models.graph import Dense, Sparse
from models.graph_transformer import GraphTransformerLayer
from models.layers import Block
from models.network import Unfit

NODES, FEATURES, OUT, WIDTH, HEADS = 5, 3, 2, 4, 2
A = np.random.default_rng(3).random((NODES, NODES)) < 0.5
A[3] = False  # who hears nobody
RECEIVERS, SENDERS = np.nonzero(A)
GRAPH = Sparse(jnp.asarray(SENDERS), jnp.asarray(RECEIVERS), A.shape)
X, CARRIED = normal(NODES, FEATURES), normal(NODES, NODES, 2, seed=5)
EDGES = CARRIED[RECEIVERS, SENDERS]


def dense(p, x):
    kernel = p["kernel"].reshape(x.shape[-1], -1)
    return x @ kernel + p["bias"].ravel() if "bias" in p else x @ kernel


def layer_norm(p, x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x * p["LayerNorm_0"]["scale"] + p["LayerNorm_0"]["bias"]


@pytest.mark.parametrize("carried", [False, True])
def test_gated_gcn(carried):
    model = GatedGCN(OUT, width=WIDTH, depth=1 + carried, norm="none", readout="linear")
    edges, all_pairs = (EDGES, CARRIED) if carried else (None, jnp.ones((NODES, NODES, 1)))

    def by_hand(params, x):
        p = params["params"]
        h, e = dense(p["embed"], x), dense(p["embed_edges"], all_pairs)
        for i in range(model.depth):
            own = p[f"layer_{i}"]
            opened = dense(own["edge"], e) + dense(own["receive"], h)[:, None]
            opened = opened + dense(own["send"], h)[None]
            gates = jnp.where(A[..., None], jax.nn.sigmoid(opened), 0)
            heard = (gates * dense(own["value"], h)[None]).sum(1) / (gates.sum(1) + 1e-6)
            h = h + jax.nn.relu(dense(own["own"], h) + heard)
            e = e + jax.nn.relu(opened)
        return dense(p["read"], h)

    ours = lambda params, x: model.apply(params, x, GRAPH, edges)
    same(ours, by_hand, filled(model, X, GRAPH, edges), X)


@pytest.mark.parametrize("carried, clamp", [(False, 0.0), (True, 0.5)])
def test_graph_transformer(carried, clamp):
    model = GraphTransformer(
        OUT, WIDTH, heads=HEADS, depth=1 + carried, norm="layer", clamp=clamp, readout="linear"
    )
    edges = EDGES if carried else None

    def block(p, attention, mlp, x, h):
        x = layer_norm(p[attention], x + h)
        hidden = jax.nn.relu(dense(p[f"Dense_{mlp}"], x))
        after = f"Norm_{int(attention[-1]) + 1}"
        return layer_norm(p[after], x + dense(p[f"Dense_{mlp + 1}"], hidden))

    def by_hand(params, x):
        p = params["params"]
        h = dense(p["embed"], x)
        e = dense(p["embed_edges"], CARRIED) if carried else None
        for i in range(model.depth):
            own = p[f"layer_{i}"]
            mixer = own["mixer"]
            q, k, v = (dense(mixer[name], h) for name in ("query", "key", "value"))
            scores = q[:, None] * k[None] / np.sqrt(WIDTH // HEADS)  # [N, N, width]
            if carried:
                scores = scores * dense(mixer["edge"], e)
            summed = scores.reshape(NODES, NODES, HEADS, -1).sum(-1)
            summed = jnp.clip(summed, -clamp, clamp) if clamp else summed
            powers = jnp.where(A[..., None], jnp.exp(summed), 0)
            weights = powers / jnp.maximum(powers.sum(1, keepdims=True) + 1e-6 * bool(clamp), 1e-30)
            mixed = jnp.einsum("qkh,khd->qhd", weights, v.reshape(NODES, HEADS, -1))
            mixed = mixed.reshape(NODES, WIDTH)
            mixed = mixed @ mixer["out"]["kernel"].reshape(WIDTH, WIDTH) + mixer["out"]["bias"]
            if carried:  # edges come first, and name the norms and maps that come first
                e = block(own, "Norm_0", 0, e, dense(mixer["edge_out"], scores))
                h = block(own, "Norm_2", 2, h, mixed)
            else:
                h = block(own, "Norm_0", 0, h, mixed)
        return dense(p["read"], h)

    ours = lambda params, x: model.apply(params, x, GRAPH, edges)
    same(ours, by_hand, filled(model, X, GRAPH, edges), X)


@pytest.mark.parametrize("mask", [np.ones_like(A), A], ids=["complete", "some"])
def test_its_layer_is_a_transformer_s(mask):
    """With the same parameters; on any graph it is a Transformer under the graph's mask."""
    receivers, senders = np.nonzero(mask)
    graph, x = Sparse(senders, receivers, mask.shape), normal(NODES, WIDTH)
    ours = GraphTransformerLayer(WIDTH, HEADS, norm="layer")
    block = Block(Attention(WIDTH, HEADS), hidden=2 * WIDTH, norm="post")
    params = filled(block, x, Dense(jnp.asarray(mask)))

    def as_layer(params, x):
        p = dict(params["params"])
        for i in range(2):
            p[f"Norm_{i}"] = {"LayerNorm_0": p.pop(f"LayerNorm_{i}")}
        return ours.apply({"params": p}, x, graph, None)[0]

    theirs = lambda params, x: block.apply(params, x, Dense(jnp.asarray(mask)))
    same(as_layer, theirs, params, x)


MODELS = {
    "gated": GatedGCN(OUT, width=WIDTH, depth=1, readout="linear"),
    "transformer": GraphTransformer(OUT, width=WIDTH, heads=HEADS, depth=1, readout="linear"),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def variables(model, *inputs):
    """Random parameters, and statistics that are no one's."""
    shapes = jax.eval_shape(model.init, jax.random.key(0), *inputs)["batch_stats"]
    return filled(model, *inputs) | {
        "batch_stats": jax.tree.map(lambda a: jnp.full(a.shape, 0.5), shapes)
    }


@models
def test_other_numbers_for_nodes_are_other_places_of_the_same(model):
    order = np.random.default_rng(2).permutation(NODES)
    moved = A[np.ix_(order, order)]
    receivers, senders = np.nonzero(moved)
    edges = CARRIED[order][:, order][receivers, senders]
    run = jax.jit(functools.partial(model.apply, variables(model, X, GRAPH, EDGES)))
    found = run(X[order], Sparse(senders, receivers, A.shape), edges)
    close(run(X, GRAPH, EDGES)[order], found)
    assert found.std(0).min() > 0.01


@models
def test_padding_changes_nothing(model):  # GDATA-3
    """In training too, whose batch statistics are those of nodes and edges that are there."""
    known = variables(model, X, GRAPH, EDGES)
    x = jnp.concatenate([X, 9 * jnp.ones((2, FEATURES))])
    graph = Sparse(
        jnp.append(GRAPH.senders, 6), jnp.append(GRAPH.receivers, 5), (NODES + 2,) * 2,
        jnp.arange(len(RECEIVERS) + 1) < len(RECEIVERS),
    )  # fmt: skip
    edges, mask = jnp.concatenate([EDGES, 9 * jnp.ones((1, 2))]), jnp.arange(NODES + 2) < NODES
    run = jax.jit(
        lambda train, *inputs: model.apply(
            known, *inputs, train=train, mutable="batch_stats", rngs={"dropout": jax.random.key(0)}
        ),
        static_argnums=0,
    )
    for train in (False, True):
        alone, statistics = run(train, X, GRAPH, EDGES, jnp.ones(NODES, bool))
        padded, others = run(train, x, graph, edges, mask)
        close(padded[:NODES], alone)
        assert alone.std(0).min() > 0.01
        jax.tree.map(close, others, statistics)


@models
def test_two_nodes_without_edges(model):  # GRAPH-1
    """In training too, where statistics of no edges would be no numbers."""
    none, edges = jnp.zeros(2, int), jnp.ones((2, 2))
    x, graph = X[:2], Sparse(none, none, (2, 2), jnp.zeros(2, bool))
    known, rngs = variables(model, x, graph, edges), {"dropout": jax.random.key(0)}

    def total(params):
        inputs = known | {"params": params}, x, graph, edges
        out, new = model.apply(*inputs, train=True, mutable="batch_stats", rngs=rngs)
        still = model.apply(*inputs)
        return (out + still).sum(), (out, still, new)

    slope, results = jax.jit(jax.grad(total, has_aux=True))(known["params"])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((slope, results)))
    assert results[1].shape == (2, OUT) and np.abs(slope["embed"]["kernel"]).max() > 1e-3


@models
def test_a_mask_and_its_edges(model):
    known, graph = variables(model, X, GRAPH, EDGES), Dense(jnp.asarray(A))
    sparse = lambda params, x: model.apply(known | params, x, GRAPH, EDGES)
    dense = lambda params, x: model.apply(known | params, x, graph, CARRIED)
    same(sparse, dense, {"params": known["params"]}, X)


@models
def test_a_node_without_features_gives_zeros(model):  # GRAPH-10
    """Of biases that are zero, as they are at first; unheard, and normalised."""
    model = model.clone(norm="layer")
    mask = jnp.asarray(A).at[:, 3].set(False)  # nor does it hear anybody
    graph, x = Dense(mask), X.at[3].set(0)
    zero = lambda path, leaf: leaf * (path[-1].key != "bias")
    params = jax.tree_util.tree_map_with_path(zero, filled(model, x, graph))
    value = jax.jit(model.apply)(params, x, graph)
    np.testing.assert_array_equal(value[3], 0)
    assert np.isfinite(value).all() and np.abs(value[:3]).max() > 0.01


OPTIONS = {
    "gated": dict(norm="none", residual=False, dropout=0.5),
    "transformer": dict(norm="layer", residual=False, dropout=0.5, heads=1, clamp=0.1),
}


@models
def test_every_option_changes_something(model):  # CONFIG-5
    """Besides those that tests/test_network.py has of any network."""
    options = OPTIONS["gated" if isinstance(model, GatedGCN) else "transformer"]
    elsewhere = {"parent", "name", "out", "width", "depth", "embed", "readout", "pool"}
    assert set(options) == set(model.__dataclass_fields__) - elsewhere
    others = [model] + [model.clone(**{name: value}) for name, value in options.items()]
    known = [filled(other, X, GRAPH, EDGES) for other in others]
    train = lambda other, params: other.apply(
        params, X, GRAPH, EDGES, train=True, mutable="batch_stats",
        rngs={"dropout": jax.random.key(0)},
    )[0]  # fmt: skip
    usual, *changed = jax.jit(lambda known: list(map(train, others, known)))(known)
    for name, value in zip(options, changed, strict=True):
        assert np.abs(usual - value).max() > 0.01, name


def test_features_of_another_width_are_embedded():
    with pytest.raises(Unfit, match=r"embed = False: x \[5, 3\] is not of width = 4"):
        model = GraphTransformer(OUT, width=WIDTH, heads=HEADS, embed=False)
        jax.eval_shape(model.init, jax.random.key(0), X, GRAPH)
    with pytest.raises(ValueError, match="width=4 is not a multiple of heads=3"):
        GraphTransformer(OUT, width=4, heads=3)
    with pytest.raises(ValueError, match="readout = 'last'"):
        GraphTransformer(OUT, readout="last")
