"""Cora and CiteSeer as Planetoid published them: citation graphs, words, and the public split.

Z. Yang, W. Cohen and R. Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph
Embeddings", 2016 (arXiv:1603.08861). The builders serve anybody who uses TFDS; `read` is what the
rest of this project calls.
"""

import difflib
import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow_datasets as tfds

from data import source

CORA = pathlib.Path(__file__).parent / "files" / "cora.npz"
VALIDATION = 500  # nodes: those that follow the training nodes
PARTS = ("y", "allx", "ally", "tx", "ty", "graph", "test.index")
CITATION = """
@inproceedings{yang2016revisiting,
  title={Revisiting Semi-Supervised Learning with Graph Embeddings},
  author={Yang, Zhilin and Cohen, William and Salakhutdinov, Ruslan},
  booktitle={International Conference on Machine Learning},
  year={2016}
}
@article{sen2008collective,
  title={Collective Classification in Network Data},
  author={Sen, Prithviraj and Namata, Galileo and Bilgic, Mustafa and Getoor, Lise and
          Gallagher, Brian and Eliassi-Rad, Tina},
  journal={AI Magazine},
  year={2008}
}
"""


class Planetoid(NamedTuple):
    """A graph of N papers with M citations, direction forgotten, and bags of F words.

    Attributes:
        edges: [M, 2] int32, pairs of nodes i < j in ascending order; no pair twice.
        rows: [nnz] int32, the node of each feature that is not zero, ascending.
        columns: [nnz] int32, its word, ascending within a node.
        values: [nnz] float32, its value as published: not normalised.
        features: F, the number of words.
        labels: [N] int32, the class of a node; -1 where none is published.
        train: [N] bool, the nodes of the public split's training set; 20 a class.
        validation: [N] bool, likewise; 500 nodes.
        test: [N] bool, likewise; 1000 nodes.
        classes: the number of classes.
        checksum: SHA-256 of the source, in hexadecimal.
    """

    edges: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    features: int
    labels: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    classes: int
    checksum: str


def read(dataset: str) -> Planetoid:
    """The named data set, "citeseer" or "cora", prepared on first use (see `source.load`).

    Raises:
        ValueError: there is no such data set, or a source file has the wrong checksum.
        OSError: a source file is missing, or the cache cannot be written.
    """
    builders = {builder.name: builder for builder in (CiteSeer, Cora)}
    if dataset not in builders:
        near = difflib.get_close_matches(dataset.lower(), builders)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ValueError(f"unknown dataset {dataset!r}: {hint}there are: {', '.join(builders)}")
    builder = builders[dataset]
    [graph] = source.load(builder)["full"]
    return Planetoid(**graph, checksum=builder.checksum())


def parse(files: Mapping[str, pathlib.Path]) -> dict[str, Any]:
    """Planetoid's raw files as the arrays of `Planetoid`, all but the checksum.

    Args:
        files: the path of each of PARTS. (Planetoid's x is left out: it repeats rows of allx.)
    """
    y, allx, ally, tx, ty, graph = (source.restricted_load(files[part]) for part in PARTS[:-1])
    test = np.loadtxt(files["test.index"], dtype=np.int32)
    # allx and ally hold the first nodes in order, tx and ty the test nodes in test.index's order.
    # CiteSeer's test nodes leave gaps: nodes of the graph without words, label or part.
    place = np.concatenate([np.arange(len(ally), dtype=np.int32), test])
    node = np.arange(len(graph))

    blocks = [(block.tocoo(), at) for block, at in ((allx, 0), (tx, allx.shape[0]))]
    rows = np.concatenate([place[block.row + at] for block, at in blocks])
    columns = np.concatenate([block.col for block, _ in blocks])
    order = np.lexsort((columns, rows))

    labels = np.full(len(graph), -1, np.int32)
    labels[place] = np.concatenate([ally, ty]).argmax(1)

    # The lists name every pair from both ends, some repeatedly, and some nodes as their own.
    pairs = np.sort([(i, j) for i, heard in graph.items() for j in heard], axis=1)
    return dict(
        edges=np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).astype(np.int32),
        rows=rows[order],
        columns=columns[order],
        values=np.concatenate([block.data for block, _ in blocks])[order],
        features=allx.shape[1],
        labels=labels,
        train=node < len(y),
        validation=(len(y) <= node) & (node < len(y) + VALIDATION),
        test=np.isin(node, test),
        classes=ally.shape[1],
    )


class PlanetoidBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """One example, the whole graph, in the split "full"; its features are `Planetoid`'s fields.

    A data set is a subclass with a description and the raw `FILES` by part: see `CiteSeer`.
    """

    VERSION = tfds.core.Version("1.0.0")
    FILES: ClassVar[dict[str, source.File]] = {}

    @property
    def url_infos(self):
        return source.url_infos(self.FILES.values())

    @classmethod
    def checksum(cls) -> str:
        """SHA-256 over the SHA-256 of every source file, in hexadecimal."""
        return hashlib.sha256("".join(f.sha256 for f in cls.FILES.values()).encode()).hexdigest()

    def _info(self):
        array = tfds.features.Tensor
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.FeaturesDict(
                {
                    "edges": array(shape=(None, 2), dtype=np.int32),
                    "rows": array(shape=(None,), dtype=np.int32),
                    "columns": array(shape=(None,), dtype=np.int32),
                    "values": array(shape=(None,), dtype=np.float32),
                    "features": np.int32,
                    "labels": array(shape=(None,), dtype=np.int32),
                    "train": array(shape=(None,), dtype=np.bool_),
                    "validation": array(shape=(None,), dtype=np.bool_),
                    "test": array(shape=(None,), dtype=np.bool_),
                    "classes": np.int32,
                }
            ),
            homepage="https://github.com/kimiyoung/planetoid",
            citation=CITATION,
            license="The data, by LINQS, name no licence. Planetoid's repository: MIT.",
        )

    def _split_generators(self, dl_manager):
        return {"full": self._generate_examples(self._graph(dl_manager))}

    def _generate_examples(self, graph):
        yield 0, graph

    def _graph(self, dl_manager) -> dict[str, Any]:
        return parse({part: source.locate(f, dl_manager) for part, f in self.FILES.items()})


class Cora(PlanetoidBuilder):
    """2708 papers on machine learning in 7 classes, 1433 words, 5278 undirected citations.

    Ships with the project, in data/files, joined there with the papers' ids (see its README.md).
    """

    name = "cora"

    @classmethod
    def checksum(cls) -> str:
        return source.sha256(CORA)

    def _graph(self, dl_manager) -> dict[str, Any]:
        with np.load(CORA) as cora:
            nodes, features = cora["feature_shape"]
            words = np.diff(cora["feature_indptr"])  # of each node
            return {
                "edges": cora["edges"].astype(np.int32),
                "rows": np.repeat(np.arange(nodes, dtype=np.int32), words),
                "columns": cora["feature_indices"].astype(np.int32),
                "values": np.ones(len(cora["feature_indices"]), np.float32),
                "features": features,
                "labels": cora["labels"].astype(np.int32),
                "train": cora["train"],
                "validation": cora["validation"],
                "test": cora["test"],
                "classes": len(cora["class_names"]),
            }


def _published(dataset: str, digests: str) -> dict[str, source.File]:
    """Planetoid's files of a data set, from a line "part bytes SHA-256" for each."""
    url = "https://github.com/kimiyoung/planetoid/raw/master/data"
    files = {}
    for part, size, sha256 in map(str.split, digests.strip().splitlines()):
        name = f"ind.{dataset}.{part}"
        files[part] = source.File(f"planetoid/{name}", f"{url}/{name}", sha256, int(size))
    return files


class CiteSeer(PlanetoidBuilder):
    """3327 papers on computer science in 6 classes, 3703 words, 4552 undirected citations.

    48 papers cite none of the others and are cited by none; 15 have no words, no label and no part
    in the split.
    """

    name = "citeseer"
    FILES = _published(
        "citeseer",
        """
        y             3014  8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924
        allx        595021  2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668
        ally         55623  f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95
        tx          260321  539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21
        ty           24135  55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce
        graph        61987  d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7
        test.index    5000  2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4
        """,
    )
