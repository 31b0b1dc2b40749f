"""One small graph of many: what the generators and readers give, and data/graphs.py batches."""

from typing import NamedTuple

import numpy as np


class Example(NamedTuple):
    """A graph of N nodes and M directed edges, in numpy, with what is asked about it.

    An undirected edge is listed both ways. Targets are of the graph [...], of its nodes [N, ...] or
    of its edges [M, ...]; `mask`, of the same shape, is false where they are unknown or not asked.
    """

    edges: np.ndarray  # [M, 2] sender, receiver
    x: np.ndarray  # [N, F]
    y: np.ndarray
    carries: np.ndarray | None = None  # [M, D] what edges carry
    mask: np.ndarray | None = None
