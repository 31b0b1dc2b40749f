"""Attention over any graph: score, softmax over each receiver's senders, mix.

    weights_ij = softmax_j(score(q_i, k_j))        output_i = sum_j weights_ij v_j

Each score below takes the graph, receivers [..., Q, H, D] and senders [..., K, H, D], and gives an
edge array with H heads. Which pairs are scored is up to the graph.
"""

import math
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.dropout import Dropout
from models.edges import wide
from models.graph import Graph, Matrix


def dot(graph: Graph, q: Array, k: Array) -> Array:
    """q.k / sqrt(D): unit-variance q and k give unit-variance scores (Vaswani et al. 2017)."""
    return graph.dot(q / math.sqrt(q.shape[-1]), k)


def additive(
    graph: Graph, q: Array, k: Array, a: Array, f: Callable[[Array], Array] = jnp.tanh
) -> Array:
    """a.f(q + k), with a [H, D]: Bahdanau et al. 2015 with tanh, GATv2 (Brody et al. 2022) with
    LeakyReLU. GAT's LeakyReLU(a1.q + a2.k) is the case D = 1."""
    summed = graph.pair(jnp.add, *(jax.lax.collapse(x, -2) for x in (q, k)))  # [..., H * D]
    return (f(summed.reshape(*summed.shape[:-1], *a.shape)) * a).sum(-1)


def cosine(graph: Graph, q: Array, k: Array, floor: float = 1e-6) -> Array:
    """The cosine of q and k (the content address of Graves et al. 2014); zero for a zero vector."""

    def unit(x):
        exact = wide(x)  # squares overflow in half precision
        square = jnp.maximum((exact * exact).sum(-1, keepdims=True), floor * floor)
        return (exact * jax.lax.rsqrt(square)).astype(x.dtype)

    return graph.dot(unit(q), unit(k))


class Attention(nn.Module):
    """Multi-head attention of x over y (Vaswani et al. 2017): the mixer of a Transformer.

    x [..., Q, F], y [..., K, F] -> [..., Q, width]; heads share `width` evenly.
    """

    width: int
    heads: int = 1
    dropout: float = 0.0

    def __post_init__(self):
        if self.width % self.heads:
            raise ValueError(f"width={self.width} is not a multiple of heads={self.heads}")
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array, y: Array, graph: Graph, train: bool = False) -> Array:
        shape = (self.heads, self.width // self.heads)
        q = nn.DenseGeneral(shape, name="query")(x)  # [..., Q, H, D]
        k = nn.DenseGeneral(shape, name="key")(y)  # [..., K, H, D]
        v = nn.DenseGeneral(shape, name="value")(y)  # [..., K, H, D]
        weights = graph.softmax(dot(graph, q, k))
        self.sow("intermediates", "attention", Matrix(graph, weights))
        mixed = graph.mix(Dropout(self.dropout)(weights, train), v)  # [..., Q, H, D]
        return nn.DenseGeneral(self.width, axis=(-2, -1), name="out")(mixed)
