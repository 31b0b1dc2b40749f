"""What makes Sparse graphs fast is held equal to the plain form: values, gradients, gradients of
gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.graph import Dense, Sparse
from tests.draws import close, normal, pullback, same

DEGREES = (0, 1, 8, 9, 17, 3)  # of receivers: none, under, at and over a group of eight, two groups
SENDERS, HEADS, WIDTH = 20, 2, 3


def graph(mask=None):
    """Edges in no order; some pairs of nodes have several."""
    rng = np.random.default_rng(0)
    receivers = rng.permutation(np.repeat(np.arange(len(DEGREES)), DEGREES))
    senders = rng.integers(1, SENDERS, receivers.size)  # nobody hears node 0
    ends = jnp.asarray(senders), jnp.asarray(receivers)
    return Sparse(*ends, (len(DEGREES), SENDERS), mask)


def inputs(dtype="float32"):
    shapes = (sum(DEGREES), HEADS), (SENDERS, HEADS, WIDTH)
    return [normal(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_a_grouped_graph_mixes_as_a_plain_one(dtype, tolerance, masked):
    mask = jnp.arange(sum(DEGREES)) % 3 > 0 if masked else None
    plain, grouped = graph(mask), graph(mask).grouped()
    same(grouped.mix, plain.mix, *inputs(dtype), tolerance=tolerance)


def test_so_it_does_in_a_population_and_in_second_derivatives():
    weights, values = inputs()
    many = jnp.stack([values, 2 * values, -values])
    runs = [jax.vmap(functools.partial(g.mix, weights)) for g in (graph(), graph().grouped())]
    same(*runs, many)

    def curvature(g):
        """The loss's Hessian times a vector, forward over reverse."""
        loss = lambda values: jnp.square(jnp.tanh(g.mix(weights, values))).sum()
        return lambda values: jax.jvp(jax.grad(loss), (values,), (normal(*values.shape, seed=3),))[
            1
        ]

    same(curvature(graph().grouped()), curvature(graph()), values)


def test_a_number_that_is_none_reaches_only_who_hears_it():
    plain, (weights, values) = graph(), inputs()
    hears = np.isin(np.arange(len(DEGREES)), np.asarray(plain.receivers)[plain.senders == 7])
    assert 0 < hears.sum() < len(DEGREES)
    mixed = plain.grouped().mix(weights, values.at[7].set(jnp.nan))
    assert (np.isnan(mixed).any((1, 2)) == hears).all()


def test_a_weight_that_is_infinite_stays_where_it_is():
    """A gap in a group is neither weight nor value, so their product is no NaN."""
    plain, (weights, values) = graph(), inputs()
    weights = weights.at[3].set(jnp.inf)
    np.testing.assert_allclose(
        plain.grouped().mix(weights, values), plain.mix(weights, values), 1e-5
    )


def test_one_head_may_be_shared_and_small_integers_do_not_wrap():
    (weights, values), plain = inputs(), graph()
    same(plain.grouped().mix, plain.mix, weights[:, :1], values)
    same(plain.grouped().mix, plain.mix, weights, values[:, :1])
    ones = jnp.full((sum(DEGREES), 1), 100, jnp.int8), jnp.ones((SENDERS, 1, 1), jnp.int8)
    found, expected = plain.grouped().mix(*ones), plain.mix(*ones)
    assert found.dtype == expected.dtype and found.ravel().tolist() == [100 * d for d in DEGREES]
    with pytest.raises(ValueError, match="broadcast"):
        plain.grouped().mix(weights[1:], values)


def test_groups_do_not_outlive_their_edges():
    """Self-loops make another graph."""
    nodes = jnp.arange(4)
    plain = Sparse(nodes, nodes[::-1], (4, 4))
    assert plain.grouped().with_self_loops().groups == ()


def test_a_graph_without_edges_can_be_grouped():
    none = jnp.zeros(0, jnp.int32)
    mixed = Sparse(none, none, (2, 3)).grouped().mix(jnp.zeros((0, 1)), jnp.ones((3, 1, 2)))
    assert mixed.shape == (2, 1, 2) and not mixed.any()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_softmax_differentiates_as_the_plain_formula(kind):
    """Against jax.nn.softmax where a mask is true, forwards, backwards and twice."""
    mask = np.random.default_rng(0).random((5, 7)) < 0.5
    mask[2] = False  # this one hears nobody
    receivers, senders = np.nonzero(mask)
    scores, there = normal(5, 7, HEADS), jnp.asarray(mask)[..., None]
    ends = jnp.asarray(senders), jnp.asarray(receivers)
    graph = Dense(jnp.asarray(mask)) if kind == "dense" else Sparse(*ends, (5, 7))

    def ours(scores):
        found = graph.softmax(scores if kind == "dense" else scores[receivers, senders])
        return (
            found if kind == "dense" else jnp.zeros(scores.shape).at[receivers, senders].set(found)
        )

    def plain(scores):
        heard = there.any(1, keepdims=True)
        found = jax.nn.softmax(jnp.where(there | ~heard, scores, -jnp.inf), 1)
        return jnp.where(there, found, 0)

    same(ours, plain, scores)
    forward = lambda f: lambda scores: jax.jvp(f, (scores,), (normal(*scores.shape, seed=4),))[1]
    same(forward(ours), forward(plain), scores)
    slope = lambda f: lambda scores: pullback(f, scores)[1][0]
    close(*(pullback(slope(f), scores)[1][0] for f in (ours, plain)))
