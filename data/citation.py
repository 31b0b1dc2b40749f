"""Cora and CiteSeer: to which field does each of these citing papers belong?"""

import numpy as np

from data.nodes import PARTS, Nodes, nodes, placed, random_partition


def Citation(
    dataset: str = "cora",
    split: str = "public",
    splits: int = 10,
    normalize: bool = True,
    positions: str = "none",
    dimensions: int = 8,
) -> Nodes:
    """Cora or CiteSeer with bag-of-words features, rows scaled to sum to one.

    The split is "public", that of Yang et al. 2016 (20 nodes of each class for training, 500 for
    validation, 1,000 for testing), or "random": as many as `splits` says, every seed running on
    each, since another split may have another winner (Shchur et al. 2018). `positions`, "laplacian"
    or "random_walk", are more features, as many as `dimensions` says: where a paper lies.
    """
    if split not in ("public", "random"):
        raise ValueError(f"task.split = {split!r}: expected 'public' or 'random'")
    from data import planetoid  # here, since TFDS is slow to import and --help has no use for it

    raw = planetoid.read(dataset)._asdict()
    about = {"dataset": dataset, "split": split, "checksum": raw.pop("checksum")}
    names = raw.pop("names")
    parts = [np.select([raw.pop(part) for part in PARTS], range(len(PARTS)), -1)]
    if names:
        about["classes"] = names
    raw["classes"] = names or [str(label) for label in range(raw["classes"])]
    if split == "random":
        about["split"] += f" ({splits})"
        parts = [random_partition(raw["labels"], raw["classes"], seed) for seed in range(splits)]
    task = nodes(**raw, parts=np.stack(parts), normalize=normalize, about=about)
    return placed(task, positions, dimensions)
