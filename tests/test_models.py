"""The node classifiers compute what their papers say, and stand what graphs and configs do."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from draws import close, filled, normal, on, pullback, same, sparse

from models import GAT, GCN, GIN, MLP, SAGE, ChebNet, GATv2, MessagePassing, MoNet
from models.attention import Attention
from models.dropout import counter_key
from models.gat import GATLayer
from models.graph import Dense, Matrix
from models.layers import Block

# 0 - 1 - 2 and 1 - 3: who hears whom, besides themselves.
STAR = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]], bool)
NODES, FEATURES, OUT = 4, 5, 3


KINDS = {"dense": lambda mask: Dense(jnp.asarray(mask)), "sparse": sparse}
both = pytest.mark.parametrize("kind", KINDS)


@functools.partial(jax.jit, static_argnames="model")
def forward(model, params, x, graph):
    return model.apply(params, x, graph)


@functools.partial(jax.jit, static_argnames="model")
def training(model, params, x, graph, seed=0):
    """The output with dropout, and the first attention that is shown."""
    rngs = {"dropout": counter_key(jax.random.key(seed))}
    value, sown = model.apply(params, x, graph, train=True, rngs=rngs, mutable=["intermediates"])
    return value, jax.tree.leaves(sown["intermediates"].get("attention"))


@functools.partial(jax.jit, static_argnames="model")
def forward_and_back(model, params, x, graph):
    return pullback(on(model, graph), params, x)


def finite(tree):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


def bag_of_words(kind):
    """The features as a Matrix, and the array that a Matrix on its graph stands for."""
    mask = np.random.default_rng(5).random((NODES, FEATURES)) < 0.5
    edges = normal(NODES, FEATURES, 1, seed=6)

    def array(matrix):
        if kind == "dense":
            return jnp.where(mask, matrix.weights[..., 0], 0)
        return jnp.zeros(mask.shape).at[mask].set(matrix.weights[:, 0])

    return Matrix(KINDS[kind](mask), edges[mask] if kind == "sparse" else edges), array


MODELS = {
    "gat": GAT(OUT, width=2, heads=3, out_heads=2, residual=True),
    "gcn": GCN(OUT, width=4),
    "mlp": MLP(OUT, width=4),
    "chebnet": ChebNet(OUT, width=8),
    "gatv2": GATv2(OUT, width=2, heads=3, out_heads=2),
    "gin": GIN(OUT, width=4, norm="none"),
    "message": MessagePassing(OUT, width=4, aggregate="max"),
    "monet": MoNet(OUT, width=4),
    "sage": SAGE(OUT, width=4, aggregate="pool"),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
BLOCKS = {norm: Block(Attention(FEATURES), hidden=4, norm=norm) for norm in ("pre", "post")}


def test_gat_by_the_paper_s_equations():
    x, graph = normal(NODES, FEATURES), sparse(STAR)
    model = GAT(OUT, width=2, heads=3, out_heads=2, slope=0.1)
    params = filled(model, x, graph)

    def layer(p, x):
        heads = []
        for head, bias in enumerate(p["bias"]):
            h = x @ p["kernel"][:, head]
            receive, send = (
                h @ p[f"{side}_kernel"][:, head, 0] + p[f"{side}_bias"][head]
                for side in ("receive", "send")
            )
            score = receive[:, None] + send
            powers = (STAR + np.eye(NODES)) * jnp.exp(jnp.where(score > 0, score, 0.1 * score))
            heads.append(powers / powers.sum(1, keepdims=True) @ h + bias)
        return jnp.stack(heads, 1)

    def paper(params, x):
        first, second = (params["params"][f"layer_{i}"] for i in range(2))
        hidden = layer(first, x).reshape(NODES, -1)
        hidden = jnp.where(hidden > 0, hidden, jnp.expm1(hidden))
        return layer(second, hidden).mean(1)

    same(on(model, graph), paper, params, x)


def test_gcn_by_the_paper_s_equation():
    x, graph, model = normal(NODES, FEATURES), sparse(STAR), MODELS["gcn"]
    heard = STAR + np.eye(NODES)
    scale = np.diag(heard.sum(1) ** -0.5)
    mix = scale @ heard @ scale

    def paper(params, x):
        first, second = (params["params"][f"layer_{i}"]["linear"]["kernel"] for i in range(2))
        return mix @ jnp.maximum(mix @ x @ first, 0) @ second

    same(on(model, graph), paper, filled(model, x, graph), x)


def test_mlp_by_hand_whatever_the_graph():
    x, model = normal(NODES, FEATURES), MODELS["mlp"]

    def by_hand(params, x):
        first, second = (params["params"][f"layer_{i}"]["linear"] for i in range(2))
        hidden = jnp.maximum(x @ first["kernel"] + first["bias"], 0)
        return [hidden @ second["kernel"] + second["bias"]] * 3

    graphs = None, sparse(STAR), Dense(jnp.asarray(~STAR))
    ours = lambda params, x: [on(model, graph)(params, x) for graph in graphs]
    same(ours, by_hand, filled(model, x, None), x)


@models
def test_a_model_is_the_same_on_a_mask_and_on_its_edges(model):
    x = normal(NODES, FEATURES)
    params = filled(model, x, sparse(STAR))
    same(*(on(model, make(STAR)) for make in KINDS.values()), params, x)


@both
@models
def test_sparse_features_are_those_features(kind, model):
    (matrix, array), graph = bag_of_words(kind), sparse(STAR)
    stored = lambda params, edges: model.apply(params, matrix.replace(weights=edges), graph)
    spread = lambda params, edges: model.apply(params, array(matrix.replace(weights=edges)), graph)
    same(stored, spread, filled(model, array(matrix), graph), matrix.weights)


@pytest.mark.parametrize(
    "model, count",
    [
        # kernel, two halves of the score (kernel and bias) and bias: 1433 * 64 + 2 * (64 + 8) + 64
        # = 91,920 of the first layer, 64 * 7 + 2 * (7 + 1) + 7 = 471 of the second.
        (GAT(out=7), 92_391),
        (GCN(out=7), 1433 * 16 + 16 * 7),  # 23,040
        (MLP(out=7), 1433 * 16 + 16 + 16 * 7 + 7),  # 23,063
        (ChebNet(out=7, order=2), 2 * (1433 * 16 + 16 * 7) + 16 + 7),
        # two projections with biases, a score, and biases
        (GATv2(out=7), 2 * (1433 * 64 + 64) + 128 + 2 * (64 * 7 + 7) + 14),
        (MessagePassing(out=7, width=16), 2 * 1433 * 16 + 16 + 2 * 16 * 7 + 7),
        # of each layer the map of 2 degrees to 2 coordinates, 3 means and 3 deviations of these
        (MoNet(out=7), 3 * (1433 * 16 + 16 * 7) + 16 + 7 + 2 * (2 * 2 + 2 + 2 * 3 * 2)),
        (SAGE(out=7, width=16), 2 * 1433 * 16 + 16 + 2 * 16 * 7 + 7),
    ],
    ids=lambda known: known if isinstance(known, int) else type(known).__name__,
)
def test_parameters_on_cora(model, count):
    x = jax.ShapeDtypeStruct((2708, 1433), jnp.float32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), x, Dense(jnp.ones((2708, 2708), bool)))
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)) == count


@both
@pytest.mark.parametrize("model", (MODELS | BLOCKS).values(), ids=MODELS | BLOCKS)
def test_without_edges_the_own_part_remains(kind, model):  # GRAPH-1
    """What a node classifier makes of a node by itself; a block's own part is the residual."""
    x, graph = normal(2, FEATURES), KINDS[kind](np.zeros((2, 2), bool))

    def alone(params, x):
        if model in MODELS.values():
            node = Dense(jnp.zeros((1, 1), bool))
            return jnp.concatenate([on(model, node)(params, x[i : i + 1]) for i in (0, 1)])
        bias = params["params"]["mixer"]["out"]["bias"]
        return model.clone(mixer=lambda *_: bias).apply(params, x, graph)

    value, gradients = same(on(model, graph), alone, filled(model, x, graph), x)
    assert value.shape == (2, FEATURES if model in BLOCKS.values() else OUT)
    assert finite((value, gradients))


@both
@pytest.mark.parametrize("model", (MODELS | BLOCKS).values(), ids=MODELS | BLOCKS)
def test_a_graph_may_have_no_nodes(kind, model):
    """With dense features and, in node classifiers, sparse ones; the gradients are zero."""
    x, graph = jnp.zeros((0, FEATURES)), KINDS[kind](np.zeros((0, 0), bool))
    weights = jnp.zeros((0, FEATURES, 1) if kind == "dense" else (0, 1))
    words = Matrix(KINDS[kind](np.zeros((0, FEATURES), bool)), weights)
    params = filled(model, x, graph)
    for features, out in [(x, FEATURES)] if isinstance(model, Block) else [(x, OUT), (words, OUT)]:
        value, gradients = forward_and_back(model, params, features, graph)
        assert value.shape == (0, out)
        assert not any(leaf.any() for leaf in jax.tree.leaves(gradients[0]))


@both
def test_a_layer_gives_its_bias_to_whom_nobody_speaks(kind):  # GRAPH-2
    mask = STAR.copy()
    mask[2] = mask[:, 2] = False
    x, graph, model = normal(NODES, FEATURES), KINDS[kind](mask), GATLayer(2, 3)
    params = filled(model, x, graph)
    value, gradients = forward_and_back(model, params, x, graph)
    np.testing.assert_array_equal(value[2], params["params"]["bias"].ravel())
    assert finite(gradients) and np.abs(value[0] - value[2]).max() > 0.1


def test_training_survives_when_nearly_all_attention_is_dropped():  # GRAPH-9
    x, targets = normal(2, FEATURES), jnp.arange(2)
    graph = sparse(~np.eye(2, dtype=bool))
    model, adam = GAT(2, width=4, heads=2, attention_dropout=0.99), optax.adam(0.01)
    params = filled(model, x, graph)

    def step(state, key):
        params, opt = state

        def loss(params):
            logits = model.apply(params, x, graph, train=True, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, opt = adam.update(gradients, opt)
        return (optax.apply_updates(params, updates), opt), value

    keys = jax.random.split(counter_key(jax.random.key(0)), 500)
    state, losses = jax.jit(lambda state: jax.lax.scan(step, state, keys))(
        (params, adam.init(params))
    )
    assert finite((state, losses))
    assert len(np.unique(losses)) > 250


@pytest.mark.parametrize("model", (MODELS | BLOCKS).values(), ids=MODELS | BLOCKS)
def test_a_node_without_features_gives_zeros(model):  # GRAPH-10
    """Freshly initialised and unheard; through layer normalisation too."""
    x = normal(NODES, FEATURES).at[3].set(0)
    mask = STAR | np.eye(NODES, dtype=bool)
    mask[3] = np.arange(NODES) == 3
    graph = sparse(mask)
    params = jax.jit(model.init)(counter_key(jax.random.key(0)), x, graph)
    value, gradients = forward_and_back(model, params, x, graph)
    np.testing.assert_array_equal(value[3], 0)
    assert finite(gradients) and np.abs(value[:3]).max() > 0.1


@models
def test_evaluation_is_the_same_every_time(model):
    rates = {name: 0.5 for name in model.__dataclass_fields__ if name.endswith("dropout")}
    model, x, graph = model.clone(**rates), normal(NODES, FEATURES), sparse(STAR)
    params = filled(model, x, graph)
    first, second = (forward(model, params, x, graph) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    one, again, other = (training(model, params, x, graph, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert min(np.abs(one - first).max(), np.abs(one - other).max()) > 0.01


SHARED = dict(out=4, width=3, depth=3, dropout=0.5, norm="layer", embed=True, readout="mlp")
HEADS = dict(heads=1, out_heads=3, attention_dropout=0.5, slope=0.9, self_loops=False)
OPTIONS = {
    GAT: HEADS | dict(value_dropout=0.5),
    GATv2: HEADS | dict(share=True, bias=False),
    GCN: {},
    MLP: {},
    MessagePassing: dict(aggregate="mean"),
    ChebNet: dict(order=2),
    GIN: dict(learn_epsilon=True, readout="last"),
    MoNet: dict(kernels=2, coordinates=3),
    SAGE: dict(aggregate="gcn", sample=1, normalize=False),
}


@pytest.mark.parametrize(
    "model, option", [(model, option) for model in OPTIONS for option in SHARED | OPTIONS[model]]
)
def test_every_option_changes_something(model, option):  # CONFIG-5
    options = SHARED | OPTIONS[model]
    elsewhere = {"parent", "name", "residual", "pool"}  # tests/test_network.py has the latter two
    assert set(options) == set(model.__dataclass_fields__) - elsewhere
    x, graph = normal(NODES, FEATURES), sparse(STAR)
    usual = model(out=OUT, **{GAT: dict(width=2, heads=2), GIN: dict(norm="none")}.get(model, {}))
    other = usual.clone(**{option: options[option]})
    params, others = filled(usual, x, graph), filled(other, x, graph)
    if jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, others):
        outputs = [training(m, params, x, graph)[0] for m in (usual, other)]
        assert np.abs(outputs[0] - outputs[1]).max() > 0.01
    else:
        assert option not in ("dropout", "attention_dropout", "value_dropout", "slope", "sample")


@pytest.mark.parametrize("kind", ["array", *KINDS])
def test_each_head_drops_the_input_by_itself(kind):
    x = normal(NODES, FEATURES) if kind == "array" else bag_of_words(kind)[0]
    graph, model = sparse(STAR | np.eye(NODES, dtype=bool)), GATLayer(2, 2, dropout=0.5)
    params = jax.tree.map(jnp.ones_like, filled(model, x, graph))
    first, second = np.split(forward(model, params, x, graph), 2, axis=1)
    close(first, second)
    first, second = np.split(training(model, params, x, graph)[0], 2, axis=1)
    assert np.abs(first - second).max() > 0.1


@pytest.mark.parametrize("dropout", ["attention_dropout", "value_dropout"])
def test_dropout_after_the_softmax_leaves_the_scores_alone(dropout):
    """What is shown as attention sums to one, in training too; what is mixed does not."""
    x, graph, model = normal(NODES, FEATURES), sparse(STAR), GATLayer(2, 3, **{dropout: 0.5})
    params = filled(model, x, graph)
    (one, shown), (other, same) = (training(model, params, x, graph, seed) for seed in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, shown, same)
    close(graph.reduce(shown[-1]), np.ones((NODES, 3)))
    assert np.abs(one - other).max() > 0.1


def test_attention_loses_edges_and_values_lose_features():
    """In a graph of loops alone, whose weights are one."""
    x, graph = normal(16, FEATURES), sparse(np.zeros((16, 16), bool))
    usual = GAT(out=16, depth=1)
    params = filled(usual, x, graph)
    params["params"]["layer_0"]["bias"] *= 0
    still = forward(usual, params, x, graph)
    edges, features = (
        training(usual.clone(**{name: 0.5}), params, x, graph)[0] / still
        for name in ("attention_dropout", "value_dropout")
    )
    close(edges, np.tile(edges[:, :1], (1, 16)))
    for ratio in (edges, features):
        close(np.unique(np.round(ratio, 5)), [0, 2])
    assert (features.std(1) > 0.5).all()


@models
def test_features_of_every_hidden_layer_are_kept(model):
    x, graph = normal(NODES, FEATURES), sparse(STAR)
    _, sown = jax.eval_shape(
        lambda: model.apply(filled(model, x, graph), x, graph, mutable=["intermediates"])
    )
    features = sown["intermediates"]["features"]
    width = model.width * getattr(model, "heads", 1)
    assert [f.shape for f in features] == [(NODES, width)] * (
        model.depth - (model.readout == "last")
    )
