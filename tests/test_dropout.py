"""Counter keys are random enough for dropout: each bit, along each axis that a run draws on."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models.dropout import Dropout, _hash, counter_key
from models.graph import Dense, Matrix, Sparse

COUNT = 1 << 16
SIGMAS = 6  # of a standard normal; the draws are fixed, so what passes goes on passing
KEY = counter_key(jax.random.key(0))


def wrap(data):
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(KEY))


def fold(steps):
    return jax.vmap(lambda step: jax.random.fold_in(KEY, step))(steps)


def seeds(count):
    return jax.vmap(lambda seed: counter_key(jax.random.key(seed)))(jnp.arange(count))


def steps():
    """As training makes them, of the run's own key."""
    keys = jax.vmap(lambda step: jax.random.fold_in(jax.random.key(0), step))(jnp.arange(64))
    return jax.vmap(counter_key)(keys)


def chain():
    return jax.lax.scan(lambda key, _: tuple(jax.random.split(key)), KEY, length=64)[1]


# Keys that have to be independent, from each way that a program comes by them.
FAMILIES = {
    "seeds": lambda: seeds(64),
    "steps": steps,
    "layers": lambda: Layers(64).apply({}, rngs={"dropout": KEY}),
    "fold_in": lambda: fold(jnp.arange(64)),
    "powers": lambda: fold(1 << jnp.arange(32, dtype=jnp.uint32)),
    "split": lambda: jax.random.split(KEY, 64),
    "chain": chain,
}
families = pytest.mark.parametrize("family", FAMILIES)


class Layer(nn.Module):
    @nn.compact
    def __call__(self):
        return self.make_rng("dropout")


class Layers(nn.Module):
    depth: int

    @nn.compact
    def __call__(self):
        return jnp.stack([Layer()() for _ in range(self.depth)])


@functools.partial(jax.jit, static_argnames="count")
def words(keys, count):
    return jax.vmap(lambda key: jax.random.bits(key, (count,), "uint32"))(keys)


@jax.jit
def bits(words):
    """Each of the 32, as -1 or 1: [..., N] -> [..., N, 32]."""
    return 2.0 * ((words[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & 1) - 1


@jax.jit
def correlations(one, other):
    """Between columns of signs, in standard deviations of chance: [N, A], [N, B] -> [A, B]."""
    return one.T @ other / np.sqrt(len(one))


def between(columns):
    """The correlations of all pairs of columns: [N, A] -> [A * (A - 1) / 2]."""
    return np.asarray(correlations(columns, columns))[np.triu_indices(columns.shape[1], 1)]


@functools.cache
def signs():
    """The bits of one stream, [COUNT, 32]."""
    return bits(words(KEY[None], COUNT)[0])


def spread(values):
    """Whether values that should be standard normal are: their largest, and their deviation."""
    values = np.asarray(values)
    assert np.abs(values).max() < SIGMAS
    assert abs((values**2).mean() - 1) < SIGMAS * np.sqrt(2 / values.size)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6, 0.99])
def test_rate(rate):
    dropped = Dropout(rate).apply({}, jnp.ones((COUNT,)), True, rngs={"dropout": KEY})
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)
    deviation = np.sqrt(COUNT * rate * (1 - rate))
    assert abs((dropped == 0).sum() - COUNT * rate) < SIGMAS * deviation


def test_every_bit_is_balanced_and_knows_no_other():
    spread(signs().sum(0) / np.sqrt(COUNT))
    spread(between(signs()))


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 100, 256, 1024, 4096, 32768])
def test_positions_are_independent(lag):
    """Each bit of a position and each bit of a later one."""
    spread(correlations(signs(), jnp.roll(signs(), lag, 0)))


@families
def test_keys_are_independent(family):
    """Steps, layers and runs: balanced over keys, uncorrelated, and no stream another's shift."""
    streams = words(FAMILIES[family](), 4096)
    rows = bits(streams)  # [S, N, 32]
    spread(rows.sum(0) / np.sqrt(len(rows)))
    spread(between(rows.reshape(len(rows), -1).T))
    # 64 * 4096 draws of 2 ** 32: eight repeats are expected.
    assert streams.size - len(np.unique(streams)) < 8 + SIGMAS * np.sqrt(8)


@pytest.mark.parametrize(
    "many",
    [seeds, lambda n: fold(jnp.arange(n)), lambda n: jax.random.split(KEY, n)],
    ids=["seeds", "fold_in", "split"],
)
def test_no_two_of_many_keys_are_the_same(many):
    data = jax.random.key_data(many(100_000))
    assert len(np.unique(data, axis=0)) == 100_000
    rows = bits(data).reshape(100_000, 64)
    spread(rows.sum(0) / np.sqrt(100_000))
    spread(between(rows))


def test_a_changed_bit_changes_half_of_a_key():
    """Of the number that is folded in, and of the key that it is folded into."""
    data, steps = words(KEY[None], 4096)[0].reshape(-1, 2), jnp.arange(2048, dtype=jnp.uint32)

    @jax.jit
    @jax.vmap
    def child(data, step):
        return jax.random.key_data(jax.random.fold_in(wrap(data), step))

    before = bits(child(data, steps))
    for bit in range(0, 32, 5):
        flip = np.uint32(1 << bit)
        changed = [data ^ np.array(f, np.uint32) for f in ([flip, 0], [0, flip], [flip, flip])]
        for after in (child(data, steps ^ flip), *(child(other, steps) for other in changed)):
            same = (before * bits(after)).sum(0)
            assert np.abs(same).max() < SIGMAS * np.sqrt(2048)


def test_every_bit_of_a_key_changes_the_stream():
    """No bit's change shifts or permutes it, save the 12 that count the first 4096 draws."""
    flips = 1 << np.arange(64, dtype=np.uint64)[12:]
    data = jax.random.key_data(KEY) ^ np.stack([flips, flips >> 32], 1).astype(np.uint32)
    streams = words(wrap(jnp.concatenate([data, jax.random.key_data(KEY)[None]])), 4096)
    assert streams.size - len(np.unique(streams)) < 8 + SIGMAS * np.sqrt(8)
    rows = bits(streams).reshape(len(streams), -1)
    assert np.abs(between(rows.T)).max() < 0.1 * np.sqrt(rows.shape[1])


def test_the_hash_is_murmurhash3_s_finaliser():
    """Its published values of an empty string, for the seeds 0, 1 and 2 ** 32 - 1."""
    hashed = _hash(jnp.array([0, 1, 0xFFFFFFFF], jnp.uint32))
    assert [hex(value) for value in hashed.tolist()] == ["0x0", "0x514e28b7", "0x81f16f39"]


def test_transformations_do_not_change_the_draws():
    draw = lambda step: jax.random.normal(jax.random.fold_in(KEY, step), (3, 5))
    steps = jnp.arange(4)
    expected = np.stack([draw(step) for step in range(4)])
    assert len(np.unique(expected)) == expected.size
    np.testing.assert_array_equal(np.stack([jax.jit(draw)(step) for step in steps]), expected)
    np.testing.assert_array_equal(jax.vmap(draw)(steps), expected)
    np.testing.assert_array_equal(jax.lax.map(draw, steps), expected)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(draw)))(steps[None])[0], expected)


def test_normal_and_uniform_numbers():
    uniform, normal = (
        np.asarray(f(KEY, (COUNT,))) for f in (jax.random.uniform, jax.random.normal)
    )
    expected = COUNT / 64
    counts = np.histogram(uniform, 64, (0, 1))[0]
    assert counts.sum() == COUNT and np.abs(counts - expected).max() < SIGMAS * np.sqrt(expected)
    # The moments of a normal number are 0, 1, 0, 3; their deviations follow from the next ones.
    for power, moment, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        error = (normal.astype(np.float64) ** power).mean() - moment
        assert abs(error) < SIGMAS * np.sqrt(variance / COUNT)


def test_permutations():
    keys = jax.random.split(KEY, 2000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.permutation(key, 10)))(keys))
    np.testing.assert_array_equal(np.sort(drawn, 1), np.tile(np.arange(10), (2000, 1)))
    counts = (drawn[..., None] == np.arange(10)).sum(0)  # of each number at each place
    assert np.abs(counts - 200).max() < SIGMAS * np.sqrt(2000 * 0.1 * 0.9)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_widths(dtype):
    drawn = np.asarray(jax.random.bits(KEY, (COUNT,), dtype))
    assert drawn.dtype == dtype
    size = 8 * drawn.dtype.itemsize
    totals = bits(jnp.asarray(drawn, "uint32"))[:, :size].sum(0)
    assert np.abs(totals).max() < SIGMAS * np.sqrt(COUNT)


def test_wide_draws_are_refused():
    with jax.enable_x64(True):
        key = counter_key(jax.random.key(0))
        with pytest.raises(ValueError, match="up to 32 bits at a time, not 64"):
            jax.random.bits(key, (2,), "uint64")


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_matrix_loses_stored_entries(kind):
    rows, columns = np.arange(1000), np.arange(1000)[::-1]
    graph = Sparse(jnp.asarray(columns), jnp.asarray(rows), (1000, 1000))
    weights = jnp.full((1000, 2), 3.0)
    if kind == "dense":
        graph, weights = Dense(jnp.ones((40, 25), bool)), weights.reshape(40, 25, 2)
    matrix = Matrix(graph, weights)
    dropped = Dropout(0.4).apply({}, matrix, True, rngs={"dropout": KEY})
    assert dropped.graph is graph and dropped.weights.shape == weights.shape
    np.testing.assert_allclose(np.unique(dropped.weights), [0, 5])
    kept = np.asarray(dropped.weights != 0).reshape(1000, 2)
    assert np.abs(kept.mean(0) - 0.6).max() < SIGMAS * np.sqrt(0.24 / 1000)
    assert (kept[:, 0] != kept[:, 1]).any()


@pytest.mark.parametrize("rate, train", [(0.5, False), (0.0, True)])
def test_nothing_is_dropped_in_evaluation_or_at_rate_zero(rate, train):
    x = jnp.arange(6.0).reshape(3, 2)
    matrix = Matrix(Sparse(jnp.arange(3), jnp.arange(3), (3, 3)), x)
    np.testing.assert_array_equal(Dropout(rate).apply({}, x, train, rngs={"dropout": KEY}), x)
    np.testing.assert_array_equal(
        Dropout(rate).apply({}, matrix, train, rngs={"dropout": KEY}).weights, x
    )
