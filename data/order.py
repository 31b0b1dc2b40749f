"""The order of an epoch, computed index by index: nothing is sorted, stored or drawn ahead."""

import jax
import jax.numpy as jnp
from jax import Array

ROUNDS = 8


def shuffled(key: Array, index: Array, count: Array, most: int) -> Array:
    """Where `index` lies in the permutation of 0 .. count - 1 that belongs to the key.

    A Feistel network (Luby & Rackoff 1988) permutes the numbers of as many bits as `most` needs, an
    upper bound of `count` that is known when compiling; a number behind the end is permuted again
    until it lies before it (Black & Rogaway 2002). index [...] and count [...] are integers, of
    which a batch may have many of different epochs; keys [...].
    """
    bits = max((most - 1).bit_length(), 6)  # in fewer, some permutations would be rare
    low, high = bits // 2, bits - bits // 2
    draw = lambda key: jax.random.bits(key, (ROUNDS,), jnp.uint32)
    keys = jnp.vectorize(draw, signature="()->(r)")(key)  # [..., ROUNDS]
    count = jnp.asarray(count, jnp.uint32)

    def once(number: Array) -> Array:
        left, right = number >> low, number & ((1 << low) - 1)
        width = high  # of `left`; the halves change places in every round
        for i in range(ROUNDS):
            mixed = (right ^ keys[..., i]) * jnp.uint32(0x9E3779B1)
            mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x85EBCA77)
            left, right = right, left ^ ((mixed ^ (mixed >> 13)) & ((1 << width) - 1))
            width = bits - width
        return (left << low) | right  # ROUNDS is even: `right` has `low` bits again

    outside = lambda number: (number >= count).any()
    again = lambda number: jnp.where(number >= count, once(number), number)
    first = once(jnp.asarray(index, jnp.uint32))
    return jax.lax.while_loop(outside, again, first).astype(jnp.int32)


def epochs(seed: Array, step: Array, size: int, count: Array, most: int) -> Array:
    """Which of `count` examples the batch of a step holds: [size], every epoch in its own order.

    Epochs follow each other without a gap: a batch may hold the end of one and the start of the
    next.
    """
    place = step * size + jnp.arange(size)
    fold = jax.vmap(jax.random.fold_in, (None, 0))
    return shuffled(fold(jax.random.key(seed), place // count), place % count, count, most)
