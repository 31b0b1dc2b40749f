"""MoNet, Monti et al. 2017 (arXiv:1611.08402): a neighbour's weight is a function of where it lies.

    w_k(u) = exp(-1/2 sum_d ((u_d - mu_kd) / sigma_kd)^2)          a Gaussian for each kernel k
    u_ij = tanh(A [d_i^-1/2, d_j^-1/2] + b)                        d_i counts whom i hears
    h_i' = ReLU(sum_k sum_j w_k(u_ij) W_k h_j + b)                 j a neighbour of i or i

The weights are not normalised; kernels are heads that are summed. What edges carry [E, D], if they
do, takes the place of the degrees; loops, which would carry nothing, are not added then. Each layer
has coordinates and kernels of its own.
"""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from models.graph import Graph, Matrix
from models.layers import Linear
from models.network import Network


class MoNetLayer(nn.Module):
    """x [N, F] or a sparse Matrix, edges [E, D] where a neighbour lies -> [N, width]."""

    width: int
    kernels: int
    coordinates: int  # how many u has

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array,
        mask: Array | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        u = nn.tanh(Linear(self.coordinates, name="where")(edges))  # [E, D]
        shape = self.kernels, self.coordinates
        mean = self.param("mean", nn.initializers.normal(0.1), shape)
        precision = self.param("inverse_sigma", nn.initializers.ones, shape)
        weights = jnp.exp(-0.5 * jnp.square((u[..., None, :] - mean) * precision).sum(-1))  # [E, K]
        h = Linear(self.kernels * self.width, bias=False, name="linear")(x)
        mixed = graph.mix(weights, h.reshape(-1, self.kernels, self.width)).sum(1)
        return mixed + self.param("bias", nn.initializers.zeros, (self.width,))


class MoNet(Network):
    """A network of MoNet layers, see `Network`; edges may carry coordinates."""

    width: int = 16
    kernels: int = 3
    coordinates: int = 2

    def layer(self, width: int, last: bool, name: str) -> MoNetLayer:
        return MoNetLayer(width, self.kernels, self.coordinates, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array]:
        if edges is not None:
            return graph, edges
        graph = graph.with_self_loops()
        root = graph.degree() ** -0.5  # [N, 1]; a degree is 1 or more
        both = lambda q, k: jnp.concatenate(jnp.broadcast_arrays(q, k), -1)
        return graph, graph.pair(both, root, root)
