"""Message passing in its basic form: what a node is, and what its neighbours say, summed up.

    h_i' = ReLU(U h_i + b + AGG_j V h_j)       j a neighbour of i, AGG the sum, mean or maximum

After Gilmer et al. 2017 (arXiv:1704.01212), with messages that depend on the sender alone. Nobody's
weight is computed: what remains of attention when scores are taken away. Without neighbours AGG is
zero.
"""

from typing import get_args

import flax.linen as nn
from jax import Array

from models.graph import Graph, Matrix, Reduction
from models.layers import Linear
from models.network import Network, one_of


class MessageLayer(nn.Module):
    """x [N, F] or a sparse Matrix -> [N, width]."""

    width: int
    aggregate: Reduction

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        said = Linear(self.width, bias=False, name="said")(x)  # [N, width]
        return Linear(self.width, name="own")(x) + graph.reduce(graph.send(said), self.aggregate)


class MessagePassing(Network):
    """A network of message layers, see `Network`."""

    aggregate: str = "sum"  # or "mean", "max"

    def __post_init__(self):
        one_of("aggregate", self.aggregate, get_args(Reduction))
        super().__post_init__()

    def layer(self, width: int, last: bool, name: str) -> MessageLayer:
        return MessageLayer(width, self.aggregate, name=name)
