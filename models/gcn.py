"""Graph convolutional network, Kipf & Welling 2017 (arXiv:1609.02907).

    H' = ReLU(D^-1/2 (A + I) D^-1/2 H W)       d_i counts a node's neighbours and itself

No softmax: the weight of an edge is fixed by the degrees of its ends. Where edges have weights of
their own, A is the matrix of these and d_i sums them. As in the reference code, there is no bias,
and the input of every layer is dropped, sparse features included.
"""

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix, symmetric


class GCN(nn.Module):
    """Node classifier: x [N, F] or a sparse Matrix, the graph, its edges' weights [E, 1], if they
    have any -> logits [N, out]."""

    out: int
    width: int = 16
    depth: int = 2
    dropout: float = 0.0

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, weights: Array | None = None, train: bool = False
    ) -> Array:
        if weights is None:
            graph = graph.with_self_loops()
        else:
            looped = Matrix(graph, weights).with_self_loops()
            graph, weights = looped.graph, looped.weights
        neighbours = Matrix(graph, symmetric(graph, weights))
        for layer, width in enumerate([self.width] * (self.depth - 1) + [self.out]):
            if layer > 0:
                x = nn.relu(x)
                self.sow("intermediates", "features", x)
            shape = x.shape[-1], width
            kernel = self.param(f"kernel_{layer}", nn.initializers.glorot_uniform(), shape)
            x = neighbours @ (Dropout(self.dropout)(x, train) @ kernel)
        return x
