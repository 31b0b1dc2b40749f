"""GATv2, Brody et al. 2022 (arXiv:2105.14491): who is heard most depends on who asks.

    e_ij = a.LeakyReLU(W_l h_i + W_r h_j)      alpha_ij = softmax_j(e_ij), j a neighbour of i or i
    h_i' = ELU(sum_j alpha_ij W_r h_j + b)     heads side by side; in the last layer, averaged

In GAT, which applies `a` before the LeakyReLU, every node ranks its neighbours alike. This is the
attention of Bahdanau et al. 2015 on a graph, with another nonlinearity. In the paper's experiments
W_l = W_r (`share`); those on lookups have no biases and no self-loops either.
"""

import functools

import flax.linen as nn
import jax
from jax import Array

from models.attention import additive
from models.dropout import Dropout
from models.graph import Graph, Matrix
from models.layers import per_head
from models.network import Network


class GATv2Layer(nn.Module):
    """x [N, F] or a sparse Matrix -> [N, heads * width], heads side by side; or `average`d,
    [N, width]."""

    width: int
    heads: int
    attention_dropout: float = 0.0
    slope: float = 0.2
    share: bool = False
    bias: bool = True
    average: bool = False

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        k = self.project("send", x)  # [N, H, D]
        q = k if self.share else self.project("receive", x)
        a = self.param("score", per_head, (self.width, self.heads, 1))[..., 0].T  # [H, D]
        f = functools.partial(nn.leaky_relu, negative_slope=self.slope)
        weights = graph.softmax(additive(graph, q, k, a, f))  # [E, H]
        self.sow("intermediates", "attention", Matrix(graph, weights))
        mixed = self.shifted(graph.mix(Dropout(self.attention_dropout)(weights, train), k), "bias")
        return mixed.mean(1) if self.average else jax.lax.collapse(mixed, 1)

    def project(self, side: str, x: Array | Matrix) -> Array:
        """W x + b for every head: [N, H, D]."""
        kernel = self.param(f"{side}_kernel", per_head, (x.shape[-1], self.heads, self.width))
        h = x @ jax.lax.collapse(kernel, 1)
        return self.shifted(h.reshape(x.shape[0], self.heads, self.width), f"{side}_bias")

    def shifted(self, h: Array, name: str) -> Array:
        zeros = nn.initializers.zeros
        return h + self.param(name, zeros, h.shape[1:]) if self.bias else h


class GATv2(Network):
    """A network of GATv2 layers, see `Network`. `width` is a head's."""

    width: int = 8
    heads: int = 8
    out_heads: int = 1
    attention_dropout: float = 0.0
    slope: float = 0.2
    share: bool = False
    bias: bool = True
    self_loops: bool = True  # whether every node hears itself too

    activation = staticmethod(nn.elu)

    @property
    def size(self) -> int:
        return self.heads * self.width

    def layer(self, width: int, last: bool, name: str) -> GATv2Layer:
        heads = self.out_heads if last else self.heads
        own = self.attention_dropout, self.slope, self.share, self.bias
        return GATv2Layer(width, heads, *own, average=last, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array | None]:
        graph, edges = super().heard(graph, edges)
        return graph.with_self_loops() if self.self_loops else graph, edges
