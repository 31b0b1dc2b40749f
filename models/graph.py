"""Who hears whom: the one vocabulary of every model here.

A graph says which senders each receiver hears. A model scores the pairs, normalises the scores
over each receiver's senders and mixes what they send:

    weights = graph.softmax(scores)        output = graph.mix(weights, values)

That is attention, whatever the graph: all pairs of words (`Dense`), the citations of a paper
(`Sparse`), the cells of a memory. Both kinds have the same methods and give the same numbers; the
cost of a Sparse graph grows with its edges, never with receivers x senders.

Shapes: Q receivers, K senders, E edges, H heads, D width per head, F features.
    node array   [..., Q or K, F] for send, pair and reduce; [..., Q or K, H, D] for dot and mix
    edge array   the graph's edge shape plus exactly one axis (heads or features):
                 [..., Q, K, H] in a Dense graph, [E, H] in a Sparse one
Senders and receivers may be different sets. A receiver without senders gets zeros, everywhere.
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

Reduction = Literal["sum", "mean", "max"]


@struct.dataclass
class Dense:
    """All pairs, or those that a mask allows: mask [..., Q, K], true where Q hears K.

    Without a mask every receiver hears every sender, so `send` and `reduce` give one row that
    broadcasts over receivers, and the methods that must know how many there are need the mask.
    """

    mask: Array | None = None

    def send(self, k: Array) -> Array:
        """What each edge carries from its sender: [..., K, F] -> [..., 1, K, F]."""
        return k[..., None, :, :]

    def pair(self, f: Callable[[Array, Array], Array], q: Array, k: Array) -> Array:
        """f(receiver, sender) on every edge: [..., Q, F], [..., K, F] -> [..., Q, K, F]."""
        return f(q[..., :, None, :], k[..., None, :, :])

    def dot(self, q: Array, k: Array) -> Array:
        """Inner products per head: [..., Q, H, D], [..., K, H, D] -> [..., Q, K, H]."""
        return jnp.einsum("...qhd,...khd->...qkh", q, k)

    def softmax(self, scores: Array) -> Array:
        """Weights over each receiver's senders: positive, summing to one. [..., Q, K, H]."""
        exact = self._kept(wide(scores), -jnp.inf)
        top = _finite(jax.lax.stop_gradient(exact.max(-2, keepdims=True, initial=-jnp.inf)))
        powers = jnp.exp(exact - top)
        return _divide(powers, powers.sum(-2, keepdims=True)).astype(scores.dtype)

    def reduce(self, messages: Array, how: Reduction = "sum") -> Array:
        """Sum, mean or maximum over each receiver's senders: [..., Q, K, F] -> [..., Q, F]."""
        if how == "max":
            return _finite(self._kept(messages, -jnp.inf).max(-2))
        if how == "mean" and self.mask is None:
            return messages.mean(-2)
        total = self._kept(messages, 0).sum(-2)
        return total if how == "sum" else _divide(total, self.degree())

    def mix(self, weights: Array, values: Array) -> Array:
        """Weighted sums per head: [..., Q, K, H], [..., K, H, D] -> [..., Q, H, D]."""
        return jnp.einsum("...qkh,...khd->...qhd", self._kept(weights, 0), values)

    def degree(self) -> Array:
        """How many senders each receiver hears: [..., Q, 1]."""
        return self._needed("degree").sum(-1, keepdims=True, dtype=jnp.float32)

    def with_self_loops(self) -> "Dense":
        """The same graph, every node hearing itself too."""
        mask = self._needed("with_self_loops")
        _square(mask.shape[-2:])
        return Dense(mask | jnp.eye(mask.shape[-1], dtype=bool))

    def _kept(self, edges: Array, other: float) -> Array:
        return edges if self.mask is None else jnp.where(self.mask[..., None], edges, other)

    def _needed(self, what: str) -> Array:
        if self.mask is None:
            raise ValueError(f"{what} of a Dense graph needs its mask: it knows no receivers")
        return self.mask


@struct.dataclass
class Sparse:
    """A list of edges: senders [E], receivers [E], and shape = (Q receivers, K senders).

    `mask` [E] is false on edges that are not there, which lets graphs of many sizes share one
    shape. Leading batch axes are `jax.vmap`'s; many small graphs are one large one with offsets.
    """

    senders: Array
    receivers: Array
    shape: tuple[int, int] = struct.field(pytree_node=False)
    mask: Array | None = None

    def send(self, k: Array) -> Array:
        """What each edge carries from its sender: [K, F] -> [E, F]."""
        return k[self.senders]

    def pair(self, f: Callable[[Array, Array], Array], q: Array, k: Array) -> Array:
        """f(receiver, sender) on every edge: [Q, F], [K, F] -> [E, F]."""
        return f(q[self.receivers], k[self.senders])

    def dot(self, q: Array, k: Array) -> Array:
        """Inner products per head: [Q, H, D], [K, H, D] -> [E, H]."""
        return (q[self.receivers] * k[self.senders]).sum(-1)

    def softmax(self, scores: Array) -> Array:
        """Weights over each receiver's senders: positive, summing to one. [E, H]."""
        exact = self._kept(wide(scores), -jnp.inf)
        top = jax.lax.stop_gradient(self._max(exact))
        powers = jnp.exp(exact - top[self.receivers])
        return _divide(powers, self._sum(powers)[self.receivers]).astype(scores.dtype)

    def reduce(self, messages: Array, how: Reduction = "sum") -> Array:
        """Sum, mean or maximum over each receiver's senders: [E, F] -> [Q, F]."""
        if how == "max":
            return self._max(self._kept(messages, -jnp.inf))
        total = self._sum(self._kept(messages, 0))
        return total if how == "sum" else _divide(total, self.degree())

    def mix(self, weights: Array, values: Array) -> Array:
        """Weighted sums per head: [E, H], [K, H, D] -> [Q, H, D]."""
        return self._sum(self._kept(weights, 0)[..., None] * values[self.senders])

    def degree(self) -> Array:
        """How many senders each receiver hears: [Q, 1]."""
        return self._sum(self._kept(jnp.ones((*self.receivers.shape, 1)), 0))

    def with_self_loops(self) -> "Sparse":
        """The same graph, every node hearing itself exactly once.

        Stored loops are masked and one loop per node is added behind the edges, so the last N
        entries of an edge array are the loops.
        """
        nodes = _square(self.shape)
        loops = jnp.arange(nodes, dtype=self.senders.dtype)
        proper = self._kept(self.senders != self.receivers, False)
        return Sparse(
            jnp.concatenate([self.senders, loops]),
            jnp.concatenate([self.receivers, loops]),
            self.shape,
            jnp.concatenate([proper, jnp.ones(nodes, bool)]),
        )

    def _kept(self, edges: Array, other: float | bool) -> Array:
        if self.mask is None:
            return edges
        mask = self.mask.reshape(self.mask.shape + (1,) * (edges.ndim - self.mask.ndim))
        return jnp.where(mask, edges, other)

    def _sum(self, edges: Array) -> Array:
        total = jax.ops.segment_sum(wide(edges), self.receivers, self.shape[0])
        return total.astype(edges.dtype)

    def _max(self, edges: Array) -> Array:
        return _finite(jax.ops.segment_max(edges, self.receivers, self.shape[0]))


Graph = Dense | Sparse


@struct.dataclass
class Matrix:
    """A graph with a number on every edge: the matrix [Q, K], and `matrix @ v` its mix.

    Bag-of-words features are one (words speak to the papers that hold them); so are
    D^-1/2 A D^-1/2 and attention. weights: an edge array of one head, or of a matrix per head.
    """

    graph: Graph
    weights: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.graph.shape if isinstance(self.graph, Sparse) else self.weights.shape[-3:-1]

    def __matmul__(self, v: Array) -> Array:
        """[K, F] -> [Q, F], or per head [K, H, D] -> [Q, H, D]."""
        if v.ndim == 3:
            return self.graph.mix(self.weights, v)
        return self.graph.mix(self.weights, v[:, None, :]).squeeze(1)

    def edges(self) -> dict[str, np.ndarray]:
        """The edges of one graph, on the host: source, target, self_loop [E] and weight [E, H]."""
        graph, weights = self.graph, np.asarray(self.weights)
        if isinstance(graph, Dense):
            mask = np.ones(self.shape, bool) if graph.mask is None else np.asarray(graph.mask)
            target, source = np.nonzero(mask)
            weights = weights[mask]
        else:
            there = slice(None) if graph.mask is None else np.asarray(graph.mask)
            source, target = (np.asarray(ends)[there] for ends in (graph.senders, graph.receivers))
            weights = weights[there]
        return dict(source=source, target=target, self_loop=source == target, weight=weights)


def symmetric(graph: Graph) -> Array:
    """The weights 1/sqrt(d_i d_j) of D^-1/2 A D^-1/2 (Kipf & Welling 2017): an edge array [.., 1].

    d is the number of senders a node hears; an edge from a node that hears nobody weighs zero.
    """
    degree = graph.degree()
    scale = jnp.where(degree > 0, jax.lax.rsqrt(jnp.maximum(degree, 1)), 0)
    return graph.pair(jnp.multiply, scale, scale)


def _divide(total: Array, count: Array) -> Array:
    """total / count, zero where the count is: the safe denominator keeps gradients finite too."""
    some = count != 0  # not a number is something
    return jnp.where(some, total / jnp.where(some, count, 1).astype(total.dtype), 0)


def wide(x: Array) -> Array:
    """At least float32: sums and exponentials of half-precision numbers are taken there."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _finite(top: Array) -> Array:
    """The maximum over nothing is -inf; here it is zero."""
    return jnp.where(jnp.isneginf(top), 0, top)


def _square(shape: tuple[int, ...]) -> int:
    if shape[0] != shape[1]:
        raise ValueError(f"self-loops need one set of nodes, got {shape[0]} and {shape[1]}")
    return shape[0]
