"""The tasks on Cora and CiteSeer are the benchmark's, and a graph that is wrong is refused."""

import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data.citation import Citation
from data.nodes import PARTS, nodes, random_partition

LOCAL = pathlib.Path(os.environ.get("LINEAGE_DATA", "nowhere"), "planetoid")
DATASETS = {  # nodes, words, classes, undirected edges, nodes without words
    "cora": (2708, 1433, 7, 5278, 0),
    "citeseer": (3327, 3703, 6, 4552, 15),
}
needs_files = pytest.mark.skipif(not LOCAL.is_dir(), reason="LINEAGE_DATA has no planetoid/")
each = pytest.mark.parametrize("dataset", ["cora", pytest.param("citeseer", marks=needs_files)])


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINEAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@each
def test_public(dataset):  # GDATA-7
    task = Citation(dataset)
    count, words, classes, edges, silent = DATASETS[dataset]
    assert task.features.shape == (count, words) and task.graph.shape == (count, count)
    assert task.labels.shape == (count,) and task.dims == {"out": classes}
    assert task.about["dataset"] == dataset and task.about["split"] == "public"
    assert len(task.about["checksum"]) == 64

    sums = task.features @ jnp.ones((words, 1))
    np.testing.assert_allclose(sums[sums != 0], 1, atol=1e-6)
    assert (sums == 0).sum() == silent
    assert (Citation(dataset, normalize=False).features.weights == 1).all()
    pairs = np.stack([task.graph.receivers, task.graph.senders], axis=1).tolist()
    assert len(pairs) == 2 * edges and pairs == sorted(pairs)  # by receiver
    assert {(i, j) for i, j in pairs} == {(j, i) for i, j in pairs}

    assert task.runs([3, 4]).keys() == {"seed"}
    for name, size in zip(PARTS, (20 * classes, 500, 1000), strict=True):
        (_, graph), targets, mask = task.split(name, {"seed": 3})
        assert graph.senders.shape == (1, 2 * edges) and targets.shape == mask.shape == (1, count)
        assert mask.sum() == size and (targets[mask] >= 0).all()
    batch = task.batch({"seed": 3}, 0)
    assert (batch.mask == task.split("train", {"seed": 3}).mask[0]).all()
    assert np.bincount(batch.targets[batch.mask]).tolist() == [20] * classes


def test_names():
    task = Citation("cora")
    assert task.facts.ids[:3] == ["1110563", "446271", "52515"] and len(set(task.facts.ids)) == 2708
    assert (
        task.facts.classes[3] == "Neural_Networks" and task.about["classes"] == task.facts.classes
    )
    with pytest.raises(ValueError, match="the task on cora reads no other graph"):
        task.read("elsewhere", {"seed": 0})


@needs_files
def test_citeseer_names_neither_papers_nor_classes():
    task = Citation("citeseer")
    assert task.facts.ids[:2] == ["0", "1"] and task.facts.classes == list("012345")
    assert "classes" not in task.about


@each
def test_random(dataset):  # GDATA-7
    task = Citation(dataset, "random", splits=3)
    _, _, classes, _, silent = DATASETS[dataset]
    labels, parts = np.asarray(task.labels), np.asarray(task.parts)
    assert task.about["split"] == "random (3)" and parts.shape == (3, len(labels))
    for part in parts:  # an index each, so the parts are disjoint
        assert ((part == -1) == (labels == -1)).all() and (part == -1).sum() == silent
        for index, size in ((0, 20), (1, 30)):
            assert np.bincount(labels[part == index]).tolist() == [size] * classes
    assert len(np.unique(parts, axis=0)) == 3
    np.testing.assert_array_equal(parts, Citation(dataset, "random", splits=3).parts)
    runs = task.runs([7, 8])
    assert runs["seed"].tolist() == [7, 7, 7, 8, 8, 8]
    assert runs["split_seed"].tolist() == [0, 1, 2, 0, 1, 2]


def test_runs_are_mapped_over_a_task_that_is_an_argument():
    task = Citation("cora", "random", splits=3)
    runs = jax.tree.map(jnp.asarray, task.runs([7, 8]))
    masks = jax.jit(lambda task, runs: jax.vmap(lambda run: task.batch(run, 0).mask)(runs))
    np.testing.assert_array_equal(masks(task, runs), np.tile(task.parts == 0, (2, 1)))


def test_wrong_settings():
    with pytest.raises(ValueError, match="task.split = 'fixed': expected 'public' or 'random'"):
        Citation(split="fixed")
    with pytest.raises(ValueError, match="class b has 50 nodes, expected 51"):
        random_partition(np.repeat([0, 1], [51, 50]), "ab", seed=0)


def small(**changes):
    arrays = {
        "edges": [[0, 1], [1, 3]],
        "rows": [0, 0, 2],
        "columns": [0, 1, 1],
        "values": [1.0, 3.0, 5.0],
        "labels": [0, 1, 1, -1],
        "parts": [[0, 1, 2, -1]],
    }
    arrays = {name: np.array(array) for name, array in (arrays | changes).items()}
    return nodes(**arrays, features=2, classes=["a", "b"], normalize=True)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"edges": [[0, 1], [1, 4]]}, "edges 4 (at [1, 1]): expected 0 to 3"),
        ({"edges": [[0, 1], [2, 2]]}, "edges [2 2] (at [1]): expected two different nodes"),
        ({"edges": [[0, 1], [1, 3], [0, 1]]}, "edges [0 1] (at [2]): expected each pair once"),
        ({"edges": [[0, 1], [1, 0], [1, 3]]}, "edges [1 0] (at [1]): expected each pair once"),
        ({"edges": [[0.0, 1], [1, 3]]}, "edges float64[2, 2]: expected integers [M, 2]"),
        ({"edges": [0, 1]}, "edges int64[2]: expected integers [M, 2]"),
        ({"edges": [[0, 1, 3]]}, "edges int64[1, 3]: expected integers [M, 2]"),
        ({"rows": [0, 0, 9]}, "rows 9 (at [2]): expected 0 to 3"),
        ({"rows": [[0, 0, 2]]}, "rows int64[1, 3]: expected integers [nnz]"),
        ({"columns": [0, 1, 2]}, "columns 2 (at [2]): expected 0 to 1"),
        ({"columns": [0, 1, 0.5]}, "columns float64[3]: expected integers [3]"),
        ({"columns": [0, 1]}, "columns int64[2]: expected integers [3]"),
        ({"values": [1, np.nan, 5]}, "values nan (at [1]): expected a finite number (of 32 bits)"),
        ({"values": [1.0, 3, 5, 7]}, "values float64[4]: expected numbers [3]"),
        ({"weights": [1, 0]}, "weights 0 (at [1]): expected a positive number from 1e-30 to 1e30"),
        ({"weights": [1.0]}, "weights float64[1]: expected numbers [2]"),
        ({"labels": [0, 2, 1, -1]}, "labels 2 (at [1]): expected -1 to 1"),
        ({"labels": [0.0, 1, 1, -1]}, "labels float64[4]: expected integers [N]"),
        ({"labels": [[0, 1, 1, -1]]}, "labels int64[1, 4]: expected integers [N]"),
        ({"parts": [0, 1, 2, -1]}, "parts int64[4]: expected integers [P, 4]"),
        ({"parts": [[0, 1, 2]]}, "parts int64[1, 3]: expected integers [P, 4]"),
        ({"parts": [[0, 1, 2, 3]]}, "parts 3 (at [0, 3]): expected -1 to 2"),
        ({"parts": [[0, 1, 1, -1]]}, "size of the test split 0 (at [0]): expected at least 1"),
        ({"parts": [[0, 1, 2, 2]]}, "label in test -1 (at [0, 3]): expected a class"),
    ],
)
def test_wrong_graphs(changes, message):
    with pytest.raises(ValueError) as error:
        small(**changes)
    assert str(error.value) == message


def test_a_graph_may_have_no_edges():
    graph = small(edges=np.zeros((0, 2), int)).graph
    assert graph.senders.shape == graph.receivers.shape == (0,) and graph.shape == (4, 4)


def test_small():  # GRAPH-10
    features, graph = small().batch({"seed": 0}, 0).inputs
    np.testing.assert_allclose(features @ jnp.eye(2), [[0.25, 0.75], [0, 0], [0, 1], [0, 0]])
    assert np.stack([graph.receivers, graph.senders]).tolist() == [[0, 1, 1, 3], [1, 0, 3, 1]]


def test_balanced_accuracy_counts_every_class_alike():
    task = small(labels=[0, 1, 0, 1, 1, 1, 0], parts=[[0, 1, 2, 2, 2, 2, -1]])
    outputs = jnp.eye(2)[np.array([1, 1, 0, 1, 0, 0, 1])][None]  # right: the 0, one of three 1s
    batches = task.split("test", {"seed": 0})
    measures = task.measure(outputs, batches)
    np.testing.assert_allclose(measures["balanced_accuracy"], (1 + 1 / 3) / 2, rtol=1e-6)
    assert task.score(outputs, batches)["accuracy"].value == 0.5
