"""Where a node lies in its graph, as features: messages cannot tell places that look alike.

Edges [E, 2] of a sender and a receiver each, an undirected one listed both ways; how often one is
listed and what it carries do not matter. Many graphs side by side get what each gets alone.
"""

from typing import Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

Positions = Literal["laplacian", "random_walk"]
SMALL = 1000  # nodes, up to which all eigenvectors at once are quick
CHUNK = 1024  # walks from so many nodes at a time


def encode(kind: str, edges: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """So many positions of a kind: [N, count]."""
    if kind not in get_args(Positions):
        expected = ", ".join(map(repr, ("none", *get_args(Positions))))
        raise ValueError(f"task.positions = {kind!r}: expected one of {expected}")
    return {"laplacian": laplacian, "random_walk": random_walk}[kind](edges, nodes, count)


def laplacian(edges: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """Eigenvectors of I - D^-1/2 A D^-1/2 with the lowest eigenvalues: [N, count].

    Dwivedi et al. 2020 (arXiv:2003.00982). Without the trivial one, sqrt(d); of unit norm. Each
    connected piece of a graph has its own, as if it were alone, and zeros where it has no more:
    of the whole, the first would only tell pieces apart. Directions are ignored.

    Signs are arbitrary: here, of the largest entries the first is positive. So is the basis where
    eigenvalues are equal. Those of a path of n nodes are sqrt(d_i) cos(pi j i / (n - 1)).
    """
    adjacency = _adjacency(edges, nodes)
    adjacency = adjacency.maximum(adjacency.T)
    found = np.zeros((nodes, count))
    pieces, piece = connected_components(adjacency, directed=False)
    order = np.argsort(piece, kind="stable")
    for members in np.split(order, np.bincount(piece, minlength=pieces).cumsum()[:-1]):
        if len(members) > 1:
            vectors = _lowest(adjacency[members][:, members], count)  # [n, at most count]
            found[members, : vectors.shape[1]] = vectors
    return found


def random_walk(edges: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """The chances that a walk is back after 1, 2, ... steps, diag (D^-1 A)^k: [N, count].

    Dwivedi et al. 2022 (arXiv:2110.07875). A walker goes from a node to one that it hears, all
    alike; from a node that hears nobody it goes nowhere.
    """
    adjacency = _adjacency(edges, nodes)
    degree = adjacency.sum(1)
    walk = scipy.sparse.diags_array(1 / np.maximum(degree, 1)) @ adjacency  # [N, N]
    found = np.zeros((nodes, count))
    for start in range(0, nodes, CHUNK):
        ends = np.arange(start, min(start + CHUNK, nodes))
        chance = np.zeros((nodes, len(ends)))  # to end there, by where the walk begins
        chance[ends, ends - start] = 1
        for k in range(count):
            chance = walk @ chance
            found[ends, k] = chance[ends, ends - start]
    return found


def _adjacency(edges: np.ndarray, nodes: int) -> scipy.sparse.csr_array:
    """1 where a receiver (row) hears a sender."""
    senders, receivers = np.unique(edges.reshape(-1, 2), axis=0).T
    return scipy.sparse.csr_array((np.ones(senders.size), (receivers, senders)), (nodes, nodes))


def _lowest(adjacency: scipy.sparse.csr_array, count: int) -> np.ndarray:
    """The Laplacian's eigenvectors of a connected graph, behind the trivial one."""
    scale = scipy.sparse.diags_array(adjacency.sum(1) ** -0.5)
    similar = scale @ adjacency @ scale  # its highest eigenvalues are the Laplacian's lowest
    size = adjacency.shape[0]
    if size <= max(SMALL, count + 1):
        values, vectors = scipy.linalg.eigh(similar.toarray())
    else:
        start = np.random.default_rng(0).normal(size=size)  # else ARPACK draws one
        values, vectors = eigsh(similar.tocsc(), count + 1, sigma=1.01, v0=start)
    vectors = vectors[:, np.argsort(-values)][:, 1 : count + 1]  # unit norm
    heights = np.abs(vectors)
    first = (heights > (1 - 1e-6) * heights.max(0)).argmax(0)  # equal ones differ by rounding
    return vectors * np.sign(vectors[first, np.arange(vectors.shape[1])])
