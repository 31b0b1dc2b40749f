"""Graph convolutional network, Kipf & Welling 2017 (arXiv:1609.02907).

    H' = ReLU(D^-1/2 (A + I) D^-1/2 H W)       d_i counts a node's neighbours and itself

No softmax: the weight of an edge is fixed by the degrees of its ends. As in the reference code,
there is no bias, and the input of every layer is dropped, sparse features included.
"""

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix, symmetric


class GCN(nn.Module):
    """Node classifier: x [N, F] or a sparse Matrix, and the graph -> logits [N, out]."""

    out: int
    width: int = 16
    depth: int = 2
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: Array | Matrix, graph: Graph, train: bool = False) -> Array:
        graph = graph.with_self_loops()
        neighbours = Matrix(graph, symmetric(graph))
        for layer, width in enumerate([self.width] * (self.depth - 1) + [self.out]):
            if layer > 0:
                x = nn.relu(x)
                self.sow("intermediates", "features", x)
            shape = x.shape[-1], width
            kernel = self.param(f"kernel_{layer}", nn.initializers.glorot_uniform(), shape)
            x = neighbours @ (Dropout(self.dropout)(x, train) @ kernel)
        return x
