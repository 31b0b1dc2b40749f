"""Graph attention network, Veličković et al. 2018 (arXiv:1710.10903).

    e_ij = LeakyReLU(a1.W h_i + a2.W h_j)      alpha_ij = softmax_j(e_ij), j a neighbour of i or i
    h_i' = ELU(sum_j alpha_ij W h_j + b)       heads side by side; in the last layer, averaged

The published number was made by code that does more than the paper says, and so does this: each
head drops the layer's input by itself; a third dropout acts on W h where it is mixed (not where it
is scored); both halves of the score have a bias.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix
from models.layers import per_head
from models.network import Network


class GATLayer(nn.Module):
    """x [N, F] or a sparse Matrix [N, F] -> [N, heads * width], heads side by side; or `average`d,
    [N, width]."""

    width: int
    heads: int
    dropout: float = 0.0
    attention_dropout: float = 0.0
    value_dropout: float = 0.0
    slope: float = 0.2
    average: bool = False

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        kernel = self.param("kernel", per_head, (x.shape[-1], self.heads, self.width))
        h = project(Dropout(self.dropout)(spread(x, self.heads), train), kernel)  # [N, H, D]
        scores = graph.pair(jnp.add, self.half("receive", h), self.half("send", h))  # [E, H]
        weights = graph.softmax(nn.leaky_relu(scores, self.slope))
        self.sow("intermediates", "attention", Matrix(graph, weights))
        weights = Dropout(self.attention_dropout)(weights, train)
        mixed = graph.mix(weights, Dropout(self.value_dropout)(h, train))
        mixed = mixed + self.param("bias", nn.initializers.zeros, (self.heads, self.width))
        return mixed.mean(1) if self.average else jax.lax.collapse(mixed, 1)

    def half(self, side: str, h: Array) -> Array:
        """a.h + b per head, one of the score's two halves: [N, H, D] -> [N, H]."""
        kernel = self.param(f"{side}_kernel", per_head, (self.width, self.heads, 1))
        bias = self.param(f"{side}_bias", nn.initializers.zeros, (self.heads,))
        return jnp.einsum("nhd,dho->nh", h, kernel) + bias


class GAT(Network):
    """A network of GAT layers, see `Network`. `width` is a head's."""

    width: int = 8
    heads: int = 8
    out_heads: int = 1
    attention_dropout: float = 0.0
    value_dropout: float = 0.0
    slope: float = 0.2
    self_loops: bool = True  # whether every node hears itself too

    activation = staticmethod(nn.elu)

    @property
    def size(self) -> int:
        return self.heads * self.width

    def layer(self, width: int, last: bool, name: str) -> GATLayer:
        rates = self.dropout, self.attention_dropout, self.value_dropout
        heads = self.out_heads if last else self.heads
        return GATLayer(width, heads, *rates, self.slope, average=last, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array | None]:
        graph, edges = super().heard(graph, edges)
        return graph.with_self_loops() if self.self_loops else graph, edges

    def drop(self, x: Array | Matrix, train: bool) -> Array | Matrix:
        return x  # each head drops by itself


def spread(x: Array | Matrix, heads: int) -> Array | Matrix:
    """One copy of x for every head: [N, F] -> [N, H, F], a sparse Matrix -> one of H heads."""
    if isinstance(x, Matrix):
        return x.replace(weights=jnp.broadcast_to(x.weights, (*x.weights.shape[:-1], heads)))
    return jnp.broadcast_to(x[:, None, :], (x.shape[0], heads, x.shape[1]))


def project(x: Array | Matrix, kernel: Array) -> Array:
    """x W for every head: [N, H, F] or a Matrix of H heads, W [F, H, D] -> [N, H, D]."""
    return x @ kernel if isinstance(x, Matrix) else jax.vmap(jnp.matmul, 1, 1)(x, kernel)
