"""Models of pairs of nodes: any network makes features of nodes, and a scorer reads two of them.

Graph auto-encoders, Kipf & Welling 2016 (arXiv:1611.07308), are those that predict links:

    z = encoder(x, graph)        logit of a link ij = z_i.z_j

and the variational one draws z_i from a normal distribution of its own, while it is trained.
"""

from typing import Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from models.graph import Dense, Graph, Matrix
from models.layers import Linear
from models.network import one_of

Scorer = Literal["dot", "bilinear", "mlp"]


class Pairs(nn.Module):
    """Scores of the pairs that are `asked` about, a graph in which the first node of each hears the
    second; of all pairs, if there is none.

    x, graph, edges and mask are the encoder's -> [E, out], one for each edge of a Sparse `asked`,
    or [N, N, out] of a Dense one; without the last axis if `out` is 1.

    The scorer is the "dot" product z_i.z_j; "bilinear", z_i.W z_j, to which order matters; or an
    "mlp" of [z_i, z_j] with one hidden layer of `width`, which is how Dwivedi et al. 2020
    (arXiv:2003.00982) classify edges. The former two have an `out` of 1.
    """

    encoder: nn.Module
    out: int = 1
    scorer: str = "dot"
    width: int = 64

    def __post_init__(self):
        one_of("scorer", self.scorer, get_args(Scorer))
        if self.scorer != "mlp" and self.out != 1:
            gives = f"scorer = {self.scorer!r} gives a pair one number"
            raise ValueError(f"{gives}, the task asks for {self.out}: expected 'mlp'")
        super().__post_init__()

    def embed(self, z: Array, mask: Array | None, train: bool) -> Array:
        """What the scorer reads [N, D] of what the encoder puts out."""
        return z

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, asked: Graph | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        z = self.embed(self.encoder(x, graph, edges, mask, train=train), mask, train)
        self.sow("intermediates", "features", z)
        asked = Dense() if asked is None else asked
        if self.scorer == "mlp":
            # W [z_i, z_j] is W_1 z_i + W_2 z_j: products of N rows, not of E.
            first = Linear(self.width, name="first")(z)
            second = Linear(self.width, False, name="second")(z)
            hidden = nn.relu(asked.pair(jnp.add, first, second))
            scores = Linear(self.out, name="read")(hidden)
        else:
            first = Linear(z.shape[-1], False, name="form")(z) if self.scorer == "bilinear" else z
            if isinstance(asked, Dense):  # a plain product is twice as fast as one per head
                return first @ z.T
            scores = asked.dot(first[:, None], z[:, None])
        return scores.squeeze(-1) if self.out == 1 else scores


class GAE(Pairs):
    """The graph auto-encoder: `Pairs` whose scorer is the dot product."""


class VGAE(Pairs):
    """The variational graph auto-encoder: z_i = mu_i + sigma_i * noise in training, else mu_i.

    The encoder puts out [mu, log sigma], twice `latent` features. These are Kipf & Welling's two
    last layers with all else in common: layers that are linear in their weights are one of both
    widths. (Glorot's start, of fans in and out, is then a seventh smaller for GCN from 32 to 16.)

    As in their code the divergence from N(0, I), a mean over nodes, is divided by their number once
    more, since the loss that it is added to is a mean over pairs.
    """

    latent: int = 16

    def __post_init__(self):
        if self.encoder.out != 2 * self.latent:
            is_not = f"latent = {self.latent}: expected half of encoder.out = {self.encoder.out}"
            raise ValueError(is_not)
        super().__post_init__()

    def embed(self, z: Array, mask: Array | None, train: bool) -> Array:
        mu, log_sigma = jnp.split(z, 2, -1)
        sigma = jnp.exp(log_sigma)
        divergence = (mu**2 + sigma**2 - 1 - 2 * log_sigma).sum(-1) / 2  # [N]
        nodes = len(z) if mask is None else mask.sum()
        divergence = divergence if mask is None else jnp.where(mask, divergence, 0)
        self.sow("losses", "divergence", divergence.sum() / nodes / nodes)
        if not train:
            return mu
        return mu + sigma * jax.random.normal(self.make_rng("dropout"), mu.shape)
