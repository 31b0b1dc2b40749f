"""Multi-layer perceptron: the baseline that reads a node's own features and ignores the graph."""

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix


class MLP(nn.Module):
    """Node classifier: x [N, F] or a sparse Matrix -> logits [N, out].

    The baseline of Kipf & Welling 2017: a GCN without neighbours, here with biases, which their
    code leaves out. A graph is taken and ignored, so that all node classifiers are called alike.
    """

    out: int
    width: int = 16
    depth: int = 2
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: Array | Matrix, graph: Graph | None = None, train: bool = False) -> Array:
        for layer, width in enumerate([self.width] * (self.depth - 1) + [self.out]):
            if layer > 0:
                x = nn.relu(x)
                self.sow("intermediates", "features", x)
            shape = x.shape[-1], width
            kernel = self.param(f"kernel_{layer}", nn.initializers.glorot_uniform(), shape)
            x = Dropout(self.dropout)(x, train) @ kernel
            x = x + self.param(f"bias_{layer}", nn.initializers.zeros, (width,))
        return x
