"""Multi-layer perceptron: the baseline that reads a node's own features and ignores the graph.

That of Kipf & Welling 2017 is a GCN without neighbours, here with biases, which their code leaves
out. Pooled, it is that of Errica et al. 2020 (arXiv:1912.09893), to whom a graph is a bag of nodes.
"""

import flax.linen as nn
from jax import Array

from models.graph import Graph, Matrix
from models.layers import Linear
from models.network import Network


class MLPLayer(nn.Module):
    """x W + b, of every node by itself: x [N, F] or a sparse Matrix -> [N, width]."""

    width: int

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph | None, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        return Linear(self.width, name="linear")(x)


class MLP(Network):
    """A network of nodes that hear nobody; see `Network`."""

    width: int = 16

    def layer(self, width: int, last: bool, name: str) -> MLPLayer:
        return MLPLayer(width, name=name)
