"""One small graph of many: what the generators and readers give, and data/graphs.py batches."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from data.nodes import PARTS


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


def digest(arrays: Iterable[np.ndarray], kind: str = "<f8") -> str:
    """The SHA-256 digest, in hexadecimal, of the numbers in these arrays, as of that type."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, kind).tobytes())
    return found.hexdigest()


def checksum(examples: Sequence[Example]) -> str:
    """A digest of all that the examples say."""
    return digest(array for example in examples for array in example if array is not None)


def in_order(train: int, validation: int, test: int) -> dict[str, np.ndarray]:
    """The first so many examples for training, the next for validation, the last for testing: for
    those that are generated, none like another."""
    ends = np.cumsum([train, validation, test])
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    return dict(zip(PARTS, parts, strict=True))
