"""MUTAG and PROTEINS, of Morris et al. 2020 (arXiv:2007.08663): which kind of molecule is it?"""

import hashlib

import numpy as np

from data import source
from data.example import Example
from data.graphs import Graphs, graphs

# The archive's files, one by one, where a repository holds them unpacked.
URL = (
    "https://raw.githubusercontent.com/SuperVillian/GBGC/"
    "bc6a710ff57010dfccef68f5e4a294692ccbf242/dataset"
)
FILES = {
    "mutag": {
        "A": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
        "graph_indicator": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
        "graph_labels": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
        "node_labels": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
    },
    "proteins": {
        "A": "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
        "graph_indicator": "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
        "graph_labels": "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
        "node_labels": "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
    },
}
CLASSES = {
    "mutag": {-1: "not mutagenic", 1: "mutagenic"},  # Debnath et al. 1991: 188 nitro compounds
    "proteins": {1: "enzyme", 2: "no enzyme"},  # Borgwardt et al. 2005: 1113 proteins
}


def TUDataset(
    dataset: str = "mutag", folds: int = 10, holdout: float = 0.1, batch_size: int = 32
) -> Graphs:
    """Classification of whole graphs, whose nodes are known by their label alone, in `folds` runs:
    each is tested on one of as many stratified parts, and trained on the others.

    Of these, a share `holdout` is kept for validation (as Errica et al. 2020 do). Without it, that
    of Xu et al. 2019: what validates is what tests, and the step is to be `common` to all folds.
    """
    if dataset not in FILES:
        raise ValueError(f"task.dataset = {dataset!r}: expected {' or '.join(FILES)}")
    if not 0 <= holdout <= 0.5:
        raise ValueError(f"task.holdout = {holdout}: expected 0 to 0.5")
    examples = read(dataset)
    labels = np.array([example.y for example in examples])
    if not 2 <= folds <= (most := np.bincount(labels).min()):
        raise ValueError(f"task.folds = {folds}: expected 2 to {most}, the smaller class")
    split = f"{folds} folds" + (f", {holdout:.0%} held out" if holdout else ", no test set")
    checksum = hashlib.sha256("".join(FILES[dataset].values()).encode()).hexdigest()
    return graphs(
        examples,
        partitions(labels, folds, holdout),
        list(CLASSES[dataset].values()),
        batch_size=batch_size,
        about={"dataset": dataset, "split": split, "checksum": checksum},
    )


def read(dataset: str) -> list[Example]:
    """The graphs; errors as in `source.locate`."""
    files = {}
    for name, digest in FILES[dataset].items():
        url = f"{URL}/{dataset.upper()}/{dataset.upper()}_{name}.txt"
        every = url.replace(name, f"{{{','.join(FILES[dataset])}}}")
        path = source.locate(dataset, url, digest, every)
        files[name] = np.loadtxt(path, int, delimiter=",")
    owner, kinds, ends = files["graph_indicator"], files["node_labels"], files["A"] - 1
    one_hot = np.eye(kinds.max() + 1)[kinds]  # [N, F]
    places = list(CLASSES[dataset])
    # Nodes and edges are in the order of their graphs, which are numbered from 1.
    numbers = np.arange(1, len(files["graph_labels"]) + 2)
    nodes, edges = (np.searchsorted(of, numbers) for of in (owner, owner[ends[:, 0]]))
    return [
        Example(
            ends[edges[g] : edges[g + 1]] - nodes[g],
            one_hot[nodes[g] : nodes[g + 1]],
            np.array(places.index(label)),
        )
        for g, label in enumerate(files["graph_labels"])
    ]


def partitions(labels: np.ndarray, folds: int, holdout: float) -> list[dict[str, np.ndarray]]:
    """Of each fold the graphs in train, validation and test, always the same."""
    from sklearn.model_selection import StratifiedKFold, train_test_split  # here: slow to import

    found = []
    cut = StratifiedKFold(folds, shuffle=True, random_state=0)
    for fold, (rest, test) in enumerate(cut.split(labels, labels)):
        train, validation = rest, test
        if holdout:
            train, validation = train_test_split(
                rest, test_size=holdout, random_state=fold, stratify=labels[rest]
            )
        found.append({"train": train, "validation": validation, "test": test})
    return found
