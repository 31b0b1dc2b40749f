"""GraphSAGE, Hamilton et al. 2017 (arXiv:1706.02216): sample neighbours, and aggregate them.

    h_i' = norm(ReLU(W h_i + V AGG_j h_j + b))         norm(h) = h / |h|, j a neighbour of i

AGG is the "mean"; "pool", the maximum of ReLU(P h_j + c); an "lstm" over neighbours in random
order; or, in place of both terms, "gcn": the mean of a node and its neighbours. What is normalised
are hidden features: answers are not.
"""

from typing import Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.graph import Dense, Graph, Matrix, Sparse
from models.layers import Linear
from models.network import Network, Unfit, one_of

Aggregate = Literal["mean", "pool", "lstm", "gcn"]


class SAGELayer(nn.Module):
    """x [N, F] or a sparse Matrix -> [N, width].

    Of its neighbours a node hears `sample` in every training step, others in every layer; 0: all.
    In evaluation it hears all; but of an LSTM, whose steps are as many as the sample, a sample in
    an order that are always the same.
    """

    width: int
    aggregate: Aggregate
    sample: int

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        if self.sample and (train or self.aggregate == "lstm"):
            assert isinstance(graph, Sparse)
            key = self.make_rng("dropout") if train else jax.random.key(0)
            graph = sampled(graph, key, self.sample)
        if self.aggregate == "gcn":
            graph = graph.with_self_loops()
            return self.mean(graph, Linear(self.width, name="linear")(x))
        own, heard = Linear(self.width, name="own"), Linear(self.width, False, name="heard")
        if self.aggregate == "mean":
            return own(x) + self.mean(graph, heard(x))
        if self.aggregate == "pool":
            said = nn.relu(Linear(self.width, name="pool")(x))
            return own(x) + heard(graph.reduce(graph.send(said), "max"))
        return own(x) + heard(self.lstm(graph, Linear(4 * self.width, name="input")(x)))

    def mean(self, graph: Graph, said: Array) -> Array:
        return graph.reduce(graph.send(said), "mean")

    def lstm(self, graph: Graph, inputs: Array) -> Array:
        """The last state of an LSTM over each node's sample: inputs, of every node as a sender,
        [N, 4 * width] -> [N, width]. It stands still where a sample has ended."""
        assert isinstance(graph, Sparse) and graph.mask is not None
        steps = graph.send(inputs).reshape(-1, self.sample, inputs.shape[-1])  # [N, S, 4 * width]
        there = graph.mask.reshape(-1, self.sample, 1)
        kernel = self.param("state", nn.initializers.orthogonal(), (self.width, 4 * self.width))

        def step(state, now):
            (h, c), (x, there) = state, now
            i, f, g, o = jnp.split(x + h @ kernel, 4, axis=-1)
            new = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * nn.tanh(g)
            h = jnp.where(there, nn.sigmoid(o) * nn.tanh(new), h)
            return (h, jnp.where(there, new, c)), None

        start = jnp.zeros((len(steps), self.width), steps.dtype)
        (h, _), _ = jax.lax.scan(step, (start, start), (steps.swapaxes(0, 1), there.swapaxes(0, 1)))
        return h


def sampled(graph: Sparse, key: Array, size: int) -> Sparse:
    """Of each receiver's edges so many at random, without replacement and in random order: those of
    receiver i are i * size, i * size + 1, ... of Q * size edges, masked where it has fewer."""
    count, _ = graph.shape
    there = True if graph.mask is None else graph.mask
    receivers = jnp.where(there, graph.receivers, count)  # what is masked is nobody's
    order = jnp.lexsort((jax.random.bits(key, receivers.shape), receivers))
    receivers, senders = receivers[order], graph.senders[order]
    rank = jnp.arange(len(order)) - jnp.searchsorted(receivers, receivers)  # within its receiver
    place = jnp.where((rank < size) & (receivers < count), receivers * size + rank, count * size)
    chosen = jnp.zeros(count * size, senders.dtype).at[place].set(senders, mode="drop")
    mask = jnp.zeros(count * size, bool).at[place].set(True, mode="drop")
    return Sparse(chosen, jnp.repeat(jnp.arange(count), size), graph.shape, mask)


class SAGE(Network):
    """A network of GraphSAGE layers, see `Network`."""

    aggregate: str = "mean"
    sample: int = 0  # neighbours that a node hears, 0: all; what an LSTM needs
    normalize: bool = True

    def __post_init__(self):
        one_of("aggregate", self.aggregate, get_args(Aggregate))
        if self.sample < (self.aggregate == "lstm"):
            raise ValueError(f"sample = {self.sample}: expected 1 or more for an LSTM")
        super().__post_init__()

    def layer(self, width: int, last: bool, name: str) -> SAGELayer:
        return SAGELayer(width, self.aggregate, self.sample, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array | None]:
        if self.sample and isinstance(graph, Dense):
            raise Unfit("model SAGE samples neighbours from a list of edges: the graph is Dense")
        return super().heard(graph, edges)

    def around(self, x: Array | None, h: Array, mask: Array | None, train: bool) -> Array:
        h = super().around(x, h, mask, train)
        if not self.normalize:
            return h
        square = jnp.square(h).sum(-1, keepdims=True)
        return h * jax.lax.rsqrt(jnp.maximum(square, 1e-12))  # zero stays zero
