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
Values to mix must be finite at masked edges too: they meet a weight of zero, and 0 * NaN is NaN.
"""

from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array

from models.edges import Groups, grouped_mix, stored, take, wide

Reduction = Literal["sum", "mean", "max"]


class _Kind:
    """What every kind of graph does alike, in terms of what each does in its own way."""

    mask: Array | None
    send: Callable[[Array], Array]
    _receive: Callable[[Array], Array]  # gives every edge what its receiver has
    _sum: Callable[[Array], Array]  # over each receiver's senders
    _max: Callable[[Array], Array]  # likewise; over none, the lowest number of the type

    def pair(self, f: Callable[[Array, Array], Array], q: Array, k: Array) -> Array:
        """f(receiver, sender) on every edge: [..., Q, F], [..., K, F] -> an edge array."""
        return f(self._receive(q), self.send(k))

    def softmax(self, scores: Array) -> Array:
        """Weights over each receiver's senders, positive and summing to one: an edge array."""
        return _softmax(self, scores)

    def reduce(self, messages: Array, how: Reduction = "sum") -> Array:
        """Sum, mean or maximum over each receiver's senders: an edge array -> [..., Q, F]."""
        if how not in get_args(Reduction):
            raise ValueError(f"reduce: how = {how!r}, expected 'sum', 'mean' or 'max'")
        if how == "sum":
            return self._sum(self._kept(messages, 0))
        heard = self.reduce(jnp.ones((*messages.shape[:-1], 1)))  # [..., Q, 1]
        if how == "mean":
            return _divide(self._sum(self._kept(wide(messages), 0)), heard, messages)
        dtype = messages.dtype
        lowest = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.integer) else -jnp.inf
        return jnp.where(heard > 0, self._max(self._kept(messages, lowest)), 0)

    def _kept(self, edges: Array, other: float) -> Array:
        return edges if self.mask is None else jnp.where(self.mask[..., None], edges, other)


@jax.custom_jvp
def _softmax(graph: _Kind, scores: Array) -> Array:
    exact = graph._kept(wide(scores), -jnp.inf)
    top = graph._max(exact)
    top = jnp.where(jnp.isneginf(top), 0, top)  # where nobody is heard
    powers = jnp.exp(exact - graph._receive(top))
    return _divide(powers, graph._receive(graph._sum(powers)), scores)


@_softmax.defjvp
def _softmax_change(primals, changes):
    """That of jax.nn.softmax: the weights are all it needs, where autodiff keeps every step."""
    graph, weights = primals[0], _softmax(*primals)
    pull = wide(weights) * graph._kept(wide(changes[1]), 0)
    change = pull - wide(weights) * graph._receive(graph._sum(pull))
    return weights, change.astype(weights.dtype)


@struct.dataclass
class Dense(_Kind):
    """All pairs, or those that a mask allows: mask [..., Q, K], true where Q hears K.

    Without a mask every receiver hears every sender, so `send` and `reduce` give one row that
    broadcasts over receivers, and the methods that must know how many there are need the mask.
    """

    mask: Array | None = None

    def send(self, k: Array) -> Array:
        """What each edge carries from its sender: [..., K, F] -> [..., 1, K, F]."""
        return k[..., None, :, :]

    def dot(self, q: Array, k: Array) -> Array:
        """Inner products per head: [..., Q, H, D], [..., K, H, D] -> [..., Q, K, H]."""
        return jnp.einsum("...qhd,...khd->...qkh", q, k)

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

    def _needed(self, what: str) -> Array:
        if self.mask is None:
            raise ValueError(f"{what} of a Dense graph needs its mask: it knows no receivers")
        return self.mask

    def _receive(self, q: Array) -> Array:
        return q[..., :, None, :]

    def _sum(self, edges: Array) -> Array:
        return edges.sum(-2)

    def _max(self, edges: Array) -> Array:
        return jax.lax.reduce_max(edges, (edges.ndim - 2,))


@struct.dataclass
class Sparse(_Kind):
    """A list of edges: senders [E], receivers [E], and shape = (Q receivers, K senders).

    `mask` [E] is false on edges that are not there, which lets graphs of many sizes share one
    shape. Leading batch axes are `jax.vmap`'s; many small graphs are one large one with offsets.
    """

    senders: Array
    receivers: Array
    shape: tuple[int, int] = struct.field(pytree_node=False)
    mask: Array | None = None
    groups: tuple[Groups, ...] = ()  # by receiver and by sender, if made by `grouped`

    def grouped(self) -> "Sparse":
        """The same graph, made on the host to mix faster where nodes have many edges: word counts
        times a weight matrix, forth and back, take half the time. Other edges need other groups;
        forward-mode differentiation does not know of them."""
        ends = np.asarray(self.receivers), np.asarray(self.senders)
        groups = Groups.of(*ends, *self.shape), Groups.of(*ends[::-1], *self.shape[::-1])
        return Sparse(self.senders, self.receivers, self.shape, self.mask, groups)

    def send(self, k: Array) -> Array:
        """What each edge carries from its sender: [K, F] -> [E, F]."""
        return take(stored(k), self.senders)

    def dot(self, q: Array, k: Array) -> Array:
        """Inner products per head: [Q, H, D], [K, H, D] -> [E, H]."""
        return self.pair(jnp.multiply, q, k).sum(-1)

    def mix(self, weights: Array, values: Array) -> Array:
        """Weighted sums per head: [E, H], [K, H, D] -> [Q, H, D]."""
        weights = self._kept(weights, 0)
        if self.groups:
            return grouped_mix(self.groups, (self.receivers, self.senders), weights, values)
        return self._sum(weights[..., None] * self.send(values))

    def degree(self) -> Array:
        """How many senders each receiver hears: [Q, 1]."""
        return self.reduce(jnp.ones((*self.receivers.shape, 1)))

    def with_self_loops(self) -> "Sparse":
        """The same graph, every node hearing itself exactly once: stored loops are masked, and one
        loop per node is added behind the edges, as the last N entries of every edge array."""
        nodes = jnp.arange(_square(self.shape), dtype=self.senders.dtype)
        proper = (self.senders != self.receivers) & (True if self.mask is None else self.mask)
        edges = self.senders, self.receivers, proper
        loops = nodes, nodes, jnp.ones(nodes.shape, bool)
        senders, receivers, mask = map(jnp.concatenate, zip(edges, loops, strict=True))
        return Sparse(senders, receivers, self.shape, mask)

    def _receive(self, q: Array) -> Array:
        return take(stored(q), self.receivers)

    def _sum(self, edges: Array) -> Array:
        total = jax.ops.segment_sum(wide(edges), self.receivers, self.shape[0])
        return total.astype(jnp.promote_types(edges.dtype, jnp.int32))  # small integers stay wide

    def _max(self, edges: Array) -> Array:
        return jax.ops.segment_max(edges, self.receivers, self.shape[0])


Graph = Dense | Sparse


@struct.dataclass
class Matrix:
    """A matrix [Q, K] as a graph with a number on every edge; `matrix @ v` mixes the rows of v.

    Bag-of-words features are one (words speak to the papers that hold them); so are
    D^-1/2 A D^-1/2 and attention. `weights` is an edge array; each of its heads is a matrix.
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

    def with_self_loops(self) -> "Matrix":
        """The same matrix with ones on the diagonal, whatever stood there: A + I."""
        graph = self.graph.with_self_loops()
        if isinstance(graph, Sparse):  # the loops are behind the edges
            ones = jnp.ones((self.shape[0], *self.weights.shape[1:]), self.weights.dtype)
            return Matrix(graph, jnp.concatenate([self.weights, ones]))
        loops = jnp.eye(self.shape[0], dtype=bool)[..., None]
        return Matrix(graph, jnp.where(loops, 1, self.weights))

    def edges(self) -> dict[str, np.ndarray]:
        """A Sparse graph's edges, on the host: source, target, self_loop [E] and weight [E, H]."""
        graph = self.graph
        assert isinstance(graph, Sparse)
        there = slice(None) if graph.mask is None else np.asarray(graph.mask)
        arrays = graph.senders, graph.receivers, self.weights
        source, target, weight = (np.asarray(array)[there] for array in arrays)
        return dict(source=source, target=target, self_loop=source == target, weight=weight)


def symmetric(graph: Graph, weights: Array | None = None) -> Array:
    """w_ij / sqrt(d_i d_j), the numbers of D^-1/2 W D^-1/2 (Kipf & Welling 2017): an edge array.

    d sums the weights of the senders that a node hears; without `weights`, an edge array as well,
    every w is 1. An edge from a node that hears nobody weighs zero.
    """
    degree = graph.degree() if weights is None else graph.reduce(weights)
    scale = jnp.where(degree > 0, jax.lax.rsqrt(jnp.where(degree > 0, degree, 1)), 0)
    first = 1 if weights is None else weights  # so that large weights meet each scale by itself
    return graph.pair(lambda q, k: first * q * k, scale, scale)


def _divide(total: Array, count: Array, like: Array) -> Array:
    """total / count in the precision of `like`; zero, with a zero gradient, where the count is."""
    some = count != 0  # true of NaN, so that the quotient shows it
    quotient = jnp.where(some, total / jnp.where(some, count, 1), 0)
    return quotient.astype(jnp.result_type(like, float))


def _square(shape: tuple[int, ...]) -> int:
    if shape[0] != shape[1]:
        raise ValueError(f"self-loops need one set of nodes, got {shape[0]} and {shape[1]}")
    return shape[0]
