"""How a list of edges is read and summed quickly; graph.py says what the sums are for.

On a CPU all is memory traffic: what counts is how seldom a message is stored, or made.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array


def take(x: Array, nodes: Array) -> Array:
    """x[nodes], without testing that each is there: a graph's are."""
    return x.at[nodes].get(mode="promise_in_bounds")


def stored(x: Array, zeros: int = 0) -> Array:
    """x, which many edges are about to read, and that many rows of zeros behind it.

    On a CPU, XLA fuses whatever makes x into the reading, and makes it anew for every edge. It does
    not fuse through a branch whose condition it cannot see. That takes a fifth off a step of GAT.
    """
    store = lambda x: jnp.concatenate([x, jnp.zeros((zeros, *x.shape[1:]), x.dtype)])
    if jax.default_backend() != "cpu":
        return store(x)
    hidden = jax.lax.optimization_barrier(jnp.bool_(True))
    return jax.lax.cond(hidden, store, lambda x: jnp.zeros_like(store(x)), x)


SIZE = 8  # of a group: of 16, more would stay empty; of 4, more sums remain


@struct.dataclass
class Groups:
    """Edges in G groups of eight with one end in common.

    A group is summed in registers: no message is ever stored, and G sums remain to be added up, not
    E. That halves the product of a sparse feature matrix and a weight matrix, forth and back.
    """

    edges: Array  # [G, 8] where an edge is in the list; in a gap, behind its end
    others: Array  # [G, 8] its other end; in a gap, behind the last node
    nodes: Array  # [G] the end in common, ascending
    count: int = struct.field(pytree_node=False)  # of nodes, with and without edges

    @classmethod
    def of(cls, ends: np.ndarray, others: np.ndarray, count: int, others_count: int) -> "Groups":
        order = np.argsort(ends, kind="stable")
        degree = np.bincount(ends, minlength=count)
        groups = -(-degree // SIZE)  # of each node
        nodes = np.repeat(np.arange(count), groups)
        start, first = np.cumsum(degree) - degree, np.cumsum(groups) - groups
        rank = np.arange(ends.size) - start[ends[order]]  # of an edge among those of its node
        place = first[ends[order]] + rank // SIZE, rank % SIZE
        edges = np.full((nodes.size, SIZE), ends.size)
        across = np.full(edges.shape, others_count)
        edges[place], across[place] = order, others[order]
        index = functools.partial(jnp.asarray, dtype=jnp.int32)
        return cls(index(edges), index(across), index(nodes), count)

    def mix(self, weights: Array, values: Array) -> Array:
        """Weighted sums per head: [E, H], [others, H, D] -> [nodes, H, D]."""
        weights = take(stored(weights, zeros=1), self.edges)  # [G, 8, H]
        values = stored(values, zeros=1)  # both: a gap adds no NaN
        total = jnp.zeros((), wide(weights).dtype)
        for i in range(SIZE):
            total += wide(weights[:, i, :, None] * take(values, self.others[:, i]))  # [G, H, D]
        total = jax.ops.segment_sum(total, self.nodes, self.count, indices_are_sorted=True)
        return total.astype(jnp.promote_types(jnp.result_type(weights, values), jnp.int32))


def grouped_mix(
    groups: tuple[Groups, ...], ends: tuple[Array, Array], weights: Array, values: Array
) -> Array:
    """groups[0].mix; for its gradient the receivers speak, as groups[1] has it, to the senders."""
    heads = jnp.broadcast_shapes(weights.shape[1:], values.shape[1:2])
    weights = jnp.broadcast_to(weights, ends[0].shape + heads)
    values = jnp.broadcast_to(values, values.shape[:1] + heads + values.shape[2:])
    return _mix(groups, ends, weights, values)


@jax.custom_vjp
def _mix(groups, ends, weights, values):
    return groups[0].mix(weights, values)


def _forward(groups, ends, weights, values):
    return groups[0].mix(weights, values), (groups, ends, weights, values)


def _backward(inputs, change):
    groups, (here, there), weights, values = inputs
    slope = (take(stored(change), here) * take(stored(values), there)).sum(-1)  # [E, H]
    back = groups[1].mix(weights, change)
    return None, None, slope.astype(weights.dtype), back.astype(values.dtype)


_mix.defvjp(_forward, _backward)


def wide(x: Array) -> Array:
    """Numbers of fewer than 32 bits as float32 or int32, in which sums of them are taken."""
    kind = jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else jnp.int32
    return x.astype(kind) if x.dtype.itemsize < 4 else x
