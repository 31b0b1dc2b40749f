"""Molecules are the graphs that chemists draw, and Tox21 is cut as MoleculeNet and DeepChem do."""

import functools
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import data
from data import deepchem, molecules, source
from data.graph_files import read_csv
from data.molecules import ATOM, BOND, graph, parse, read_molecules, scaffold
from data.nodes import PARTS
from data.tox21 import random_partition, scaffold_partition

pytest.importorskip("rdkit")
published = pytest.mark.skipif(
    not os.environ.get("LINEAGE_DATA"), reason="LINEAGE_DATA is not set: no published files"
)


def told(table, row):
    """What a row of one-hot numbers says: {name: what is listed, or None for all else}."""
    found, first = {}, 0
    for name, listed in table.items():
        [place] = np.flatnonzero(row[first : first + len(listed) + 1])
        found[name] = [*listed, None][place]
        first += len(listed) + 1
    assert first == len(row)
    return found


def test_ethanol():
    atoms, ends, bonds = graph(parse("CCO"))
    first, second, third = (told(ATOM, row) for row in atoms)
    assert first == {
        "GetSymbol": "C", "GetDegree": 1, "GetFormalCharge": 0, "GetTotalNumHs": 3,
        "GetHybridization": "SP3", "GetIsAromatic": None, "IsInRing": None, "GetChiralTag": None,
    }  # fmt: skip
    assert second == first | {"GetDegree": 2, "GetTotalNumHs": 2}
    assert third == first | {"GetSymbol": "O", "GetTotalNumHs": 1}
    assert ends.tolist() == [[0, 1], [1, 2], [1, 0], [2, 1]]
    single = {"GetBondType": "SINGLE", "GetIsConjugated": None, "IsInRing": None}
    assert [told(BOND, row) for row in bonds] == [single] * 4


def test_benzene():
    atoms, ends, bonds = graph(parse("c1ccccc1"))
    assert len(atoms) == 6 and len(np.unique(atoms, axis=0)) == 1
    carbon = told(ATOM, atoms[0])
    assert carbon["GetIsAromatic"] and carbon["IsInRing"] and carbon["GetHybridization"] == "SP2"
    assert {frozenset(pair) for pair in ends.tolist()} == {
        frozenset((i, (i + 1) % 6)) for i in range(6)
    }
    aromatic = {"GetBondType": "AROMATIC", "GetIsConjugated": True, "IsInRing": True}
    assert [told(BOND, row) for row in bonds] == [aromatic] * 12


def test_a_bond_carries_the_same_both_ways():
    _, ends, bonds = graph(parse("N#CC(=O)c1ccccc1"))
    carried = {tuple(pair): row.tolist() for pair, row in zip(ends.tolist(), bonds, strict=True)}
    assert len(carried) == len(ends) == 20
    assert all(carried[j, i] == row for (i, j), row in carried.items())
    kinds = [told(BOND, carried[pair])["GetBondType"] for pair in ((0, 1), (1, 2), (2, 3))]
    assert kinds == ["TRIPLE", "SINGLE", "DOUBLE"]


def test_a_salt_and_an_ion_alone():
    atoms, ends, bonds = graph(parse("[Na+].[Cl-]"))
    sodium, chloride = (told(ATOM, row) for row in atoms)
    assert (sodium["GetSymbol"], sodium["GetFormalCharge"], sodium["GetDegree"]) == (None, 1, 0)
    assert (chloride["GetSymbol"], chloride["GetFormalCharge"]) == ("Cl", -1)
    assert ends.shape == (0, 2) and bonds.shape == (0, molecules.width(BOND))
    np.testing.assert_array_equal(graph(parse("[Na+]"))[0], atoms[:1])


def test_mirror_images_differ_by_one_atom():
    left, right = (graph(parse(f"C[C{turn}H](N)C(=O)O"))[0] for turn in ("@", "@@"))
    assert np.flatnonzero((left != right).any(1)).tolist() == [1]
    tags = {told(ATOM, atoms[1])["GetChiralTag"] for atoms in (left, right)}
    assert tags == set(ATOM["GetChiralTag"])


def test_scaffolds_are_rings_and_what_links_them():
    assert scaffold(parse("CC(=O)Nc1ccc(O)cc1")) == "c1ccccc1"
    assert scaffold(parse("OC(c1ccccc1)C1CCNCC1")) == "c1ccc(CC2CCNCC2)cc1"
    cis, trans = (parse(f"c1ccccc1[C{turn}H]1C[C@@H]1c1ccncc1") for turn in ("@", "@@"))
    assert scaffold(cis) == scaffold(trans)
    assert scaffold(parse("CCO")) == scaffold(parse("[Na+]")) == ""


@pytest.mark.parametrize("smiles", ["C1CC", "no molecule", "", "CO[AlH3](O)O"])
def test_what_cannot_be_read_has_no_atoms(smiles, capfd):
    atoms, ends, _ = graph(parse(smiles))
    assert len(atoms) == len(ends) == 0
    assert capfd.readouterr() == ("", "")


def test_scaffolds_stay_together_and_the_largest_choose_first():
    parts = scaffold_partition(["e", "a", "b", "a", "b", "c", "a", "b", "a", "d"])
    # Four of a, three of b, and d, the last of those alone, which makes eight of ten.
    assert parts == {"train": [1, 3, 6, 8, 2, 4, 7, 9], "validation": [5], "test": [0]}
    everything = list(range(10))
    assert scaffold_partition(["x"] * 10) == {"train": [], "validation": [], "test": everything}


def test_random_partitions_are_the_seeds():
    parts = random_partition(105, 3)
    assert [len(parts[part]) for part in PARTS] == [84, 10, 11]
    assert sorted(np.concatenate(list(parts.values()))) == list(range(105))
    again, other = random_partition(105, 3), random_partition(105, 4)
    for part in PARTS:
        np.testing.assert_array_equal(parts[part], again[part])
        assert set(parts[part]) != set(other[part])


def written(tmp_path, text, name="molecules.csv"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def table(tmp_path, *told):
    """The published columns, with these (smiles, the first three answers)."""
    head = ",".join((*deepchem.NAMES, "mol_id", "smiles"))
    lines = [
        ",".join((*answers.split("/"), *["1"] * 9, f"T{i}", smiles))
        for i, (smiles, answers) in enumerate(told)
    ]
    path = written(tmp_path, "\n".join([head, *lines]))
    with open(path, "rb") as file:
        return read_csv(path, file.read(), ["smiles"], [])


def test_rows_of_one_molecule_are_taken_together(tmp_path):
    told = ("CCO", "1/0/"), ("C", "//0"), ("CCO", "0//1"), ("CCO", "1//1")
    first, second = deepchem.rows(table(tmp_path, *told))
    assert (first.id, first.smiles, second.id, second.smiles) == ("T0", "CCO", "T1", "C")
    assert first.y.tolist() == [-1, 0, 1, *[1] * 9]  # they disagree on the first
    assert second.y.tolist() == [-1, -1, 0, *[1] * 9]


def test_own_molecules(tmp_path):
    csv = written(tmp_path, "name,SMILES\nethanol,CCO\nsodium,[Na+]\n")
    lines = written(tmp_path, "CCO ethanol\n\n [Na+]\r\n", "molecules.smi")
    for path in (csv, lines):
        ids, examples = read_molecules(path)
        assert ids == ["CCO", "[Na+]"] and [len(e.x) for e in examples] == [3, 1]
        for name, example in zip(ids, examples, strict=True):
            for found, expected in zip(
                (example.x, example.edges, example.carries), graph(parse(name)), strict=True
            ):
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "text, message",
    [
        ("CCO\nfoo\nC1CC\n", r"csv, line 2: 'foo': expected a SMILES.*first of 2 such lines"),
        ("a,smiles\n1,CCO\n2,\n", "csv, line 3: '': expected a SMILES that RDKit can read$"),
        ("CCO,1\n", "csv, line 1: 'CCO,1': expected a SMILES"),
        ("a,smiles\nCCO\n", "csv, line 2: expected 2 cells, found 1"),
        ("\n", "csv: expected a column 'smiles', or a SMILES a line, found none"),
        ("smiles,a\n", "csv: expected a column 'smiles', or a SMILES a line, found none"),
    ],
)
def test_own_molecules_with_mistakes(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_molecules(written(tmp_path, text))


def test_without_rdkit_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ValueError, match=r"RDKit: pip install 'lineage\[molecules\]'$"):
        read_molecules(written(tmp_path, "CCO\n"))


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(split="index"), "task.split = 'index': expected 'random' or 'scaffold'"),
        (dict(splits=0), "task.splits = 0: expected 1 or more"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        data.Tox21(**settings)


CHAINS = ["C" * i + "O" for i in range(1, 16)]
RINGS = ["C1" + "C" * i + "C1O" for i in range(1, 16)]  # each a scaffold of its own


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Tox21 of thirty alcohols, one of them twice, and of what cannot be read."""
    told = [(smiles, f"{i % 2}//1") for i, smiles in enumerate([*CHAINS, *RINGS])]
    folder = tmp_path_factory.mktemp("tox21")
    found = table(folder, *told, ("C1CC", "1/1/1"), ("CO", "0//1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINEAGE_CACHE", str(folder / "cache"))
        patch.setattr(deepchem, "read", lambda: found)
        return source.load(deepchem.Tox21, "full")


@pytest.fixture
def few(prepared, monkeypatch):
    """The task on these."""
    monkeypatch.setattr(source, "load", lambda builder, split: prepared)
    return functools.partial(data.Tox21, batch_size=8)


def test_random_splits_are_a_population(few):
    task = few(splits=3)
    assert task.dims == {"out": 12} and task.about["unreadable"] == ["T30"]
    assert task.about["dataset"] == "tox21" and task.about["split"] == "random (3)"
    runs = {name: numbers.tolist() for name, numbers in task.runs([5, 6]).items()}
    assert runs == {"seed": [5] * 3 + [6] * 3, "split_seed": [0, 1, 2] * 2}

    def every(part):
        return jax.vmap(lambda seed: task.split(part, {"split_seed": seed}))(jnp.arange(3))

    for part, size in {"train": 24, "validation": 3, "test": 3}.items():
        batches = jax.jit(every, static_argnums=0)(part)
        assert batches.inputs[0].shape[-1] == molecules.width(ATOM) and batches.inputs[2] is None
        assert batches.mask.sum((1, 2)).tolist() == [[size, 0, *[size] * 10]] * 3


def test_scaffolds_are_one_partition_with_what_bonds_are(few):
    task = few(split="scaffold", bonds=True)
    assert [*task.runs([5, 6])] == ["seed"] and task.about["split"] == "scaffold"
    assert task.carries.shape == (len(task.edges), molecules.width(BOND))
    known, _ = task.read(None, {})
    parts = dict(tuple(words) for words in known.words)
    assert {parts[smiles] for smiles in CHAINS} == {"train"}
    assert [parts[smiles] for smiles in RINGS] == ["test"] * 3 + ["validation"] * 3 + ["train"] * 9


def test_a_row_for_every_molecule(few, tmp_path):  # EVAL-5
    task = few(splits=1)

    def spoken(path):
        known, batches = task.read(path, {})
        head, *rows = task.write(known, np.full((*batches.targets.shape,), np.log(3)))
        return [dict(zip(head, row, strict=True)) for row in rows]

    own = spoken(None)
    assert [row["id"] for row in own] == [*CHAINS, *RINGS]
    assert {row["split"] for row in own} == set(PARTS)
    assert [float(row["NR-AR"]) for row in own] == [i % 2 for i in range(30)]
    assert {row["NR-AR-LBD"] for row in own} == {""}
    [other] = spoken(written(tmp_path, "c1ccccc1 benzene\n", "own.smi"))
    assert (other["id"], other["split"], other["SR-p53"]) == ("c1ccccc1", "", "")
    assert {float(other[f"p_{name}"]) for name in deepchem.NAMES} == {0.75}


@published
def test_the_published_rows():
    table = deepchem.read()
    answers = np.stack([table.indices(name, ("0", "1")) for name in deepchem.NAMES], axis=1)
    names, place = np.unique(table.column("smiles"), return_inverse=True)
    assert (len(place), len(names), (np.bincount(place) > 1).sum()) == (8014, 7831, 160)
    told = np.zeros((2, len(names), 12), bool)
    for answer in (0, 1):
        np.logical_or.at(told[answer], place, answers == answer)
    assert told.all(0).sum() == 64
    found = list(deepchem.rows(table))
    assert [row.smiles for row in found] == list(dict.fromkeys(table.column("smiles")))
    y = np.stack([row.y for row in found])
    assert [(y == answer).sum() for answer in (0, 1)] == (told & ~told.all(0)).sum((1, 2)).tolist()


@published
def test_some_published_molecules():
    """Atoms and bonds are as many as their SMILES write."""
    for row in list(deepchem.rows(deepchem.read()))[::157]:
        atoms, ends, _ = graph(parse(row.smiles))
        written = re.findall(r"\[.*?\]|Br|Cl|[BCNOPSFI]", row.smiles, re.IGNORECASE)
        rings = re.findall(r"%\d\d|\d", re.sub(r"\[.*?\]", "", row.smiles))
        pieces = 1 + row.smiles.count(".")
        assert len(atoms) == len(written)
        assert len(ends) == 2 * (len(written) - pieces + len(rings) // 2)
