"""Parts that models share: the residual block around any mixer."""

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix

glorot = nn.initializers.glorot_uniform()
# A weight matrix per head: Glorot's fans are those of one head, as if each were a layer.
per_head = nn.initializers.variance_scaling(
    1.0, "fan_avg", "uniform", in_axis=0, out_axis=2, batch_axis=1
)


class Linear(nn.Module):
    """x W + b: x [..., F] or a sparse Matrix [N, F] -> [..., width]."""

    width: int
    bias: bool = True

    @nn.compact
    def __call__(self, x: Array | Matrix) -> Array:
        x = x @ self.param("kernel", glorot, (x.shape[-1], self.width))
        return x + self.param("bias", nn.initializers.zeros, (self.width,)) if self.bias else x


class Norm(nn.Module):
    """Normalisation of x [..., F] by kind: "batch" (Ioffe & Szegedy 2015), whose statistics are
    those of rows whose mask [...] is true; "layer" (Ba et al. 2016); or "none".

    As in most papers' code, running statistics move by a tenth in a step.
    """

    kind: str

    def __post_init__(self):
        if self.kind not in ("none", "batch", "layer"):
            raise ValueError(f"norm = {self.kind!r}: expected 'none', 'batch' or 'layer'")
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array, mask: Array | None, train: bool) -> Array:
        if self.kind == "batch":
            if mask is not None:  # padding stands in where nothing else is: no mean is of none
                mask = (mask | ~mask.any())[..., None]
            known = not train or x.size == 0
            return nn.BatchNorm(use_running_average=known, momentum=0.9)(x, mask=mask)
        return nn.LayerNorm()(x) if self.kind == "layer" else x


class Block(nn.Module):
    """One layer of a Transformer, whatever mixes: a mixer, then an MLP at every node.

    Vaswani et al. 2017 (norm="post"), x <- LN(x + f(x)); Xiong et al. 2020 (norm="pre"),
    x <- x + f(LN(x)). x [..., N, width] -> [..., N, width]. The mixer is called
    `mixer(receivers, senders, graph, train)`; only the graph makes this a Transformer (all
    pairs), a graph network (some pairs) or a decoder (earlier positions).
    """

    mixer: nn.Module
    hidden: int
    dropout: float = 0.0
    norm: str = "pre"

    def __post_init__(self):
        if self.norm not in ("pre", "post"):
            raise ValueError(f"norm = {self.norm!r}: expected 'pre' or 'post'")
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array, graph: Graph, train: bool = False) -> Array:
        def mlp(y):
            hidden = nn.relu(nn.Dense(self.hidden)(y))
            return nn.Dense(x.shape[-1])(hidden)

        for sublayer in (lambda y: self.mixer(y, y, graph, train), mlp):
            if self.norm == "pre":
                x = x + Dropout(self.dropout)(sublayer(nn.LayerNorm()(x)), train)
            else:
                x = nn.LayerNorm()(x + Dropout(self.dropout)(sublayer(x), train))
        return x
