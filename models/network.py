"""Networks of messages: layers, what lies between them, and how answers are read off.

A graph network is its layer; the rest they share. A model here is a `Network` that says by `layer`
which one it stacks. Its answers are of three kinds: of every node; of whole graphs, where many lie
side by side in one; or of pairs of nodes, which models/pairs.py makes of nodes' features.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import flax.linen as nn
from jax import Array

from models.dropout import Dropout
from models.graph import Graph, Matrix, Reduction
from models.layers import Linear, Norm

Readout = Literal["last", "linear", "mlp", "jump"]


class Unfit(ValueError):
    """Inputs that a model cannot use."""


def one_of(name: str, value: str, kinds: Sequence[str]) -> None:
    """Raises ValueError unless a field's value is one of these."""
    if value not in kinds:
        expected = ", ".join(map(repr, kinds))
        raise ValueError(f"{name} = {value!r}: expected one of {expected}")


class Network(nn.Module):
    """Layers of messages one after the other: x <- [x +] activation(norm(layer(dropout(x)))).

    x [N, F] or a sparse Matrix; the graph; edges, what its edges carry [E, D], or None; mask [N],
    false where a node is padding; asked, a graph in which whole graphs hear their nodes -> outputs
    [N, out], or [G, out] if some are asked about.

    `embed` maps the features to the layers' size first. `residual` adds x where it is no raw
    input. The answers are, by `readout`, what the "last" layer puts out (Kipf & Welling 2017); a
    "linear" map of its features or an "mlp" (Dwivedi et al. 2020); or of the features that every
    layer hears or puts out a linear map each, whose outputs are dropped out and summed: "jump" (Xu
    et al. 2019). Those of a graph are `pool`ed from its nodes' before.
    """

    out: int
    width: int = 64
    depth: int = 2
    dropout: float = 0.0
    norm: str = "none"  # or "batch", "layer"
    residual: bool = False
    embed: bool = False
    readout: str = "last"
    pool: str = "sum"  # or "mean", "max"

    activation = staticmethod(nn.relu)

    def __post_init__(self):
        Norm(self.norm, parent=None)  # names what it cannot be
        one_of("readout", self.readout, get_args(Readout))
        one_of("pool", self.pool, get_args(Reduction))
        super().__post_init__()

    @property
    def size(self) -> int:
        """How many features a hidden layer puts out."""
        return self.width

    def layer(self, width: int, last: bool, name: str) -> nn.Module:
        """A layer of so many outputs: called (x, graph, edges, mask, train) -> [N, width]. The
        `last` one puts out the answers."""
        raise NotImplementedError

    def heard(self, graph: Graph, edges: Array | None) -> tuple[Graph, Array | None]:
        """The graph that the layers hear each other over, and what they make of its edges."""
        if edges is not None:
            raise Unfit(f"model {type(self).__name__} has no use for what edges carry")
        return graph, edges

    def drop(self, x: Array | Matrix, train: bool) -> Array | Matrix:
        """What a layer is given of x."""
        return Dropout(self.dropout)(x, train)

    def around(self, x: Array | None, h: Array, mask: Array | None, train: bool) -> Array:
        """What becomes of a hidden layer's h; x, if it is to be added."""
        h = self.activation(Norm(self.norm)(h, mask, train))
        return h if x is None else x + h

    def block(
        self, layer: nn.Module, x: Array | Matrix, graph: Graph, edges: Array | None,
        mask: Array | None, skip: bool, train: bool,
    ) -> tuple[Array, Array | None]:  # fmt: skip
        """A hidden layer and what is around it: its features, and what edges then carry."""
        h = layer(self.drop(x, train), graph, edges, mask, train)
        return self.around(x if skip else None, h, mask, train), edges

    @nn.compact
    def __call__(
        self, x: Array | Matrix, graph: Graph, edges: Array | None = None,
        mask: Array | None = None, asked: Graph | None = None, train: bool = False,
    ) -> Array:  # fmt: skip
        graph, edges = self.heard(graph, edges)
        if self.embed:
            x = Linear(self.size, name="embed")(x)
        features = [x]
        hidden = self.depth - (self.readout == "last")
        for i in range(hidden):
            layer = self.layer(self.width, False, name=f"layer_{i}")
            skip = self.residual and (i > 0 or self.embed)
            x, edges = self.block(layer, x, graph, edges, mask, skip, train)
            features.append(x)
            if asked is None:
                self.sow("intermediates", "features", x)
        if self.readout == "last":
            layer = self.layer(self.out, True, name=f"layer_{hidden}")
            features = [layer(self.drop(x, train), graph, edges, mask, train)]
        if asked is not None:
            features = [asked.reduce(asked.send(x), self.pool) for x in features]
            self.sow("intermediates", "features", features[-1])
        return self.answers(features, train)

    def answers(self, features: list[Array | Matrix], train: bool) -> Array:
        """Outputs [..., out] of the features of every layer, the input's first."""
        if self.readout == "last":
            return features[-1]
        if self.readout == "jump":
            outputs = [Linear(self.out, name=f"jump_{i}")(x) for i, x in enumerate(features)]
            return sum(Dropout(self.dropout)(x, train) for x in outputs)
        x = features[-1]
        for i in (1, 2) if self.readout == "mlp" else ():
            x = nn.relu(Linear(max(self.size // 2**i, 1), name=f"read_{i}")(x))
        return Linear(self.out, name="read")(x)
