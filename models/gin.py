"""Graph isomorphism network, Xu et al. 2019 (arXiv:1810.00826): as sharp as the test of Weisfeiler
and Leman, since sums tell multisets apart where means and maxima do not.

    h_i' = ReLU(BN(MLP((1 + epsilon) h_i + sum_j h_j)))     MLP(x) = W_2 ReLU(BN(W_1 x + b_1)) + b_2

As in the authors' code, batch statistics are taken inside the MLP too, and after a "jump" readout
dropout acts on its outputs alone; with another one, on what layers are given.
"""

import flax.linen as nn
from jax import Array

from models.graph import Graph, Matrix
from models.layers import Linear, Norm
from models.network import Network


class GINLayer(nn.Module):
    """x [N, F] or a sparse Matrix -> [N, width]."""

    width: int
    hidden: int  # of the MLP
    norm: str  # inside it
    learn_epsilon: bool

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        epsilon = self.param("epsilon", nn.initializers.zeros, ()) if self.learn_epsilon else 0.0
        x = Linear(self.hidden, bias=False, name="mlp_1")(x)  # first: a sum of products is shorter
        x = (1 + epsilon) * x + graph.reduce(graph.send(x))
        x = x + self.param("bias", nn.initializers.zeros, (self.hidden,))
        return Linear(self.width, name="mlp_2")(nn.relu(Norm(self.norm)(x, mask, train)))


class GIN(Network):
    """A network of GIN layers, see `Network`."""

    norm: str = "batch"
    readout: str = "jump"
    learn_epsilon: bool = False  # GIN-epsilon; without, GIN-0

    def layer(self, width: int, last: bool, name: str) -> GINLayer:
        return GINLayer(width, self.width, self.norm, self.learn_epsilon, name=name)

    def drop(self, x: Array | Matrix, train: bool) -> Array | Matrix:
        return x if self.readout == "jump" else super().drop(x, train)
