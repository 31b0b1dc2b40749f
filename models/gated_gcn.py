"""Gated graph convolutional network, Bresson & Laurent 2018 (arXiv:1711.07553).

    g_ij = C e_ij + D h_i + E h_j                      eta_ij = sigmoid(g_ij) / sum_k sigmoid(g_ik)
    h_i' = h_i + ReLU(BN(A h_i + sum_j eta_ij * B h_j))         e_ij' = e_ij + ReLU(BN(g_ij))

An edge has features of its own, which open and shut a gate for each feature of what it carries. As
in the code of Dwivedi et al. 2020 (arXiv:2003.00982), each map has a bias, 1e-6 is added to the sum
of gates, an edge that carries nothing carries a one, and answers are read off by an MLP. That code
drops out what a layer puts out, the residual included; here, as in any `Network`, only what a
layer hears of nodes and edges is dropped.
"""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from models.graph import Graph, Matrix, symmetric
from models.layers import Linear
from models.network import Network


class GatedGCNLayer(nn.Module):
    """x [N, F] or a sparse Matrix, edges [E, D] -> [N, width] and what opens the gates, [E, width];
    of the `last` layer, [N, width] alone."""

    width: int
    last: bool = False

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array,
        mask: Array | None = None, train: bool = False,
    ) -> Array | tuple[Array, Array]:  # fmt: skip
        linear = lambda name: Linear(self.width, name=name)
        ends = graph.pair(jnp.add, linear("receive")(x), linear("send")(x))
        opened = linear("edge")(edges) + ends  # [E, width]
        gates = nn.sigmoid(opened)
        heard = graph.reduce(gates * graph.send(linear("value")(x)))  # [N, width]
        h = linear("own")(x) + heard / (graph.reduce(gates) + 1e-6)
        return h if self.last else (h, opened)


class GatedGCN(Network):
    """A network of gated layers, see `Network`; edges may carry anything [E, D]."""

    norm: str = "batch"
    residual: bool = True
    embed: bool = True
    readout: str = "mlp"

    def layer(self, width: int, last: bool, name: str) -> GatedGCNLayer:
        return GatedGCNLayer(width, last, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array]:
        if edges is None:
            edges = jnp.ones_like(symmetric(graph))  # of the shape of an edge array
        return graph, Linear(self.width, name="embed_edges")(edges)

    def block(
        self, layer: nn.Module, x: Array | Matrix, graph: Graph, edges: Array,
        mask: Array | None, skip: bool, train: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        h, opened = layer(self.drop(x, train), graph, self.drop(edges, train), mask, train)
        x = self.around(x if skip else None, h, mask, train)
        return x, self.around(edges if self.residual else None, opened, graph.mask, train)
