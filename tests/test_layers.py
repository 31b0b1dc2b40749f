"""Each graph layer equals its formula in matrices, gradients too, on graphs of any kind."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, normal, on, pullback, same

from models import GIN, SAGE, ChebNet, GATv2, MessagePassing, MoNet
from models.dropout import counter_key
from models.gatv2 import GATv2Layer
from models.graph import Dense, Sparse
from models.sage import sampled

NODES, FEATURES, OUT, WIDTH = 7, 5, 3, 4
rng = np.random.default_rng(1)
A = np.triu(rng.random((NODES, NODES)) < 0.4, 1)
A = A | A.T
A[4] = A[:, 4] = False  # nobody speaks to node 4
DIRECTED = rng.random((NODES, NODES)) < 0.3
LOOPED = A | np.eye(NODES, dtype=bool)


def sparse(mask):
    receivers, senders = np.nonzero(mask)
    return Sparse(jnp.asarray(senders), jnp.asarray(receivers), mask.shape)


X = normal(NODES, FEATURES)
GRAPH = sparse(A)


def dense(p, x):
    return x @ p["kernel"] + p.get("bias", 0)


def mean(mask):
    return mask / np.maximum(mask.sum(1, keepdims=True), 1)


def largest(mask, said):
    heard = jnp.where(mask[:, :, None], said[None], -jnp.inf).max(1)
    return jnp.where(mask.any(1)[:, None], heard, 0)


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
        kernels = jnp.split(p["linear"]["kernel"], order, axis=1)
        filtered = zip(terms, kernels, strict=False)
        return sum(term @ x @ kernel for term, kernel in filtered) + p["bias"]

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
        for mean, precision, kernel in zip(p["mean"], p["inverse_sigma"], kernels, strict=True):
            weights = jnp.exp(-0.5 * (jnp.square(u - mean) * precision**2).sum(-1))
            total = total + jnp.where(mask, weights, 0) @ x @ kernel
        return total

    ours = lambda params, x: model.apply(params, x, GRAPH, edges)
    same(ours, by_hand, filled(model, X, GRAPH, edges), X)


def test_monet_of_nodes_without_neighbours():  # GRAPH-7
    model, graph = MoNet(OUT, width=WIDTH), sparse(np.zeros((2, 2), bool))
    params, x = filled(model, X[:2], graph), X[:2]
    found = jax.jit(lambda params, x: pullback(on(model, graph), params, x))(params, x)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


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
    model = one_layer(SAGE, aggregate="lstm", sample=NODES)
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


def test_sage_hears_a_sample_in_training_and_all_in_evaluation():
    model, whole = SAGE(OUT, width=WIDTH, sample=1), SAGE(OUT, width=WIDTH)
    params = filled(model, X, GRAPH)
    run = jax.jit(lambda key: model.apply(params, X, GRAPH, train=True, rngs={"dropout": key}))
    draws = [run(counter_key(jax.random.key(seed))) for seed in range(2)]
    assert np.abs(draws[0] - draws[1]).max() > 0.01
    np.testing.assert_array_equal(*(m.apply(params, X, GRAPH) for m in (model, whole)))
    with pytest.raises(ValueError, match="sample = 0: expected 1 or more for an LSTM"):
        SAGE(OUT, aggregate="lstm")


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
