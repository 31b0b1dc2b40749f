"""Cora and CiteSeer as Planetoid published them: citation graphs, words, and the public split."""

import collections
import hashlib
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds
from scipy.sparse import csr_matrix, vstack

from data import source

URL = "https://github.com/kimiyoung/planetoid"
CORA = Path(__file__).parent / "files" / "cora.npz"
PARTS = ("y", "allx", "ally", "tx", "ty", "graph", "test.index")  # and x, which repeats allx

ints = tfds.features.Tensor(shape=(None,), dtype=np.int32)
marks = tfds.features.Tensor(shape=(None,), dtype=np.bool_)
FEATURES = {  # of N papers with M citations, direction forgotten
    "edges": tfds.features.Tensor(shape=(None, 2), dtype=np.int32),  # [M, 2] i < j, ascending
    "rows": ints,  # [nnz] the paper of each feature that is not zero, ascending
    "columns": ints,  # [nnz] its word, ascending within a paper
    "values": tfds.features.Tensor(shape=(None,), dtype=np.float32),  # [nnz] not normalised
    "features": np.int32,  # how many words there are
    "labels": ints,  # [N] -1 where none is published
    "train": marks,  # [N] 20 papers a class
    "validation": marks,  # [N] 500 papers
    "test": marks,  # [N] 1000 papers
    "classes": np.int32,  # how many there are
}
Planetoid = collections.namedtuple("Planetoid", [*FEATURES, "checksum", "ids", "names"])


def read(dataset: str) -> Planetoid:
    """The FEATURES of "citeseer" or "cora", prepared on first use; errors as in `source.load`.

    With the papers' ids and the classes' names, each None where none are published.
    """
    builders = {builder.name: builder for builder in (CiteSeer, Cora)}
    if dataset not in builders:
        raise ValueError(f"task.dataset = {dataset!r}: expected {' or '.join(builders)}")
    builder = builders[dataset]
    [graph] = source.load(builder, "full")
    return Planetoid(**graph, checksum=builder.checksum(), **builder.names())


def parse(files: dict[str, Path]) -> tuple:
    """Edges [M, 2], words [N, F] in CSR, labels [N] and split (masks) of Planetoid's files."""
    y, allx, ally, tx, ty, graph = (source.restricted_load(files[part]) for part in PARTS[:-1])
    test = np.loadtxt(files["test.index"], dtype=int)
    node = np.arange(len(graph))
    # allx and ally hold the first nodes in order, tx and ty the test nodes in test.index's order.
    # CiteSeer's test nodes leave gaps: 15 nodes without words, label or part.
    place = np.concatenate([node[: len(ally)], test])
    words = vstack([allx, tx]).tocoo()
    shape = len(graph), words.shape[1]
    words = csr_matrix((words.data, (place[words.row], words.col)), shape)
    labels = np.full(len(graph), -1)
    labels[place] = np.concatenate([ally, ty]).argmax(1)
    # Every pair is named from both ends, some repeatedly, and some nodes name themselves.
    edges = undirected([(i, j) for i, heard in graph.items() for j in heard])
    train, validation = node < len(y), (node >= len(y)) & (node < len(y) + 500)
    split = dict(train=train, validation=validation, test=np.isin(node, test))
    return edges, words, labels, split


def undirected(pairs) -> np.ndarray:
    """The pairs [M, 2] of different nodes as i < j, ascending, each once."""
    pairs = np.sort(pairs, axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)


class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """One example, the whole graph, in the split "full"."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.FeaturesDict(FEATURES),
            homepage=URL,
            citation="Sen et al. 2008, AI Magazine 29(3); Yang et al. 2016, arXiv:1603.08861",
            license="The data, by LINQS, name no licence. Planetoid's repository: MIT.",
        )

    def _split_generators(self, dl_manager):
        return {"full": self._generate_examples()}

    def _generate_examples(self):
        edges, words, labels, split = self.graph()
        rows, columns = words.nonzero()
        example = {
            "edges": edges.astype(np.int32),
            "rows": rows,
            "columns": columns,
            "values": words.data,
            "features": words.shape[1],
            "labels": labels.astype(np.int32),
            "classes": labels.max() + 1,
        }
        yield 0, example | split


class Cora(Builder):
    """2708 papers on machine learning in 7 classes, 1433 words, 5278 undirected citations."""

    name = "cora"

    @classmethod
    def checksum(cls) -> str:
        return source.sha256(CORA)

    @classmethod
    def names(cls) -> dict[str, list[str] | None]:
        with np.load(CORA) as cora:
            ids, names = cora["paper_ids"].astype(str), cora["class_names"]
            return {"ids": ids.tolist(), "names": names.tolist()}

    def graph(self):
        with np.load(CORA) as cora:
            indices, indptr = cora["feature_indices"], cora["feature_indptr"]
            ones = np.ones(len(indices), np.float32)
            words = csr_matrix((ones, indices, indptr), cora["feature_shape"])
            split = {part: cora[part] for part in ("train", "validation", "test")}
            return cora["edges"], words, cora["labels"], split


class CiteSeer(Builder):
    """3327 papers on computer science in 6 classes, 3703 words, 4552 undirected citations."""

    name = "citeseer"
    SHA256 = {
        "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    }

    @classmethod
    def checksum(cls) -> str:
        return hashlib.sha256("".join(cls.SHA256.values()).encode()).hexdigest()

    @classmethod
    def names(cls) -> dict[str, list[str] | None]:
        return {"ids": None, "names": None}

    def graph(self):
        url = f"{URL}/raw/master/data/ind.citeseer."
        every = f"{url}{{{','.join(PARTS)}}}"
        files = self.SHA256.items()
        return parse({p: source.locate("planetoid", url + p, sha, every) for p, sha in files})
