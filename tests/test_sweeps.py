"""A sweep's folders become points, and points say in numbers what the settings do."""

import numpy as np
import pytest
from test_table import folder

from results import effects
from results.effects import Course
from results.files import json_lines, read_json, write_json
from results.sweeps import Sweep, in_short, key, scale

TEST = 0.987  # what a test split says here: it must be nowhere


def runs(path, values, points=None, *, stops=None, parameters=23040, seconds=1.5, of=(), **changed):
    """A run folder whose validation accuracies are `values`; the test's are all TEST. Each run has
    rows at steps 10, 20, ... until it stops, rising to its value."""
    own = {"points": points} if points else {}
    changed = {"optimizer": {"learning_rate": 0.01, "l2": 0.0}} | changed
    folder(path, [TEST] * len(values), of=own | dict(of), **changed)
    summary = read_json(path / "summary.json")
    failed = np.array([run["failed_at"] for run in summary["runs"]])
    held = np.array([v for v, bad in zip(values, failed, strict=True) if not bad], float)
    fine = len(held) and np.isfinite(held).all()
    summary["splits"]["validation"] = {
        "examples": 5,
        "accuracy": {
            "mean": float(held.mean()) if fine else None,
            "std": float(held.std(ddof=1)) if fine and len(held) > 1 else None,
            "n": len(held),
            "values": [
                v if np.isfinite(v) and not bad else None
                for v, bad in zip(values, failed, strict=True)
            ],
        },
    }
    summary["parameters"], summary["seconds"]["train"] = parameters, seconds
    write_json(path / "summary.json", summary)
    rows = [
        {"step": step, "run": run, "split": split, "seconds": 1.0, "accuracy": value, "loss": 1.0}
        for run, (end, value) in enumerate(zip(stops or [30] * len(values), values, strict=True))
        for step in range(10, end + 1, 10)
        for split in ("train", "validation")
    ]
    text = json_lines(row for row in rows if np.isfinite(row["accuracy"]))
    (path / "metrics.jsonl").write_text(text)
    return path


def model(**settings):
    return {"model": {"name": "GCN", **settings}}


def grid(rates, decays):
    return [{"optimizer.learning_rate": r, "optimizer.l2": d} for r in rates for d in decays]


def tiny_sweep(top):
    """Two widths x two rates x two decays, but for width 16 at the high rate with decay: its runs
    failed. Width 32 is asked for and not there yet, a fourth folder is of the chosen again."""
    points = grid([0.001, 0.01], [0.0, 5e-4])
    values = {8: [0.5, 0.6, 0.7, 0.6], 16: [0.8, 0.7, 0.4, 0.9]}
    for width, means in values.items():
        pairs = np.repeat(means, 2) + np.tile([-0.01, 0.01], 4)
        runs(
            top / f"model.width={width}",
            pairs.tolist(),
            points,
            failed=(6, 7) if width == 16 else (),
            overrides=model(width=width),
            parameters=1000 * width,
            seconds=width,
        )
    runs(top / "confirm" / "a", [0.99] * 3, seed=10, overrides=model(width=128))
    (runs(top / "model.width=32", [0.9], overrides=model(width=32)) / "summary.json").unlink()
    space = {
        "model.width": [32, 16, 8],
        "optimizer.learning_rate": [0.001, 0.01],
        "optimizer.l2": "0:5e-4",
    }
    write_json(top / "sweep.json", {"experiment": "gcn_cora", "space": space})
    return top


@pytest.fixture
def tiny(tmp_path):
    return tiny_sweep(tmp_path / "sweep")


# ---- What the folders say


def test_points_of_a_sweep(tiny):
    sweep = Sweep([tiny])
    assert [s.name for s in sweep.settings] == [
        "model.width",
        "optimizer.learning_rate",
        "optimizer.l2",
    ]
    assert [s.values for s in sweep.settings] == [[32, 16, 8], [0.001, 0.01], [0.0, 5e-4]]
    assert len(sweep.points) == 7 and [*map(sweep.name, sweep.broken)] == [
        "width 16, learning rate 1e-2, l2 5e-4"
    ]
    assert sweep.name(sweep.best.at) == "width 16, learning rate 1e-3, l2 0"
    assert sweep.best.mean == pytest.approx(0.8) and sweep.best.std == pytest.approx(
        0.02 * 0.5**0.5
    )
    assert (sweep.best.parameters, sweep.best.seconds) == (16000, 2.0)
    assert sweep.left == [f"{tiny / 'model.width=32'} is unfinished: left out"]
    assert sweep.title == "GCN on cora, public split"


def test_without_a_manifest_what_differs_is_found(tiny):
    (tiny / "sweep.json").unlink()
    sweep = Sweep([tiny])
    assert {s.name: s.values for s in sweep.settings} == {
        "model.width": [8, 16],
        "optimizer.learning_rate": [0.001, 0.01],
        "optimizer.l2": [0.0, 5e-4],
    }
    parts = [tiny / "model.width=8", tiny / "model.width=16"]
    assert len(Sweep(parts).points) == 7  # folders by themselves


def test_runs_of_one_point_in_two_folders_are_pooled(tmp_path):
    for name, seed, values in (("a", 0, [0.5, 0.7]), ("b", 1, [0.7, 0.9])):  # seed 1 is in both
        runs(tmp_path / name, values, seed=seed, overrides=model(width=8))
    runs(tmp_path / "c", [0.1], overrides=model(width=16))
    first, second = sorted(Sweep([tmp_path]).points)
    assert sorted(first.values) == [0.5, 0.7, 0.9] and second.values.tolist() == [0.1]


def test_values_in_words():
    assert in_short([0.001, 0.03, 0.0, 5e-4]) == ["1e-3", "3e-2", "0", "5e-4"]
    assert in_short([0.01, 0.5, 1.0]) == ["0.01", "0.5", "1"]
    assert in_short([8, 1024]) == ["8", "1,024"]
    assert in_short(["adam", "", None, True, [1, 2]]) == ["adam", '""', "null", "true", "[1, 2]"]
    assert in_short([0.12341, 0.12342]) == ["0.12341", "0.12342"]
    assert in_short([0.00012345, 0.0123], 2) == ["1.2e-4", "1.2e-2"]
    assert key(0) == key(0.0) and key(True) != key(1)


@pytest.mark.parametrize(
    ("values", "kind", "places"),
    [
        ([0.001, 0.01, 0.1], "log", [-3, -2, -1]),
        ([8, 16, 32], "log", np.log10([8, 16, 32])),
        ([0.1, 0.2, 0.3], "linear", [0.1, 0.2, 0.3]),
        ([5e-4, 0.0, 5e-3], "rank", [1, 0, 2]),  # zero has no logarithm
        (["b", "a"], "rank", [0, 1]),
        ([False, True], "rank", [0, 1]),
    ],
)
def test_the_axis_that_suits_a_setting(values, kind, places):
    found = scale(values)
    assert found[0] == kind
    np.testing.assert_allclose(found[1], places)


# ---- In numbers


def test_importance_by_hand():
    # Rows differ by 4, columns by 2, and one cell in each diagonal by 1 more:
    # variance 4 + 1 + 1/4, of which rows 4, columns 1, both together 1/4.
    means = np.array([[0.0, 2.0], [4.0, 6.0]]) + 0.5 * np.array([[1, -1], [-1, 1]])
    np.testing.assert_allclose(effects.main_effects(means), np.array([4, 1]) / 5.25)
    np.testing.assert_allclose(effects.main_effects(np.array([[0.0, 1.0], [1.0, 0.0]])), [0, 0])
    np.testing.assert_allclose(effects.main_effects(np.array([[1.0, 1.0], [3.0, 3.0]])), [1, 0])


def test_a_forest_finds_what_matters():
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform(-4, -1, 60), rng.integers(0, 2, 60), rng.random(60)])
    values = places[:, 0] + 0.5 * places[:, 1]
    found = effects.forest_effects(places, [False, True, False], values)
    assert found.argsort().tolist() == [2, 1, 0] and found[0] > 0.6 and found.sum() < 1
    again = effects.forest_effects(places, [False, True, False], values)
    np.testing.assert_array_equal(found, again)


def test_a_run_that_has_stopped_counts_on():
    went = Course(np.array([10, 20, 30]), np.array([1.0, 2.0, 3.0]), 3.0)
    stopped = Course(np.array([10, 15]), np.array([5.0, 4.0]), 5.0)  # it tests its best weights
    steps = effects.shared_steps([went, stopped])
    assert steps.tolist() == [10, 20, 30]
    line = effects.average([went, stopped], steps)
    assert line.mean.tolist() == [3, 3.5, 4] and line.n.tolist() == [2, 2, 2]
    np.testing.assert_allclose(line.std, [8**0.5, 4.5**0.5, 2**0.5])


def test_a_front_is_what_nobody_beats():
    costs, scores = np.array([3, 1, 2, 2, 4]), np.array([5, 1, 4, 3, 5])
    assert effects.front(costs, scores).tolist() == [1, 2, 0]
    assert effects.front(np.ones(3), np.array([1, 3, 2])).tolist() == [1]
    edge = effects.front(np.array([1, 99, 100]), np.array([0, 9.99, 10]))
    assert effects.spaced(np.array([1, 99, 100]), np.array([0, 9.99, 10]), edge) == [0, 2]
