"""A Transformer is a graph network on the complete graph, and other things attention is."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, normal, on, same, sparse

from models import GAT, GCN
from models.attention import Attention, additive, cosine, dot
from models.dropout import counter_key
from models.gat import GATLayer
from models.graph import Dense, Sparse
from models.layers import Block

NODES, WIDTH, HEADS = 6, 4, 2
MASK = np.random.default_rng(0).random((NODES, NODES)) < 0.5
MASK[3] = False  # receiver 3 hears nobody
CAUSAL = np.tril(np.ones((8, 8), bool))


KINDS = {"dense": lambda mask: Dense(jnp.asarray(mask)), "sparse": sparse}
both = pytest.mark.parametrize("kind", KINDS)
norms = pytest.mark.parametrize("norm", ["pre", "post"])


@functools.partial(jax.jit, static_argnames="model")
def forward(model, params, *inputs):
    return model.apply(params, *inputs)


@functools.partial(jax.jit, static_argnames="model")
def forward_and_weights(model, params, *inputs):
    """The output, and the attention that is shown."""
    value, sown = model.apply(params, *inputs, mutable=["intermediates"])
    return value, sown["intermediates"]["attention"][0].weights


@functools.partial(jax.jit, static_argnames="model")
def training(model, params, *inputs, seed=0):
    rngs = {"dropout": counter_key(jax.random.key(seed))}
    return model.apply(params, *inputs, train=True, rngs=rngs)


def leaky(x):
    return nn.leaky_relu(x, 0.2)


class SelfAttention(nn.Module):
    """Attention called like every other node model."""

    heads: int = HEADS

    @nn.compact
    def __call__(self, x, graph):
        return Attention(WIDTH, self.heads)(x, x, graph)


def test_attention_is_the_same_on_a_mask_and_on_its_edges():
    """Of six nodes over five others."""
    model, x, y = Attention(WIDTH, HEADS), normal(NODES, 3), normal(5, 2)
    params, graphs = filled(model, x, y, Dense()), [make(MASK[:, :5]) for make in KINDS.values()]
    value, gradients = same(*(on(model, graph) for graph in graphs), params, x, y)
    close(value[3], params["params"]["out"]["bias"])  # it hears nobody
    unfelt = gradients[0]["params"]["key"].pop("bias")  # a shift of all the scores
    close(unfelt, jnp.zeros_like(unfelt))
    assert all(np.abs(leaf).max() > 1e-2 for leaf in jax.tree.leaves(gradients))


SCORES = {
    "dot": dot,
    "additive": lambda graph, q, k: additive(graph, q, k, jnp.ones(q.shape[-2:], q.dtype)),
    "cosine": cosine,
}
scores = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


@scores
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_any_score_is_the_same_on_a_mask_and_on_its_edges(score, dtype, tolerance):
    nodes = [normal(NODES, HEADS, WIDTH, dtype=dtype, seed=seed) for seed in range(3)]
    attention = lambda graph: lambda q, k, v: graph.mix(graph.softmax(score(graph, q, k)), v)
    same(*(attention(make(MASK)) for make in KINDS.values()), *nodes, tolerance=tolerance)


@pytest.mark.parametrize("masked", [False, True])
def test_dot_attention_is_jax_s_own(masked):
    """Save for receivers that hear nobody: JAX gives the mean of all values, a graph zeros."""
    q, k, v = (normal(3, n, HEADS, WIDTH, seed=n) for n in (NODES, 5, 5))
    mask = np.random.default_rng(1).random((3, NODES, 5)) < (0.3 if masked else 1)
    graph, heard = Dense(jnp.asarray(mask) if masked else None), mask.any(-1)

    def theirs(q, k, v):
        mixed = jax.nn.dot_product_attention(q, k, v, mask=mask[:, None] if masked else None)
        return jnp.where(heard[..., None, None], mixed, 0)

    ours = lambda q, k, v: graph.mix(graph.softmax(dot(graph, q, k)), v)
    value, _ = same(ours, theirs, q, k, v)
    assert heard.all() != masked
    np.testing.assert_array_equal(value[~heard], 0)


@norms
def test_a_transformer_is_a_graph_network_on_the_complete_graph(norm):
    model, x = Block(Attention(WIDTH, HEADS), hidden=7, norm=norm), normal(NODES, WIDTH)
    graphs = Dense(), sparse(np.ones((NODES, NODES), bool))
    same(*(on(model, graph) for graph in graphs), filled(model, x, Dense()), x)


@norms
def test_a_block_is_a_layer_of_a_transformer(norm):
    """Written anew, in plain jax.numpy, from the paper."""
    x = normal(3, NODES, WIDTH)
    model = Block(Attention(WIDTH, HEADS), hidden=7, norm=norm)
    params = filled(model, x, Dense())

    def layer(params, x):
        p = params["params"]

        def normed(p, x):
            mean, deviation = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
            return p["scale"] * (x - mean) / jnp.sqrt(deviation**2 + 1e-6) + p["bias"]

        def attention(p, x):
            mixed = []
            for head in range(HEADS):
                q, k, v = (
                    x @ p[name]["kernel"][:, head] + p[name]["bias"][head]
                    for name in ("query", "key", "value")
                )
                weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(WIDTH // HEADS))
                mixed.append(weights @ v @ p["out"]["kernel"][head])
            return sum(mixed) + p["out"]["bias"]

        def feedforward(first, second, x):
            hidden = jnp.maximum(x @ first["kernel"] + first["bias"], 0)
            return hidden @ second["kernel"] + second["bias"]

        attend = lambda x: attention(p["mixer"], x)
        think = lambda x: feedforward(p["Dense_0"], p["Dense_1"], x)
        if norm == "pre":
            x = x + attend(normed(p["LayerNorm_0"], x))
            return x + think(normed(p["LayerNorm_1"], x))
        x = normed(p["LayerNorm_0"], x + attend(x))
        return normed(p["LayerNorm_1"], x + think(x))

    same(on(model, Dense()), layer, params, x)


@both
@pytest.mark.parametrize("model", [SelfAttention(), Block(Attention(WIDTH, HEADS), hidden=7)])
def test_a_causal_mask_keeps_the_future_out(kind, model):
    graph, x = KINDS[kind](CAUSAL), normal(8, WIDTH)
    params = filled(model, x, graph)
    before, after = (forward(model, params, y, graph) for y in (x, x.at[5].multiply(-2)))
    np.testing.assert_array_equal(after[:5], before[:5])
    assert (np.abs(after[5:] - before[5:]).max(1) > 1e-3).all()


@both
def test_additive_scores_are_bahdanau_s(kind):
    """e_ij = v.tanh(W s_i + U h_j) on a complete bipartite graph of states s and words h."""
    s, h = normal(2, 3, seed=1), normal(5, 4, seed=2)
    w, u, v = normal(3, WIDTH, seed=3), normal(4, WIDTH, seed=4), normal(WIDTH, seed=5)
    graph = Dense() if kind == "dense" else sparse(np.ones((2, 5), bool))

    def ours(s, h, w, u, v):
        scores = additive(graph, (s @ w)[:, None], (h @ u)[:, None], v[None])
        return scores.reshape(2, 5), graph.mix(graph.softmax(scores), h[:, None])[:, 0]

    def theirs(s, h, w, u, v):
        scores = [[v @ jnp.tanh(s[i] @ w + h[j] @ u) for j in range(5)] for i in range(2)]
        return jnp.array(scores), jax.nn.softmax(jnp.array(scores)) @ h

    same(ours, theirs, s, h, w, u, v)


@both
def test_additive_scores_are_gatv2_s(kind):
    """e_ij = a.LeakyReLU(W_l h_i + W_r h_j) on edges, per head."""
    left, right = (normal(HEADS, 3, WIDTH, seed=seed) for seed in (1, 2))
    graph, h, a = KINDS[kind](MASK), normal(NODES, 3), normal(HEADS, WIDTH, seed=3)

    def ours(h, left, right, a):
        q, k = (jnp.einsum("nf,hfd->nhd", h, w) for w in (left, right))
        scores = additive(graph, q, k, a, leaky)
        return scores[MASK] if kind == "dense" else scores

    def theirs(h, left, right, a):
        summed = [(h @ left[head])[:, None] + h @ right[head] for head in range(HEADS)]
        scores = [jnp.where(s > 0, s, 0.2 * s) @ a[head] for head, s in enumerate(summed)]
        return jnp.stack(scores, -1)[MASK]

    same(ours, theirs, h, left, right, a)


@both
def test_gat_s_score_is_additive_with_one_feature(kind):
    graph, x = KINDS[kind](MASK), normal(NODES, 3)
    model = GATLayer(WIDTH, HEADS)
    params = filled(model, x, graph)

    def additively(params, x):
        p = params["params"]
        h = jnp.einsum("nf,fhd->nhd", x, p["kernel"])
        q, k = (
            jnp.einsum("nhd,dho->nho", h, p[f"{side}_kernel"]) + p[f"{side}_bias"][:, None]
            for side in ("receive", "send")
        )
        weights = graph.softmax(additive(graph, q, k, jnp.ones((HEADS, 1)), leaky))
        return (graph.mix(weights, h) + p["bias"]).reshape(NODES, -1), weights

    layer = lambda params, x: forward_and_weights(model, params, x, graph)
    same(layer, additively, params, x)


@both
def test_cosine_scores_address_memory_by_content(kind):
    """The NTM's content address: softmax of beta * cosine(key, row) over the rows, then a read."""
    memory, keys, beta = normal(5, 3, seed=1), normal(2, 3, seed=2), jnp.array([0.5, 4.0])
    graph = Dense() if kind == "dense" else sparse(np.ones((2, 5), bool))

    def ours(beta, keys, memory):
        sharp = graph.pair(lambda q, k: q, beta[:, None], memory)
        weights = graph.softmax(sharp * cosine(graph, keys[:, None], memory[:, None]))
        return weights.reshape(2, 5), graph.mix(weights, memory[:, None])[:, 0]

    def theirs(beta, keys, memory):
        lengths = jnp.outer(*(jnp.linalg.norm(x, axis=1) for x in (keys, memory)))
        weights = jax.nn.softmax(beta[:, None] * (keys @ memory.T) / lengths)
        return weights, weights @ memory

    same(ours, theirs, beta, keys, memory)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_cosine_of_any_length(dtype):
    """Zero with a zero vector, finite gradients there; right where squares overflow float16."""
    q = jnp.array([[0.0, 0], [3, 4], [300, 400]], dtype)[:, None]
    k = jnp.array([[0.0, 0], [4, 3], [-0.03, -0.04]], dtype)[:, None]
    score = lambda q, k: cosine(Dense(), q, k)[..., 0]
    close(
        score(q, k), [[0, 0, 0], [0, 0.96, -1], [0, 0.96, -1]], 1e-5 if dtype == "float32" else 1e-2
    )
    gradients = jax.grad(lambda q: score(q, k).sum(dtype=jnp.float32))(q.astype(jnp.float32))
    assert np.isfinite(gradients).all() and np.abs(gradients[1]).max() > 0.01


MODELS = {
    "block": Block(Attention(WIDTH, HEADS), hidden=7),
    "gat": GAT(out=3, width=2, heads=2),
    "gcn": GCN(out=3, width=2),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@models
def test_permuting_nodes_permutes_outputs(model):
    x, order = normal(NODES, WIDTH), np.random.default_rng(2).permutation(NODES)
    graph, permuted = sparse(MASK), sparse(MASK[order][:, order])
    permute = lambda params, x: model.apply(params, x[order], permuted)
    same(permute, lambda *inputs: on(model, graph)(*inputs)[order], filled(model, x, graph), x)


@both
@models
def test_batching_and_padding_change_nothing(kind, model):
    """Two graphs of six and two nodes as one graph, and edges that are not there."""
    pair, joined = np.ones((2, 2), bool), np.pad(MASK, (0, 2))
    joined[NODES:, NODES:] = pair
    batch, x = KINDS[kind](joined), normal(NODES + 2, WIDTH)
    if kind == "sparse":
        there = jnp.arange(len(batch.senders) + 3) < len(batch.senders)
        senders = jnp.append(batch.senders, jnp.array([NODES, 0, 1]))
        receivers = jnp.append(batch.receivers, jnp.array([0, 1, 3]))
        batch = Sparse(senders, receivers, batch.shape, there)

    def alone(params, x):
        parts = (MASK, x[:NODES]), (pair, x[NODES:])
        return jnp.concatenate([on(model, KINDS[kind](mask))(params, x) for mask, x in parts])

    same(on(model, batch), alone, filled(model, x, batch), x)


@pytest.mark.parametrize(
    "model",
    [
        Block(Attention(WIDTH, HEADS, dropout=0.5), hidden=7),
        *(Block(Attention(WIDTH, HEADS), hidden=7, dropout=0.5, norm=n) for n in ("pre", "post")),
    ],
    ids=["attention", "pre", "post"],
)
def test_dropout_is_for_training(model):
    x = normal(NODES, WIDTH)
    params = filled(model, x, Dense())
    still = forward(model, params, x, Dense())
    np.testing.assert_array_equal(still, forward(model, params, x, Dense()))
    one, other = (training(model, params, x, Dense(), seed=seed) for seed in (0, 1))
    assert min(np.abs(one - other).max(), np.abs(one - still).max()) > 0.01


@pytest.mark.parametrize("width, heads", [(10, 3), (2, 8)])
def test_heads_share_the_width_evenly(width, heads):
    with pytest.raises(ValueError, match=f"width={width} is not a multiple of heads={heads}"):
        Attention(width, heads)


def test_a_norm_stands_before_or_after():
    with pytest.raises(ValueError, match="norm = 'typo': expected 'pre' or 'post'"):
        Block(Attention(WIDTH, HEADS), hidden=7, norm="typo")


@scores
def test_sentences_of_several_lengths_in_one_batch(score):
    """Lengths 2 and 5: not the least weight on padding, whatever the precision."""
    real = np.arange(5) < np.array([[2], [5]])
    graph = Dense(jnp.asarray(real[:, None]))
    q, k = normal(2, 3, HEADS, WIDTH), normal(2, 5, HEADS, WIDTH, seed=1)

    @jax.jit
    def run(q, k):
        weights = graph.softmax(score(graph, q, k))
        return weights, graph.mix(weights, k)

    expected, context = run(q, k)
    for dtype in ("float32", "bfloat16", "float16"):
        weights, mixed = run(q.astype(dtype), k.astype(dtype))
        assert weights.dtype == mixed.dtype == dtype
        weights = np.asarray(weights, np.float32)
        np.testing.assert_array_equal(weights[0, :, 2:], 0)
        assert (weights[0, :, :2] > 0).all() and (weights[1] > 0).all()
        close(weights.sum(2), np.ones((2, 3, HEADS)), 1e-2)
        close(weights, expected, 1e-2)
        close(mixed, context, 2e-2)


@scores
def test_attention_to_nobody_is_zero(score):
    graph, q, k = Dense(), normal(NODES, HEADS, WIDTH), normal(0, HEADS, WIDTH)
    weights = graph.softmax(score(graph, q, k))
    assert weights.shape == (NODES, 0, HEADS)
    np.testing.assert_array_equal(graph.mix(weights, k), jnp.zeros_like(q))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "kind, model", [("dense", Attention(WIDTH, HEADS)), ("sparse", GATLayer(WIDTH, HEADS))]
)
def test_attention_in_half_precision(kind, dtype, model):
    graph, x = KINDS[kind](MASK), normal(NODES, WIDTH)
    if kind == "sparse":
        graph = graph.replace(mask=jnp.arange(len(graph.senders)) % 3 > 0)
    inputs = (x, x, graph) if isinstance(model, Attention) else (x, graph)
    params = filled(model, *inputs)
    half = lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    value, weights = forward_and_weights(model, *jax.tree.map(half, (params, *inputs)))
    expected, expected_weights = forward_and_weights(model, params, *inputs)
    assert value.dtype == weights.dtype == dtype
    np.testing.assert_array_equal(np.asarray(weights, np.float32)[~np.asarray(graph.mask)], 0)
    close(weights, expected_weights, 1e-2)
    close(value, expected, 2e-2)
