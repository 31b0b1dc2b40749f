"""Dropout of dense arrays and of sparse matrices, and random bits that cost less than the model.

Threefry, JAX's default, is built for statistical independence anywhere; on a CPU its draws for
dropout cost several times the network they drop. `counter_key` turns any key into one whose bits
are a hash of a counter: flax's own `nn.Dropout` and `jax.random` (up to 32 bits a number) take it
unchanged, under vmap, grad and scan, at a tenth of the cost or less. It serves dropout and noise,
not cryptography.
"""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.random import define_prng_impl

from models.graph import Matrix


class Dropout(nn.Module):
    """Zeroes entries with probability `rate` and scales the rest by 1/(1-rate), in training only.

    Srivastava et al. 2014. Of a sparse matrix the stored entries are dropped: the rest are zero.
    """

    rate: float

    @nn.compact
    def __call__(self, x: Array | Matrix, train: bool):
        drop = nn.Dropout(self.rate, deterministic=not train)
        return x.replace(weights=drop(x.weights)) if isinstance(x, Matrix) else drop(x)


def counter_key(key: Array) -> Array:
    """A key of the counter hash, seeded by any other key."""
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl=_COUNTER)


def _hash(x: Array) -> Array:
    """MurmurHash3's finaliser: one to one on 32-bit words, every bit depending on every other."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def _fold_in(key: Array, data: Array) -> Array:
    word = jnp.stack([data, data ^ jnp.uint32(0x9E3779B9)], -1)  # a second stream for a second word
    return _hash(_hash(word) + _hash(key ^ key[::-1]) + key)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return _fold_in(key, jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape))


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    if width > 32:
        raise ValueError(f"counter keys draw up to 32 bits at a time, not {width}")
    count = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return _hash(_hash(count ^ key[0]) + key[1]).astype(f"uint{width}")


_COUNTER = define_prng_impl(
    key_shape=(2,),
    seed=lambda seed: _fold_in(jnp.zeros(2, jnp.uint32), seed.astype(jnp.uint32)),
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="counter",
    tag="ctr",
)
