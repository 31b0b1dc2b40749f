"""Tox21: which of twelve assays of toxicity does a molecule set off?"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from data import source
from data.example import Example
from data.graphs import Graphs, graphs
from data.molecules import read_molecules
from data.nodes import PARTS


def Tox21(
    split: str = "random", splits: int = 10, bonds: bool = False, batch_size: int = 64
) -> Graphs:
    """The molecules of the Tox21 challenge, as MoleculeNet has them (Wu et al. 2018,
    arXiv:1703.00564), and whether each is active in 12 assays, where that was measured.

    Of 8,014 rows 183 repeat a molecule: what its rows tell is taken together, and the 64 answers on
    which they disagree are unknown. Eight molecules (aluminium with a bond too many) RDKit cannot
    read: `about` names those left out.

    The split is "random": as many as `splits` says, every seed running on each; or "scaffold": one,
    always the same, whose parts share no system of rings, so that what is tested is unlike what was
    trained on. Four fifths are for training, a tenth is for validation, a tenth for testing.
    `bonds` says whether edges carry what bonds are: type, conjugation, and whether in a ring.
    """
    if split not in ("random", "scaffold"):
        raise ValueError(f"task.split = {split!r}: expected 'random' or 'scaffold'")
    if splits < 1:
        raise ValueError(f"task.splits = {splits}: expected 1 or more")
    from data import deepchem  # here, since TFDS is slow to import and --help has no use for it

    every = source.load(deepchem.Tox21, "full")
    molecules = [molecule for molecule in every if len(molecule["x"])]
    about = {
        "dataset": "tox21",
        "split": split if split == "scaffold" else f"random ({splits})",
        "checksum": deepchem.SHA256,
        "unreadable": [m["id"].decode() for m in every if not len(m["x"])],
    }
    if split == "scaffold":
        partitions = [scaffold_partition([m["scaffold"] for m in molecules])]
    else:
        partitions = [random_partition(len(molecules), seed) for seed in range(splits)]
    shared = dict(names=deepchem.NAMES, kind="multilabel", number="split_seed")

    def task(examples: Sequence[Example], **known) -> Graphs:
        examples = examples if bonds else [e._replace(carries=None) for e in examples]
        return graphs(examples, **shared, **known)

    def another(path: str) -> Graphs:
        """Molecules to predict on."""
        ids, examples = read_molecules(path)
        unknown = np.zeros(len(deepchem.NAMES))
        asked = [e._replace(y=unknown, mask=unknown > 0) for e in examples]
        everywhere = dict.fromkeys(PARTS, np.arange(len(ids)))
        size = min(batch_size, len(ids))
        return task(asked, partitions=[everywhere], ids=ids, batch_size=size)

    return task(
        [Example(m["edges"], m["x"], m["y"], m["bonds"], m["y"] >= 0) for m in molecules],
        partitions=partitions,
        ids=[m["smiles"].decode() for m in molecules],
        batch_size=batch_size,
        about=about,
        another=another,
    )


def random_partition(count: int, seed: int) -> dict[str, np.ndarray]:
    """Of so many molecules, those in each part: 80, 10 and 10 %."""
    order = np.random.default_rng(seed).permutation(count)
    cuts = np.split(order, [count * 8 // 10, count * 9 // 10])
    return {part: np.sort(own) for part, own in zip(PARTS, cuts, strict=True)}


def scaffold_partition(scaffolds: Sequence[str]) -> dict[str, list[int]]:
    """The molecules in each part, by DeepChem's rule: those of one scaffold stay together, and the
    largest such set is first to choose: training if it fits into 80 %, else validation, if both
    then fit into 90 %, else testing."""
    sets = defaultdict(list)
    for i, scaffold in enumerate(scaffolds):
        sets[scaffold].append(i)
    train, validation, test = parts = [], [], []
    for own in sorted(sets.values(), key=lambda own: (len(own), own[0]), reverse=True):
        if len(train) + len(own) <= 0.8 * len(scaffolds):
            train += own
        elif len(train) + len(validation) + len(own) <= 0.9 * len(scaffolds):
            validation += own
        else:
            test += own
    return dict(zip(PARTS, parts, strict=True))
