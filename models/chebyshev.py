"""ChebNet, Defferrard et al. 2016 (arXiv:1606.09375): a learned filter of the graph's spectrum.

    H' = ReLU(sum_k T_k(L) H W_k + b)          T_0 = 1, T_1 = L, T_k = 2 L T_(k-1) - T_(k-2)

L = 2 / lambda_max (I - D^-1/2 A D^-1/2) - I has its spectrum in [-1, 1]. As in Kipf & Welling 2017,
whose GCN is what remains of the first two terms, lambda_max is taken as 2: L is -D^-1/2 A D^-1/2.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.graph import Graph, Matrix, symmetric
from models.layers import per_head
from models.network import Network, Unfit


class ChebyshevLayer(nn.Module):
    """x [N, F] or a sparse Matrix, edges [E, 1] the numbers of -L -> [N, width].

    Each T_k(L) acts on as many features as come out, not on those that go in (Clenshaw's sum).
    """

    width: int
    order: int  # how many terms: neighbours are heard over paths of less than that

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        laplacian = Matrix(graph, -edges)
        kernel = self.param("kernel", per_head, (x.shape[-1], self.order, self.width))
        terms = x @ jax.lax.collapse(kernel, 1)  # [N, order * width]
        first, *rest = jnp.split(terms, self.order, axis=-1)
        one = other = jnp.zeros_like(first)
        for term in reversed(rest):
            one, other = term + 2 * (laplacian @ one) - other, one
        bias = self.param("bias", nn.initializers.zeros, (self.width,))
        return first + laplacian @ one - other + bias


class ChebNet(Network):
    """A network of Chebyshev layers, see `Network`; edges may carry weights [E, 1]."""

    width: int = 16
    order: int = 3

    def layer(self, width: int, last: bool, name: str) -> ChebyshevLayer:
        return ChebyshevLayer(width, self.order, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array]:
        if edges is not None and edges.shape[-1] != 1:
            raise Unfit(f"model ChebNet takes a weight of each edge, not {edges.shape[-1]} numbers")
        return graph, symmetric(graph, edges)
