"""Molecules as graphs: every atom is a node, every bond an edge that is heard both ways."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from data.example import Example
from data.graph_files import read_csv

# What is known of an atom and of a bond, by RDKit's names for it. Each is one-hot, and the place
# behind those listed is for whatever else there is: the 42 numbers of an atom, the 9 of a bond.
ATOM = {
    "GetSymbol": ("C", "O", "N", "Cl", "S", "F", "Br", "P", "I", "Si", "B", "Sn", "Hg", "As"),
    "GetDegree": (0, 1, 2, 3, 4),  # neighbours that are not hydrogen
    "GetFormalCharge": (-1, 0, 1, 2),
    "GetTotalNumHs": (0, 1, 2, 3),
    "GetHybridization": ("SP", "SP2", "SP3"),
    "GetIsAromatic": (True,),
    "IsInRing": (True,),
    "GetChiralTag": ("CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW"),
}
BOND = {
    "GetBondType": ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"),
    "GetIsConjugated": (True,),
    "IsInRing": (True,),
}


def width(table: Mapping[str, tuple]) -> int:
    """How many numbers that are."""
    return sum(len(words) + 1 for words in table.values())


def parse(smiles: str) -> Any:
    """The molecule as RDKit sees it; one without atoms if it cannot be read."""
    rdkit = toolkit()
    with rdkit.rdBase.BlockLogs():  # it tells stderr what is wrong, in several lines
        return rdkit.Chem.MolFromSmiles(smiles) or rdkit.Chem.Mol()


def graph(molecule: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Its atoms [N, ATOM], the ends of its bonds [2 B, 2], both ways, and the bonds [2 B, BOND]."""
    bonds = list(molecule.GetBonds())
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in bonds], np.int32)
    ends = ends.reshape(-1, 2)
    carries = one_hot(bonds, BOND)
    both = np.concatenate([ends, ends[:, ::-1]]), np.concatenate([carries, carries])
    return one_hot(list(molecule.GetAtoms()), ATOM), *both


def one_hot(things: list[Any], table: Mapping[str, tuple]) -> np.ndarray:
    """What the table says of each [things, width]."""
    found = np.zeros((len(things), width(table)), np.uint8)
    first = 0
    for name, words in table.items():
        places = {str(word): place for place, word in enumerate(words)}
        for row, thing in enumerate(things):
            found[row, first + places.get(str(getattr(thing, name)()), len(words))] = 1
        first += len(words) + 1
    return found


def scaffold(molecule: Any) -> str:
    """Its rings and what links them, of Bemis & Murcko 1996; "" where there are no rings."""
    murcko = toolkit().Chem.Scaffolds.MurckoScaffold
    return murcko.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)


def read_molecules(path: str) -> tuple[list[str], list[Example]]:
    """The molecules in a file: the SMILES of each, and its graph, about which nothing is asked.

    The file has commas between its columns, one of which is `smiles`; or it has a SMILES in every
    line and, behind a blank, whatever else. ValueError or OSError says in one line what is wrong.
    """
    file = Path(path).expanduser()
    content = file.read_bytes()
    if b"smiles" in content.partition(b"\n")[0].lower():
        table = read_csv(file, content, ["smiles"], [])
        found = list(zip(table.places, table.column("smiles"), strict=True))
    else:  # a SMILES is ASCII: what is not, RDKit will not read
        lines = enumerate(content.decode("utf-8-sig", "replace").split("\n"), start=1)
        found = [(f"{file}, line {i}", line.split()[0]) for i, line in lines if line.strip()]
    if not found:
        raise ValueError(f"{file}: expected a column 'smiles', or a SMILES a line, found none")
    graphs = [graph(parse(smiles)) for _, smiles in found]
    unread = [row for row, (x, _, _) in enumerate(graphs) if not len(x)]
    for row in unread[:1]:
        place, smiles = found[row]
        more = f" (first of {len(unread)} such lines)" if unread[1:] else ""
        raise ValueError(f"{place}: {smiles!r:.60}: expected a SMILES that RDKit can read{more}")
    none = np.zeros(0, np.float32)
    return [smiles for _, smiles in found], [Example(e, x, none, b) for x, e, b in graphs]


def toolkit() -> Any:
    """RDKit, an extra, and slow to import."""
    try:
        import rdkit.Chem.Scaffolds.MurckoScaffold
    except ImportError as e:
        raise ValueError("molecules need RDKit: pip install 'lineage[molecules]'") from e
    return rdkit
