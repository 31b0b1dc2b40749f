"""Graph Transformer, Dwivedi & Bresson 2021 (arXiv:2012.09699).

    s_ij = (q_i * k_j / sqrt(D)) * E e_ij     w_ij = softmax_j(sum_d s_ij)     s, w of each head
    h <- norm(h + O sum_j w_ij v_j)     h <- norm(h + MLP(h))     e <- norm(e + O' s)     e likewise

A Transformer's layer whose words hear the neighbours in a graph: where edges carry nothing, E e is
one, and on the complete graph it is that layer. Where a node lies is for its features to say, as
data/positions.py does for those of tasks.

The MLP is twice as wide as its ends, not four times; nodes do not hear themselves; the norm is that
of batches. The authors' code is not quite the paper's: it clamps scores to [-5, 5], takes their
exponentials without subtracting the greatest and adds 1e-6 to the sum of these, which `clamp` = 5
does. Dropout is where they have it: on what is mixed, before O, and inside the MLP.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.attention import dot
from models.dropout import Dropout
from models.graph import Graph, Matrix
from models.layers import Linear, Norm
from models.network import Network, Unfit


class EdgeAttention(nn.Module):
    """Multi-head attention in which each number that an edge carries has its say: x [N, F], edges
    [E, F] or None -> [N, width], and [E, width] or None."""

    width: int
    heads: int = 1
    dropout: float = 0.0
    clamp: float = 0.0

    @nn.compact
    def __call__(
        self, x: Array, graph: Graph, edges: Array | None, train: bool
    ) -> tuple[Array, Array | None]:
        shape = (self.heads, self.width // self.heads)
        q, k, v = (nn.DenseGeneral(shape, name=name)(x) for name in ("query", "key", "value"))
        if edges is None:
            scores = dot(graph, q, k)  # [E, H]
        else:
            flat = [jax.lax.collapse(x, 1) for x in (q / jnp.sqrt(shape[1]), k)]  # [N, H * D]
            edges = graph.pair(jnp.multiply, *flat) * Linear(self.width, name="edge")(edges)
            scores = edges.reshape(*edges.shape[:-1], *shape).sum(-1)  # [E, H]
            edges = Linear(self.width, name="edge_out")(Dropout(self.dropout)(edges, train))
        weights = clamped(graph, scores, self.clamp) if self.clamp else graph.softmax(scores)
        self.sow("intermediates", "attention", Matrix(graph, weights))
        mixed = Dropout(self.dropout)(graph.mix(weights, v), train)  # [N, H, D]
        return nn.DenseGeneral(self.width, axis=(-2, -1), name="out")(mixed), edges


class GraphTransformerLayer(nn.Module):
    """x [N, width], edges [E, width] or None -> of the same shapes."""

    width: int
    heads: int = 1
    dropout: float = 0.0
    norm: str = "batch"
    residual: bool = True
    clamp: float = 0.0

    @nn.compact
    def __call__(
        self, x: Array, graph: Graph, edges: Array | None,
        mask: Array | None = None, train: bool = False,
    ) -> tuple[Array, Array | None]:  # fmt: skip
        mixer = EdgeAttention(self.width, self.heads, self.dropout, self.clamp, name="mixer")
        h, carried = mixer(x, graph, edges, train)
        if edges is not None:
            edges = self.after(edges, carried, graph.mask, train)
        return self.after(x, h, mask, train), edges

    def after(self, x: Array, h: Array, mask: Array | None, train: bool) -> Array:
        """What follows attention, alike for nodes and edges: x and what became of it, then an MLP
        of both."""
        join = lambda x, h: Norm(self.norm)(x + h if self.residual else h, mask, train)
        x = join(x, h)
        hidden = nn.relu(nn.Dense(2 * self.width)(x))
        return join(x, nn.Dense(self.width)(Dropout(self.dropout)(hidden, train)))


class GraphTransformer(Network):
    """A network of these layers, see `Network`; edges may carry anything [E, D]. Layers keep their
    width, so there is a `readout` behind them, and features of another width are embedded."""

    heads: int = 8
    norm: str = "batch"
    residual: bool = True
    embed: bool = True
    readout: str = "mlp"
    clamp: float = 0.0  # 5 in the authors' code; 0: the exact softmax

    def __post_init__(self):
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(f"width={self.width} is not a multiple of heads={self.heads}")
        if self.readout == "last":
            raise ValueError("readout = 'last': expected one behind layers that keep their width")

    def layer(self, width: int, last: bool, name: str) -> GraphTransformerLayer:
        options = self.heads, self.dropout, self.norm, self.residual, self.clamp
        return GraphTransformerLayer(width, *options, name=name)

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array | None]:
        if edges is not None:
            edges = Linear(self.width, name="embed_edges")(edges)
        return graph, edges

    def block(
        self, layer: nn.Module, x: Array | Matrix, graph: Graph, edges: Array | None,
        mask: Array | None, skip: bool, train: bool,
    ) -> tuple[Array, Array | None]:  # fmt: skip
        if isinstance(x, Matrix) or x.shape[-1] != self.width:
            raise Unfit(f"embed = False: x {list(x.shape)} is not of width = {self.width}")
        return layer(x, graph, edges, mask, train)


def clamped(graph: Graph, scores: Array, limit: float) -> Array:
    """Nearly a softmax, of scores up to a limit and with sums a little less than one."""
    powers = jnp.exp(jnp.clip(scores, -limit, limit))
    total = graph.reduce(powers)  # [N, H]
    return powers / (graph.pair(lambda q, k: q, total, total) + 1e-6)
