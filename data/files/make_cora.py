"""Makes cora.npz: Planetoid's Cora joined with the papers' ids and the citations' direction.

    pip download --no-deps graphdatascience==2.2 -d /tmp/cora
    git clone --depth 1 https://github.com/kimiyoung/planetoid /tmp/planetoid
    python -m data.files.make_cora /tmp/cora/graphdatascience-2.2-py3-none-any.whl \\
        /tmp/planetoid/data

The wheel (Apache-2.0) has the papers' ids, words, subjects and directed citations, in no order of
interest. Planetoid (MIT) has the node order and the split that results are published for, and no
ids. Both are the same graph, which this script proves as it joins them.
"""

import io
import pathlib
import sys
import zipfile
from collections import defaultdict

import numpy as np
import pyarrow.parquet  # comes with tensorflow-datasets

from data import planetoid

# The numbers that stand for the subjects in the wheel: resources/cora/serialize_cora.py.
SUBJECTS = (
    "Neural_Networks",
    "Rule_Learning",
    "Reinforcement_Learning",
    "Probabilistic_Methods",
    "Theory",
    "Genetic_Algorithms",
    "Case_Based",
)


def papers(wheel: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ids [N] ascending, words [N, F], subjects [N], citations [C, 2]: indices (cited, citing)."""
    with zipfile.ZipFile(wheel) as archive:

        def table(part: str) -> pyarrow.Table:
            file = archive.read(f"graphdatascience/resources/cora/cora_{part}.parquet.gzip")
            return pyarrow.parquet.read_table(io.BytesIO(file))

        nodes, links = table("nodes"), table("rels")
    ids = nodes["nodeId"].to_numpy()
    order = np.argsort(ids)
    words = np.array(nodes["features"].to_pylist(), np.int8)[order]
    subjects = nodes["subject"].to_numpy()[order]
    links = np.stack([links["sourceNodeId"].to_numpy(), links["targetNodeId"].to_numpy()], 1)
    return ids[order], words, subjects, np.searchsorted(ids[order], links)


def undirected(pairs: np.ndarray) -> np.ndarray:
    """The pairs [M, 2] as i < j, ascending, each once."""
    return np.unique(np.sort(pairs, axis=1), axis=0)


def match(
    words: np.ndarray, edges: np.ndarray, other_words: np.ndarray, other_edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each node of a graph its equal in the other, and whether that was a choice among twins.

    Nodes are coloured by their words and again by their neighbours' colours, until the colours
    settle. Nodes of one colour are paired in ascending order.
    """
    nodes = len(words)
    colours = [row.tobytes() for row in np.concatenate([words, other_words])]
    heard = defaultdict(list)
    for i, j in np.concatenate([edges, other_edges + nodes]):
        heard[i].append(j)
        heard[j].append(i)
    settled = 0
    while len(set(colours)) > settled:
        settled = len(set(colours))
        names = {colour: name for name, colour in enumerate(dict.fromkeys(colours))}
        colours = [names[colour] for colour in colours]
        colours = [(colours[i], *sorted(colours[j] for j in heard[i])) for i in range(2 * nodes)]
    twins: dict[object, tuple[list, list]] = defaultdict(lambda: ([], []))
    for i, colour in enumerate(colours):
        twins[colour][i >= nodes].append(i % nodes)
    equal, ambiguous = np.empty(nodes, np.int64), np.empty(nodes, bool)
    for ours, theirs in twins.values():
        equal[ours] = theirs
        ambiguous[ours] = len(ours) > 1
    return equal, ambiguous


def main(wheel: str, folder: str) -> None:
    graph = planetoid.parse({p: pathlib.Path(folder, f"ind.cora.{p}") for p in planetoid.PARTS})
    ids, words, subjects, citations = papers(pathlib.Path(wheel))
    nodes = len(graph["labels"])

    bags = np.zeros((nodes, graph["features"]), np.int8)
    bags[graph["rows"], graph["columns"]] = graph["values"]
    paper, ambiguous = match(bags, graph["edges"], words, undirected(citations))

    node = np.argsort(paper)  # of each paper
    names = sorted(set(zip(graph["labels"].tolist(), subjects[paper].tolist(), strict=True)))
    assert np.array_equal(bags, words[paper])
    assert np.array_equal(graph["edges"], undirected(node[citations]))
    assert [label for label, _ in names] == list(range(graph["classes"])), "one subject a label"

    path = pathlib.Path(__file__).parent / "cora.npz"
    np.savez_compressed(
        path,
        feature_indices=graph["columns"].astype(np.int16),
        feature_indptr=np.searchsorted(graph["rows"], np.arange(nodes + 1)).astype(np.int32),
        feature_shape=np.array(bags.shape, np.int32),
        edges=graph["edges"].astype(np.int16),
        citations=np.array(sorted(node[citations].tolist()), np.int16),
        labels=graph["labels"].astype(np.int8),
        class_names=np.array([SUBJECTS[subject] for _, subject in names]),
        paper_ids=ids[paper].astype(np.int32),
        paper_id_ambiguous=ambiguous,
        train=graph["train"],
        validation=graph["validation"],
        test=graph["test"],
    )
    print(planetoid.Cora.checksum(), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
