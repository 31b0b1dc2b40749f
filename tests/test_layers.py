"""Each graph layer equals its formula in matrices, gradients too, on graphs of any kind."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, largest, mean, neighbours, normal, on, pullback, same, sparse

from models import GIN, SAGE, ChebNet, GATv2, MessagePassing, MoNet
from models.gatv2 import GATv2Layer
from models.graph import Dense, Sparse

NODES, FEATURES, OUT, WIDTH = 7, 5, 3, 4
A = neighbours(NODES)
A[4] = A[:, 4] = False  # nobody speaks to node 4
DIRECTED = np.random.default_rng(1).random((NODES, NODES)) < 0.3
LOOPED = A | np.eye(NODES, dtype=bool)
X, GRAPH = normal(NODES, FEATURES), sparse(A)


def dense(p, x):
    return x @ p["kernel"] + p.get("bias", 0)


def one_layer(kind, **options):
    return kind(OUT, width=WIDTH, depth=1, **{"readout": "last"} | options)


AGGREGATES = {
    "sum": lambda mask, said: mask @ said,
    "mean": lambda mask, said: mean(mask) @ said,
    "max": largest,
}


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("mask", [A, DIRECTED], ids=["both ways", "directed"])
def test_message_passing(how, mask):
    model, graph = one_layer(MessagePassing, aggregate=how), sparse(mask)

    def by_hand(params, x):
        p = params["params"]["layer_0"]
        return dense(p["own"], x) + AGGREGATES[how](mask, dense(p["said"], x))

    same(on(model, graph), by_hand, filled(model, X, graph), X)


def test_a_mean_over_two_over_one_and_over_nobody():  # GRAPH-12
    """Of neighbours with the values 4 and 6, of one with 4, of none."""
    model = MessagePassing(1, width=1, depth=1, aggregate="mean")
    graph = Sparse(jnp.array([3, 4, 3]), jnp.array([0, 0, 1]), (5, 5))
    params = {"params": {"layer_0": {"own": {"kernel": jnp.zeros((1, 1)), "bias": jnp.zeros(1)},
                                     "said": {"kernel": jnp.ones((1, 1))}}}}  # fmt: skip
    x = jnp.array([[0.0], [0.0], [0.0], [4.0], [6.0]])
    assert model.apply(params, x, graph).ravel().tolist() == [5, 4, 0, 0, 0]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_chebyshev_polynomials(order, weighted):
    model = one_layer(ChebNet, order=order)
    weights = np.where(A, np.abs(normal(NODES, NODES)) + 0.1, 0) if weighted else A.astype(float)
    weights = weights + weights.T
    degree = weights.sum(1)
    scale = np.where(degree > 0, np.maximum(degree, 1e-9) ** -0.5, 0)
    laplacian = (-scale[:, None] * weights * scale).astype(np.float32)
    edges = jnp.asarray(weights[A][:, None], jnp.float32) if weighted else None

    def by_hand(params, x):
        p = params["params"]["layer_0"]
        terms = [jnp.eye(NODES), laplacian]
        while len(terms) < order:
            terms.append(2 * laplacian @ terms[-1] - terms[-2])
        return sum(terms[k] @ x @ p["kernel"][:, k] for k in range(order)) + p["bias"]

    ours = lambda params, x: model.apply(params, x, GRAPH, edges)
    same(ours, by_hand, filled(model, X, GRAPH), X)


@pytest.mark.parametrize("learned", [False, True])
def test_gin(learned):
    model = one_layer(GIN, norm="none", learn_epsilon=learned)
    params = filled(model, X, GRAPH)

    def by_hand(params, x):
        p = params["params"]["layer_0"]
        x = (1 + p.get("epsilon", 0)) * x + A @ x
        hidden = jax.nn.relu(x @ p["mlp_1"]["kernel"] + p["bias"])
        return dense(p["mlp_2"], hidden)

    same(on(model, GRAPH), by_hand, params, X)
    assert ("epsilon" in params["params"]["layer_0"]) == learned


def test_gin_normalises_by_nodes_that_are_there():  # EVAL-3
    """After either map of its MLP's, and not by padding."""
    there = jnp.arange(NODES) < 5
    mask = A & there & there[:, None]
    model, graph = GIN(OUT, width=WIDTH, depth=1, readout="linear"), sparse(np.asarray(mask))
    stats = jax.tree.map(
        lambda x: jnp.zeros(x.shape),
        jax.eval_shape(model.init, jax.random.key(0), X, graph)["batch_stats"],
    )

    def ours(params, x):
        inputs = params | {"batch_stats": stats}, x, graph, None, there
        return model.apply(*inputs, train=True, mutable="batch_stats")[0][:5]

    def norm(p, x):
        mean, var = x[:5].mean(0), x[:5].var(0)
        p = p["BatchNorm_0"]
        return jax.nn.relu((x - mean) / jnp.sqrt(var + 1e-5) * p["scale"] + p["bias"])

    def by_hand(params, x):
        p = params["params"]
        first = x + mask @ x
        hidden = norm(p["layer_0"]["Norm_0"], first @ p["layer_0"]["mlp_1"]["kernel"])
        return dense(p["read"], norm(p["Norm_0"], dense(p["layer_0"]["mlp_2"], hidden)))[:5]

    params = filled(model, X, graph)
    same(ours, by_hand, params, X, tolerance=1e-4)


def test_gin_drops_what_its_jump_reads_out_and_no_input():
    model = GIN(OUT, width=WIDTH, norm="none", dropout=0.5)
    params = filled(model, X, GRAPH)
    rngs = {"dropout": jax.random.key(0)}
    _, sown = model.apply(params, X, GRAPH, train=True, rngs=rngs, mutable="intermediates")
    _, still = model.apply(params, X, GRAPH, mutable="intermediates")
    jax.tree.map(np.testing.assert_array_equal, sown, still)
    drawn = model.apply(params, X, GRAPH, train=True, rngs=rngs)
    assert np.abs(drawn - model.apply(params, X, GRAPH)).max() > 0.1


@pytest.mark.parametrize("share, bias", [(False, True), (True, False)])
@pytest.mark.parametrize("loops", [False, True])
def test_gatv2(share, bias, loops):
    model = GATv2(OUT, width=2, heads=3, out_heads=2, share=share, bias=bias, self_loops=loops)
    mask = LOOPED if loops else A

    def layer(p, x):
        heads = []
        for i in range(p["score"].shape[1]):
            part = lambda side, i=i: (
                x @ p[f"{side}_kernel"][:, i] + (p[f"{side}_bias"][i] if bias else 0)
            )
            k = part("send")
            q = k if share else part("receive")
            score = nn.leaky_relu(q[:, None] + k, 0.2) @ p["score"][:, i, 0]
            powers = jnp.where(mask, jnp.exp(score), 0)
            weights = powers / jnp.maximum(powers.sum(1, keepdims=True), 1e-30)
            heads.append(weights @ k + (p["bias"][i] if bias else 0))
        return jnp.stack(heads, 1)

    def by_hand(params, x):
        p = params["params"]
        return layer(p["layer_1"], nn.elu(layer(p["layer_0"], x).reshape(NODES, -1))).mean(1)

    same(on(model, GRAPH), by_hand, filled(model, X, GRAPH), X)


def test_whom_a_node_hears_most_depends_on_it_in_gatv2():
    """The case of Brody et al. 2022: of all pairs of keys, each query attends to its own key."""
    keys = jnp.eye(4)
    graph = Dense(jnp.ones((4, 4), bool))
    layer = GATv2Layer(width=4, heads=1, share=False, bias=False)
    params = layer.init(jax.random.key(0), keys, graph)["params"]
    # LeakyReLU(-q_i + k_j) is -0.2 at i, 1 at j, and 0 if both are one.
    kernel = jnp.eye(4)[:, None]
    params |= {"receive_kernel": -kernel, "send_kernel": kernel, "score": -jnp.ones((4, 1, 1))}
    _, sown = layer.apply({"params": params}, keys, graph, mutable="intermediates")
    [weights] = jax.tree.leaves(sown)[-1:]
    assert weights[..., 0].argmax(1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("carried", [False, True])
def test_monet(carried):
    model = one_layer(MoNet, kernels=3)
    degree = LOOPED.sum(1) ** -0.5
    mask = A if carried else LOOPED
    pairs = np.stack(np.broadcast_arrays(degree[:, None], degree[None]), -1)  # [N, N, 2]
    where = normal(NODES, NODES, 2, seed=4) if carried else pairs
    edges = where[np.nonzero(A)] if carried else None

    def by_hand(params, x):
        p = params["params"]["layer_0"]
        u = jnp.tanh(dense(p["where"], where))
        kernels = jnp.split(p["linear"]["kernel"], 3, axis=1)
        total = p["bias"]
        for mu, precision, kernel in zip(p["mean"], p["inverse_sigma"], kernels, strict=True):
            weights = jnp.exp(-0.5 * (jnp.square(u - mu) * precision**2).sum(-1))
            total = total + jnp.where(mask, weights, 0) @ x @ kernel
        return total

    ours = lambda params, x: model.apply(params, x, GRAPH, edges)
    same(ours, by_hand, filled(model, X, GRAPH, edges), X)


def test_monet_of_nodes_without_neighbours():  # GRAPH-7
    model, graph = MoNet(OUT, width=WIDTH), sparse(np.zeros((2, 2), bool))
    params, x = filled(model, X[:2], graph), X[:2]
    found = jax.jit(lambda params, x: pullback(on(model, graph), params, x))(params, x)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


MODELS = {
    "message": MessagePassing(OUT, width=WIDTH),
    "chebnet": ChebNet(OUT, width=WIDTH),
    "gin": GIN(OUT, width=WIDTH, norm="none"),
    "gatv2": GATv2(OUT, width=2, heads=2),
    "monet": MoNet(OUT, width=WIDTH),
    "sage": SAGE(OUT, width=WIDTH),
    "pool": SAGE(OUT, width=WIDTH, aggregate="pool"),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_other_numbers_for_nodes_are_other_places_of_the_same(model):
    order = np.random.default_rng(2).permutation(NODES)
    params = filled(model, X, GRAPH)
    moved = sparse(A[np.ix_(order, order)])
    run = jax.jit(functools.partial(model.apply, params))
    close(run(X, GRAPH)[order], run(X[order], moved))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_two_graphs_side_by_side_are_each_alone(model):  # GDATA-3
    """With padding behind: two nodes that are masked, and edges between them that are."""
    params = filled(model, X, GRAPH)
    both = np.zeros((2 * NODES, 2 * NODES), bool)
    both[:NODES, :NODES], both[NODES:, NODES:] = A, DIRECTED
    receivers, senders = (np.append(ends, 2 * NODES + 1) for ends in np.nonzero(both))
    size = 2 * NODES + 2
    graph = Sparse(senders, receivers, (size, size), jnp.arange(len(senders)) < len(senders) - 1)
    x = jnp.concatenate([X, 2 * X, jnp.ones((2, FEATURES))])
    run = jax.jit(functools.partial(model.apply, params))
    found = run(x, graph, None, jnp.arange(size) < 2 * NODES)
    close(found[:NODES], run(X, GRAPH))
    close(found[NODES : 2 * NODES], run(2 * X, sparse(DIRECTED)))
