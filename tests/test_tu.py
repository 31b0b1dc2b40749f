"""MUTAG and PROTEINS are read as published, and cut into folds as the two protocols have it."""

import os

import jax.numpy as jnp
import numpy as np
import pytest

from data import TUDataset, tu

published = pytest.mark.skipif(
    not os.environ.get("LINEAGE_DATA"), reason="LINEAGE_DATA is not set: no published files"
)


@published
@pytest.mark.parametrize(
    "dataset, graphs, second, nodes, edges, labels",
    [("mutag", 188, 125, 3371, 3721, 7), ("proteins", 1113, 450, 43471, 81044, 3)],
)
def test_the_published_counts(dataset, graphs, second, nodes, edges, labels):
    examples = tu.read(dataset)
    assert len(examples) == graphs and sum(int(example.y) for example in examples) == second
    assert sum(len(example.x) for example in examples) == nodes
    assert sum(len(example.edges) for example in examples) == 2 * edges
    assert {example.x.shape[1] for example in examples} == {labels}
    assert all((example.x.sum(1) == 1).all() for example in examples)


@published
def test_the_first_molecule():
    """17 atoms: 14 carbons, one nitrogen, two oxygens, in bonds heard both ways."""
    first = tu.read("mutag")[0]
    assert first.x.sum(0).tolist() == [14, 1, 2, 0, 0, 0, 0] and first.y == 1
    pairs = set(map(tuple, first.edges.tolist()))
    assert len(pairs) == 38 and pairs == {(j, i) for i, j in pairs} and max(max(pairs)) == 16


@pytest.mark.parametrize("holdout", [0.0, 0.1])
def test_folds_by_either_protocol(holdout):
    labels = np.arange(188) % 3 // 2
    folds = tu.partitions(labels, 10, holdout)
    tests = np.concatenate([fold["test"] for fold in folds])
    assert sorted(tests) == list(range(188))
    for fold in folds:
        train, validation, test = (set(fold[part]) for part in ("train", "validation", "test"))
        assert not train & test and not train & validation
        assert len(train | validation | test) == 188
        assert (validation & test == set()) if holdout else (validation == test)
        for part in fold.values():
            assert abs(labels[part].mean() - 1 / 3) < 0.1


@published
def test_a_population_of_ten_folds():
    task = TUDataset("mutag", holdout=0.0)
    assert task.runs([5])["fold"].tolist() == list(range(10))
    run = {"seed": jnp.int32(0), "fold": jnp.int32(4)}
    assert [int(task.split(p, run).mask.sum()) for p in ("train", "test")] == [169, 19]
    assert "no test set" in task.about["split"] and "10% held out" in TUDataset().about["split"]


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(dataset="typo"), "task.dataset = 'typo': expected mutag or proteins"),
        (dict(holdout=0.9), "task.holdout = 0.9: expected 0 to 0.5"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        TUDataset(**settings)


@published
def test_more_folds_than_members_of_a_class():
    with pytest.raises(ValueError, match="task.folds = 64: expected 2 to 63, the smaller class"):
        TUDataset(folds=64)
