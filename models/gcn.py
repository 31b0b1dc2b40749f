"""Graph convolutional network, Kipf & Welling 2017 (arXiv:1609.02907).

    H' = ReLU(D^-1/2 (A + I) D^-1/2 H W)       d_i counts a node's neighbours and itself

No softmax: the weight of an edge is fixed by the degrees of its ends. Where edges have weights of
their own, A is the matrix of these and d_i sums them. As in the reference code, there is no bias,
and the input of every layer is dropped, sparse features included.
"""

import flax.linen as nn
from jax import Array

from models.graph import Graph, Matrix, symmetric
from models.layers import Linear
from models.network import Network, Unfit


class GCNLayer(nn.Module):
    """x [N, F] or a sparse Matrix, edges [E, 1] the weights to mix with -> [N, width]."""

    width: int

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        return Matrix(graph, edges) @ Linear(self.width, bias=False, name="linear")(x)


class GCN(Network):
    """A network of GCN layers, see `Network`; edges may carry weights [E, 1]."""

    width: int = 16

    def layer(self, width: int, last: bool, name: str) -> GCNLayer:
        return GCNLayer(width, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array]:
        if edges is None:
            graph = graph.with_self_loops()
            return graph, symmetric(graph)
        if edges.shape[-1] != 1:
            raise Unfit(f"model GCN takes a weight of each edge, not {edges.shape[-1]} numbers")
        looped = Matrix(graph, edges).with_self_loops()
        return looped.graph, symmetric(looped.graph, looped.weights)
