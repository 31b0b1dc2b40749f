"""Tox21 as DeepChem publishes it, its molecules read by RDKit once, when it is prepared."""

import gzip
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow_datasets as tfds

from data import molecules, source
from data.graph_files import Table, read_csv

URL = (
    "https://raw.githubusercontent.com/deepchem/deepchem/"
    "fbe3b911a94a6eb8c84c1a9e7ac67a472c49ea80/datasets/tox21.csv.gz"
)
SHA256 = "48b34e4e59a2bae6f95734cd206c1869ab355f50a5e50bb7371a21f861d5e297"
NAMES = (
    "NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma",
    "SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53",
)  # fmt: skip


def matrix(columns, dtype):
    return tfds.features.Tensor(shape=(None, columns), dtype=dtype)


FEATURES = {  # of a molecule of N atoms and B bonds
    "id": tfds.features.Text(),
    "smiles": tfds.features.Text(),
    "scaffold": tfds.features.Text(),  # of Bemis & Murcko
    "x": matrix(molecules.width(molecules.ATOM), np.uint8),  # [N, F], without rows if unreadable
    "edges": matrix(2, np.int32),  # [2 B, 2] both ways
    "bonds": matrix(molecules.width(molecules.BOND), np.uint8),  # [2 B, D]
    "y": tfds.features.Tensor(shape=(len(NAMES),), dtype=np.int8),  # -1 where unknown
}


class Row(NamedTuple):
    """A molecule of the table."""

    id: str
    smiles: str
    y: np.ndarray  # [12] 0 or 1, -1 where it is not measured or disagrees with itself


def rows(table: Table) -> Iterator[Row]:
    """The molecules, each once: what is told of one in several rows is taken together."""
    answers = np.stack([table.indices(name, ("0", "1")) for name in NAMES], axis=1)  # [R, 12]
    places = defaultdict(list)
    for row, smiles in enumerate(table.column("smiles")):
        places[smiles].append(row)
    for smiles, own in places.items():
        no, yes = ((answers[own] == answer).any(0) for answer in (0, 1))
        y = np.where(no == yes, -1, yes).astype(np.int8)
        yield Row(table.column("mol_id")[own[0]], smiles, y)


def read() -> Table:
    """The published table; errors as in `source.locate`."""
    path = source.locate("tox21", URL, SHA256)
    return read_csv(path, gzip.decompress(path.read_bytes()), ["mol_id", "smiles", *NAMES], [])


class Tox21(tfds.core.GeneratorBasedBuilder):
    """7,831 molecules, 8 of them unreadable, and the outcomes of 12 assays of toxicity."""

    name = "tox21"
    VERSION = tfds.core.Version("1.0.0")

    @classmethod
    def checksum(cls) -> str:
        return SHA256

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.__doc__,
            features=tfds.features.FeaturesDict(FEATURES),
            homepage="https://tripod.nih.gov/tox21/challenge/",
            citation="Huang et al. 2016, Frontiers in Environmental Science 3:85",
            license="Data of the government of the United States. DeepChem's repository: MIT.",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {"full": self._generate_examples()}

    def _generate_examples(self):
        for i, row in enumerate(rows(read())):
            molecule = molecules.parse(row.smiles)
            known = dict(zip(("x", "edges", "bonds"), molecules.graph(molecule), strict=True))
            yield i, row._asdict() | known | {"scaffold": molecules.scaffold(molecule)}
