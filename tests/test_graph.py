"""Dense and Sparse give the same numbers, gradients too, and they are those of the definitions."""

import functools
import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, normal, pullback, same

from models import GAT
from models.graph import Dense, Matrix, Sparse, symmetric

QUERIES, KEYS, HEADS, WIDTH = 5, 4, 2, 3
SOME = np.random.default_rng(0).random((QUERIES, KEYS)) < 0.5
MASKS = np.stack(
    [
        SOME,
        SOME & (np.arange(QUERIES) % 2 == 1)[:, None] & (np.arange(KEYS) != 2),  # isolated nodes
        np.zeros_like(SOME),  # no edges
        np.ones_like(SOME),  # all of them
    ]
)


def sparse(mask, padding=0, seed=0):
    """The edges of a mask in any order, among `padding` others that are not there."""
    rng = np.random.default_rng(seed)
    receivers, senders = np.nonzero(mask)
    absent = [rng.integers(size, size=padding) for size in mask.shape]
    there = np.arange(len(senders) + padding) < len(senders)
    order = rng.permutation(len(there))
    return Sparse(
        jnp.asarray(np.append(senders, absent[1])[order]),
        jnp.asarray(np.append(receivers, absent[0])[order]),
        mask.shape,
        jnp.asarray(there[order]) if padding else None,
    )


KINDS = {"dense": lambda mask: Dense(jnp.asarray(mask)), "sparse": sparse}
both = pytest.mark.parametrize("kind", KINDS)
PADDED = KINDS | {"padded": functools.partial(sparse, padding=3)}


@jax.jit
def gather(graph, edges):
    """An edge array from its matrices [Q, K, H]."""
    return edges if isinstance(graph, Dense) else edges[graph.receivers, graph.senders]


@jax.jit
def scatter(graph, edges):
    """The matrices [Q, K, H] of an edge array, zero where there is no edge."""
    kept = jnp.where(True if graph.mask is None else graph.mask[..., None], edges, 0)
    if isinstance(graph, Dense):
        return kept
    zeros = jnp.zeros((*graph.shape, edges.shape[-1]), edges.dtype)
    return zeros.at[graph.receivers, graph.senders].add(kept)


METHODS = {  # of the graph, receivers and senders [N, H, D], matrices [Q, K, H]
    "send": lambda g, q, k, e: scatter(g, g.send(k[..., 0])),
    "pair": lambda g, q, k, e: scatter(g, g.pair(jnp.multiply, q[..., 0], k[..., 0])),
    "dot": lambda g, q, k, e: scatter(g, g.dot(q, k)),
    "softmax": lambda g, q, k, e: scatter(g, g.softmax(gather(g, e))),
    "sum": lambda g, q, k, e: g.reduce(gather(g, e), "sum"),
    "mean": lambda g, q, k, e: g.reduce(gather(g, e), "mean"),
    "max": lambda g, q, k, e: g.reduce(gather(g, e), "max"),
    "mix": lambda g, q, k, e: g.mix(gather(g, e), k),
    "one_head": lambda g, q, k, e: g.mix(gather(g, e[..., :1]), k),
    "attention": lambda g, q, k, e: g.mix(g.softmax(g.dot(q, k)), k),
    "degree": lambda g, q, k, e: g.degree(),
}


def arrays(dtype, *batch):
    shapes = (QUERIES, HEADS, WIDTH), (KEYS, HEADS, WIDTH), (QUERIES, KEYS, HEADS)
    return [normal(*batch, *shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("method", METHODS)
def test_dense_and_sparse_agree(method, dtype, tolerance):
    """On all of MASKS at once: leading axes in a Dense graph, jax.vmap over Sparse ones."""
    graphs = [sparse(mask, padding=24 - mask.sum()) for mask in MASKS]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *graphs)

    @jax.jit
    def compare(dense, stacked, inputs):
        function = METHODS[method]
        one = pullback(functools.partial(function, dense), *inputs)
        return one, pullback(lambda *x: jax.vmap(function)(stacked, *x), *inputs)

    one, other = compare(Dense(jnp.asarray(MASKS)), stacked, arrays(dtype, len(MASKS)))
    for dense_leaf, sparse_leaf in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        assert dense_leaf.dtype == sparse_leaf.dtype
        close(sparse_leaf, dense_leaf, tolerance)
    assert method == "degree" or np.abs(one[0]).max() > 0.1


def test_a_dense_graph_without_mask_has_all_pairs():
    """What does not depend on the receiver is one row, which broadcasts over them."""
    inputs, full = arrays("float32"), Dense(jnp.ones((QUERIES, KEYS), bool))

    def run(graph, *inputs):
        values = [METHODS[name](graph, *inputs) for name in METHODS if name != "degree"]
        return [jnp.broadcast_to(x, (QUERIES, *x.shape[1:])) for x in values]

    same(functools.partial(run, Dense()), functools.partial(run, full), *inputs)
    assert Dense().send(inputs[1][..., 0]).shape == (1, KEYS, HEADS)


@both
@pytest.mark.parametrize("method", ["softmax", "sum", "mean", "max", "mix"])
def test_what_lies_on_an_absent_edge_is_not_looked_at(kind, method):
    q, k, edges = arrays("float32")
    graph = Dense(jnp.asarray(SOME)) if kind == "dense" else sparse(SOME, padding=6)
    there = graph.mask[..., None]
    edges = gather(graph, edges)

    @jax.jit
    def run(edges):
        steps = {"softmax": graph.softmax, "mix": lambda e: graph.mix(e, k)}
        return pullback(steps.get(method, lambda e: graph.reduce(e, method)), edges)

    value, (gradient,) = run(edges)
    poisoned = run(jnp.where(there, edges, jnp.nan))
    jax.tree.map(np.testing.assert_array_equal, poisoned, (value, (gradient,)))
    np.testing.assert_array_equal(np.where(there, 0, gradient), 0)
    assert np.isfinite(value).all() and np.abs(gradient).max() > 0.1


@both
def test_softmax_by_hand(kind):
    graph = KINDS[kind](np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], bool))
    scores = jnp.log(jnp.array([[1.0, 3, 99], [99, 99, 5], [99, 99, 99]]))[..., None]
    weights = scatter(graph, graph.softmax(gather(graph, scores)))[..., 0]
    close(weights, [[0.25, 0.75, 0], [0, 0, 1], [0, 0, 0]])


@both
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_softmax_of_huge_scores(kind, dtype):
    """Of both signs; receiver 0 has only the lowest there are, receiver 4 hears nobody."""
    mask = SOME.copy()
    mask[0], mask[4] = True, False
    signs = np.where(np.random.default_rng(1).random((QUERIES, KEYS, HEADS)) < 0.5, 1, -1)
    signs[0] = -1
    graph = KINDS[kind](mask)

    @jax.jit
    def run(scores):
        return pullback(lambda e: scatter(graph, graph.softmax(gather(graph, e))), scores)

    for size in (1e4, 6e4, float(jnp.finfo(dtype).max), np.inf):
        scores = np.where(signs > 0, min(size, 6e4), -size)
        weights, (gradient,) = jax.tree.map(
            lambda x: np.asarray(x, np.float32), run(jnp.asarray(scores, dtype))
        )
        heard = np.where(mask[..., None], scores, -np.inf).max(1) > -np.inf
        close(weights.sum(1), heard, 1e-2)
        np.testing.assert_array_equal(weights[4], 0)
        assert np.isfinite(gradient).all()


@both
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_long_sums_in_half_precision(kind, dtype):
    """One receiver, 4096 senders: added one by one in half precision, ones stop at 256 or 2048."""
    graph, ones = KINDS[kind](np.ones((1, 4096), bool)), jnp.ones((4096, 1), dtype)

    @jax.jit
    def run(ones):
        messages = graph.pair(lambda q, k: k, ones[:1], ones)
        weights = gather(graph, graph.softmax(messages))
        means = [graph.reduce(messages, "mean"), graph.mix(weights, ones[:, None])[0]]
        return 4096 * weights, graph.reduce(messages, "sum") / 4096, *means

    for value in run(ones):
        assert value.dtype == dtype
        close(value, np.ones(value.shape), 1e-2)


@both
def test_softmax_does_not_feel_a_shift(kind):
    graph, edges = KINDS[kind](SOME), arrays("float32")[2]
    shift = normal(QUERIES, 1, HEADS, seed=5) * 10
    weights = lambda edges: graph.softmax(gather(graph, edges))
    same(weights, lambda edges: weights(edges + shift), edges)


@both
def test_the_gradient_of_a_maximum_is_shared_by_ties(kind):
    graph = KINDS[kind](np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0]], bool))
    messages = jnp.array([[2.0, 2, 1], [9, -3, -4], [9, 9, 9]])[..., None]

    @jax.jit
    def run(messages):
        value, vjp = jax.vjp(lambda m: graph.reduce(gather(graph, m), "max"), messages)
        return value[:, 0], vjp(jnp.ones((3, 1)))[0][..., 0]

    value, gradient = run(messages)
    close(value, [2, -3, 0])
    close(gradient, [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    "kind, queries, keys",
    [("padded", QUERIES, KEYS), *itertools.product(KINDS, (QUERIES, 0), (KEYS, 0))],
)
def test_no_edges(kind, queries, keys):
    """Not one stored, only such as are not there, or no nodes: zeros, and gradients of zero."""
    graph = PADDED[kind](np.zeros((queries, keys), bool))
    shapes = (queries, HEADS, WIDTH), (keys, HEADS, WIDTH), (queries, keys, HEADS)

    @jax.jit
    def run(q, k, edges):
        weights = graph.softmax(graph.dot(q, k) + gather(graph, edges))
        reduced = [graph.reduce(weights, how) for how in ("sum", "mean", "max")]
        return jnp.concatenate([*reduced, graph.degree(), graph.mix(weights, k)[..., 0]], -1)

    value, gradients = pullback(run, *(normal(*shape) for shape in shapes))
    assert value.shape == (queries, 4 * HEADS + 1)
    for leaf in jax.tree.leaves((value, gradients)):
        np.testing.assert_array_equal(leaf, 0)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_all_of_no_senders(how):
    np.testing.assert_array_equal(Dense().reduce(jnp.zeros((1, 0, 2)), how), jnp.zeros((1, 2)))


@pytest.mark.parametrize("kind", PADDED)
def test_integers_are_exact(kind):
    """Beyond what float32 can count, down to the lowest; receiver 2 hears nobody."""
    graph, low = PADDED[kind](np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], bool)), -(2**31)
    messages = jnp.array([[3, 2**24 + 1, 2**30], [5, 5, low], [5, 5, 5]])[..., None]
    expected = {"sum": [2**24 + 4, low, 0], "max": [2**24 + 1, low, 0], "mean": [2**23 + 2, low, 0]}
    for how, numbers in expected.items():
        value = graph.reduce(gather(graph, messages), how)
        assert value.dtype == ("float32" if how == "mean" else "int32")
        np.testing.assert_array_equal(value[:, 0], numbers)


@both
@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_small_integers_do_not_overflow(kind, dtype):
    graph, messages = KINDS[kind](np.ones((1, 500), bool)), jnp.ones((500, 1), dtype)
    total = graph.reduce(messages[None] if kind == "dense" else messages)
    assert total.dtype == "int32" and total.tolist() == [[500]]


@both
def test_a_mean_of_more_senders_than_float16_can_count(kind):
    graph, messages = KINDS[kind](np.ones((1, 70_000), bool)), jnp.full((70_000, 1), 2, "float16")
    mean = graph.reduce(messages[None] if kind == "dense" else messages, "mean")
    assert mean.dtype == "float16" and mean.tolist() == [[2]]


@both
def test_mean_of_two_of_one_and_of_none(kind):  # GRAPH-12
    graph = KINDS[kind](np.array([[0, 1, 1], [0, 1, 0], [0, 0, 0]], bool))
    messages = graph.pair(lambda q, k: k + 0 * q, jnp.zeros((3, 1)), jnp.array([[7.0], [4], [6]]))
    close(graph.reduce(messages, "mean")[:, 0], [5, 4, 0])
    close(graph.degree()[:, 0], [2, 1, 0])


@both
@pytest.mark.parametrize("stored_loop", [False, True])
def test_symmetric_weights_of_a_path(kind, stored_loop):  # GRAPH-3, GRAPH-4
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    path[0, 0] = stored_loop
    graph = KINDS[kind](path).with_self_loops()
    weights = scatter(graph, symmetric(graph))[..., 0]
    third, sixth = 1 / 3, 1 / math.sqrt(6)  # degrees are 2, 3, 2
    close(weights, [[0.5, sixth, 0], [sixth, third, sixth], [0, sixth, 0.5]])
    close(weights[0, 1], 0.4082, 1e-4)


@both
def test_whom_nobody_speaks_to_has_no_degree(kind):
    """Of 0 -> 1 -> 2, the first hears nobody; what it says weighs nothing."""
    graph = KINDS[kind](np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], bool))
    weights = scatter(graph, symmetric(graph))[..., 0]
    close(weights, [[0, 0, 0], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("padding", [0, 5])
def test_self_loops(padding):
    """Every node hears itself once, stored loops or not; in a Sparse graph, at the very end."""
    mask = np.random.default_rng(3).random((6, 6)) < 0.4
    expected = mask | np.eye(6, dtype=bool)
    assert mask.diagonal().any() and not mask.diagonal().all()

    @jax.jit
    def run(graph):
        ones = graph.pair(lambda q, k: q + k, jnp.full((6, 1), 0.5), jnp.full((6, 1), 0.5))
        return scatter(graph, ones)[..., 0], graph.degree()[:, 0]

    graph = sparse(mask, padding).with_self_loops()
    for looped in (graph, graph.with_self_loops(), Dense(jnp.asarray(mask)).with_self_loops()):
        matrix, degree = run(looped)
        np.testing.assert_array_equal(matrix, expected)
        np.testing.assert_array_equal(degree, expected.sum(1))
    assert graph.mask[-6:].all()
    np.testing.assert_array_equal(graph.senders[-6:], np.arange(6))
    np.testing.assert_array_equal(graph.receivers[-6:], np.arange(6))


@both
def test_networks_differ_in_their_weights(kind):
    """GCN's, GraphSAGE's and GIN's sums over neighbours are one mix with three weights."""
    adjacency = np.random.default_rng(4).random((6, 6)) < 0.4
    adjacency = np.triu(adjacency, 1) | np.triu(adjacency, 1).T
    adjacency[2] = adjacency[:, 2] = False
    graph, x = KINDS[kind](adjacency), normal(6, WIDTH)
    degree = adjacency.sum(1)
    scale = np.diag([d**-0.5 if d else 0 for d in degree])
    inverse = jnp.where(graph.degree() > 0, 1 / jnp.maximum(graph.degree(), 1), 0)
    mean = graph.pair(lambda q, k: q + 0 * k, inverse, inverse)

    def ours(x):
        weights = symmetric(graph), mean, jnp.ones_like(mean)
        messages = graph.pair(lambda q, k: k, x, x)
        sums = [graph.reduce(messages, how) for how in ("mean", "sum")]
        return [Matrix(graph, w) @ x for w in weights], sums

    def theirs(x):
        sums = [adjacency @ x / np.maximum(degree, 1)[:, None], adjacency @ x]
        return [scale @ adjacency @ scale @ x, *sums], sums

    same(ours, theirs, x)


@both
def test_a_matrix_multiplies_like_one(kind):
    graph, (_, k, edges) = KINDS[kind](SOME), arrays("float32")

    def ours(edges, k):
        matrix, one = (Matrix(graph, gather(graph, e)) for e in (edges, edges[..., :1]))
        assert matrix.shape == (QUERIES, KEYS)
        return matrix @ k, one @ k[:, 0], one @ k

    def theirs(edges, k):
        dense = jnp.where(SOME[..., None], edges, 0)
        products = [[dense[..., i] @ k[:, j] for j in range(HEADS)] for i in range(HEADS)]
        own = [products[head][head] for head in range(HEADS)]
        return jnp.stack(own, 1), products[0][0], jnp.stack(products[0], 1)

    same(ours, theirs, edges, k)
    matrix = Matrix(graph, gather(graph, edges))
    with pytest.raises(ValueError, match="cannot select an axis to squeeze"):
        matrix @ k[:, 0]  # which of the heads?


@pytest.mark.parametrize("kind", ["sparse", "padded"])
def test_listed_edges_say_whose_weight_it_is(kind):  # GRAPH-5
    """Four nodes, seven edges and the four loops that attention adds."""
    arrows = {(0, 1), (2, 1), (3, 2), (1, 0), (3, 0), (0, 3), (1, 3)}  # from, to
    mask = np.zeros((4, 4), bool)
    for source, target in arrows:
        mask[target, source] = True
    graph = PADDED[kind](mask).with_self_loops()
    scores = graph.pair(lambda q, k: q + k, normal(4, HEADS), normal(4, HEADS, seed=1))
    listed = Matrix(graph, graph.softmax(scores)).edges()

    pairs = list(zip(listed["source"].tolist(), listed["target"].tolist(), strict=True))
    assert len(pairs) == 11 and set(pairs) == arrows | {(i, i) for i in range(4)}
    assert listed["self_loop"].tolist() == [source == target for source, target in pairs]
    for target in range(4):
        close(listed["weight"][listed["target"] == target].sum(0), np.ones(HEADS))
    weight = listed["weight"][pairs.index((2, 1))]
    score = {j: normal(4, HEADS)[1] + normal(4, HEADS, seed=1)[j] for j in (0, 1, 2)}
    close(weight, np.exp(score[2]) / sum(np.exp(s) for s in score.values()))


def test_what_a_graph_cannot_know_it_refuses():
    with pytest.raises(ValueError, match="degree of a Dense graph needs its mask"):
        Dense().degree()
    with pytest.raises(ValueError, match="with_self_loops of a Dense graph needs its mask"):
        Dense().with_self_loops()
    for make in KINDS.values():
        with pytest.raises(ValueError, match="one set of nodes, got 5 and 4"):
            make(SOME).with_self_loops()
        with pytest.raises(ValueError, match="'typo', expected 'sum', 'mean' or 'max'"):
            make(SOME).reduce(jnp.ones((1, 1)), "typo")


def test_memory_grows_with_the_edges():  # GRAPH-11
    """20,000 nodes and 90,000 edges: a step of an 8-headed GAT holds no array of nodes x nodes."""
    nodes, edges, features, heads, width = 20_000, 90_000, 4, 8, 8
    senders, receivers = np.random.default_rng(0).integers(nodes, size=(2, edges))
    graph = Sparse(jnp.asarray(senders), jnp.asarray(receivers), (nodes, nodes))
    x, model = normal(nodes, features), GAT(out=3, width=width, heads=heads)
    initial = jax.eval_shape(model.init, jax.random.key(0), x, graph)
    params = jax.tree.map(lambda leaf: normal(*leaf.shape) / 2, initial)

    @jax.jit
    @jax.grad
    def step(params, x, graph):
        return (model.apply(params, x, graph) ** 2).mean()

    lowered = step.lower(params, x, graph)
    shapes = re.findall(r"tensor<((?:\d+x)+)\w+>", lowered.as_text())
    largest = max(math.prod(map(int, shape.split("x")[:-1])) for shape in shapes)
    assert largest <= (edges + nodes) * heads * width < nodes * nodes / 50
    gradients = jax.tree.leaves(lowered.compile()(params, x, graph))
    assert all(np.isfinite(g).all() for g in gradients) and any(np.abs(g).max() for g in gradients)
