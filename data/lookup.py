"""Dictionary lookup, Brody et al. 2022 (arXiv:2105.14491), section 4.1: a value for each key.

Whom a node should hear depends on who asks, which one head of GAT cannot do: there all nodes rank
their neighbours alike.
"""

import math

import numpy as np

from data.example import Example, checksum, in_order
from data.graphs import Graphs, graphs

MOST = 32_000  # graphs, as in the authors' code


def DictionaryLookup(
    k: int = 10, train: int = 4000, validation: int = 500, test: int = 1000,
    batch_size: int = 64, graph_seed: int = 0,
) -> Graphs:  # fmt: skip
    """Classification of the queries by the value that goes with their key, see `lookup`. A node is
    known by its key and its value, one-hot both."""
    examples = lookup(k, train + validation + test, graph_seed)
    if len(examples) < train + validation + test:
        asked = f"{train} + {validation} + {test} graphs"
        raise ValueError(f"task.k = {k} gives {len(examples)} graphs, expected {asked}")
    hot = lambda x: np.concatenate([np.eye(k)[x[:, 0]], np.eye(k + 1)[x[:, 1]]], 1)  # [2k, 2k + 1]
    examples = [example._replace(x=hot(example.x)) for example in examples]
    return graphs(
        examples,
        [in_order(train, validation, test)],
        [str(value) for value in range(k)],
        level="node",
        batch_size=batch_size,
        about={"dataset": f"lookup {k}", "split": "generated", "checksum": checksum(examples)},
    )


def lookup(k: int, count: int = MOST, seed: int = 0) -> list[Example]:
    """Graphs of k queries, nodes 0 to k - 1, each of which hears all entries, nodes k to 2k - 1; no
    other edges [k², 2], self-loops neither.

    x [2k, 2] are a key and a value, integers: the keys 0 to k - 1 in order, the entries' values a
    permutation of as many; a query's value is k, unknown. y [2k] is the value that goes with the
    key, asked of queries alone.

    No permutation comes twice, so that whatever part of them is kept for testing has not been seen
    in training: there are `count` graphs, but no more than k! or 32,000.
    """
    if k < 1:
        raise ValueError(f"task.k = {k}: expected 1 or more")
    keys, nobody = np.tile(np.arange(k), 2), np.full(k, k)
    receivers, senders = np.indices((k, k)).reshape(2, -1)
    edges = np.stack([senders + k, receivers], axis=1)
    asked = np.arange(2 * k) < k
    return [
        Example(
            edges,
            np.stack([keys, np.concatenate([nobody, values])], axis=1),
            np.tile(values, 2),
            mask=asked,
        )
        for values in permutations(k, min(count, MOST, math.factorial(k)), seed)
    ]


def permutations(k: int, count: int, seed: int) -> np.ndarray:
    """So many different ones of 0 to k - 1, in random order: [count, k]."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:  # all of k! are found in some k! log(k!) draws, 60,000 for k = 7
        drawn = rng.permuted(np.tile(np.arange(k), (count, 1)), axis=1)
        found |= dict.fromkeys(map(tuple, drawn.tolist()))
    return np.array(list(found)[:count]).reshape(count, k)
