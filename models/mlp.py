"""Multi-layer perceptron: the baseline that reads a node's own features and ignores the graph."""

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix


class MLP(nn.Module):
    """x [N, F] or a sparse Matrix -> logits [N, out]. The graph is taken and not looked at, so
    that every node classifier is called alike.

    The setting of Kipf & Welling 2017: GCN without its neighbours, with a bias.
    """

    out: int
    width: int = 16
    depth: int = 2
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: Array | Matrix, graph: Graph | None = None, train: bool = False) -> Array:
        for layer in range(self.depth):
            last = layer == self.depth - 1
            width = self.out if last else self.width
            kernel = self.param(
                f"kernel_{layer}", nn.initializers.glorot_uniform(), (x.shape[-1], width)
            )
            x = Dropout(self.dropout)(x, train) @ kernel
            x = x + self.param(f"bias_{layer}", nn.initializers.zeros, (width,))
            if not last:
                x = nn.relu(x)
                self.sow("intermediates", "features", x)
        return x
