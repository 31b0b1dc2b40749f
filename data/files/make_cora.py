"""Makes cora.npz: Planetoid's Cora joined with the papers' ids and the citations' direction.

    pip download --no-deps graphdatascience==2.2 -d /tmp/cora
    git clone --depth 1 https://github.com/kimiyoung/planetoid /tmp/planetoid
    python -m data.files.make_cora /tmp/cora/*.whl /tmp/planetoid/data

Planetoid's papers have no ids, the wheel's are in another order. The assertions prove both equal.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet  # comes with tensorflow-datasets

from data import planetoid

# What the wheel's numbers for subjects mean, from its resources/cora/serialize_cora.py.
SUBJECTS = (
    "Neural_Networks Rule_Learning Reinforcement_Learning Probabilistic_Methods Theory "
    "Genetic_Algorithms Case_Based"
).split()


def table(wheel: str, name: str) -> pyarrow.Table:
    with zipfile.ZipFile(wheel).open(f"graphdatascience/resources/cora/{name}.parquet.gzip") as f:
        return pyarrow.parquet.read_table(f)


def traits(words: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The words of each node, and how many of its neighbours have each: [N, 2F]."""
    near = np.zeros_like(words)
    np.add.at(near, edges[:, 0], words[edges[:, 1]])
    np.add.at(near, edges[:, 1], words[edges[:, 0]])
    return np.hstack([words, near])


def main(wheel: str, folder: str) -> None:
    files = {part: Path(folder, f"ind.cora.{part}") for part in planetoid.PARTS}
    edges, words, labels, split = planetoid.parse(files)
    papers, links = table(wheel, "cora_nodes").sort_by("nodeId"), table(wheel, "cora_rels")
    ids, subjects = papers["nodeId"].to_numpy(), papers["subject"].to_numpy()
    # Pairs (cited, citing) of papers, below of nodes.
    citations = np.searchsorted(ids, np.stack([links["sourceNodeId"], links["targetNodeId"]], 1))

    ours = traits(words.toarray().astype(int), edges)
    theirs = traits(np.array(papers["features"].to_pylist()), planetoid.undirected(citations))
    paper = np.empty(len(ids), int)  # of each node; among twins in ascending order
    paper[np.lexsort(ours.T)] = np.lexsort(theirs.T)
    citations = np.argsort(paper)[citations]
    subject = [subjects[paper][labels == label][0] for label in range(labels.max() + 1)]
    assert np.array_equal(ours, theirs[paper])
    assert np.array_equal(edges, planetoid.undirected(citations))
    assert np.array_equal(subjects[paper], np.array(subject)[labels])

    _, group, size = np.unique(ours, axis=0, return_inverse=True, return_counts=True)
    np.savez_compressed(
        planetoid.CORA,
        feature_indices=words.indices.astype(np.int16),
        feature_indptr=words.indptr.astype(np.int32),
        feature_shape=np.array(words.shape, np.int32),
        edges=edges.astype(np.int16),
        citations=np.array(sorted(citations.tolist()), np.int16),
        labels=labels.astype(np.int8),
        class_names=np.array(SUBJECTS)[subject],
        paper_ids=ids[paper].astype(np.int32),
        paper_id_ambiguous=size[group] > 1,
        **split,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
