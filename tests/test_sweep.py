"""Sweeps: every point is tried once, what fails is named, what was killed goes on, validation
chooses."""

import json
import os
import re
import signal
import sys

import numpy as np
import pytest
from crews import crew, tries, widths, work
from toy import config as toy_config

import population
from configs import gat_cora, gcn_cora, grid
from configs.check import SettingError, changed
from results import outcome, points
from results.files import read_json
from results.live import Tail
from sweeps import launch
from sweeps import space as spaces
from sweeps.crew import Crew, failures, forget
from sweeps.search import Listed
from sweeps.space import Population, Range


def swept(folder, *ways, **how):
    """A crew's work on a grid: what is left, the points in order, what failed."""
    found, known = widths(*ways)
    left = work(folder, Listed(folder, found, {}), lambda p: known[p.name], **how)
    names = [p.name for p in found]
    return left, outcome.gather(folder, names), failures(folder, names)


# ---- Points and populations


def test_points_that_differ_in_rates_are_one_population():
    config = gat_cora.get_config()
    space = {name: spaces.values(name, of, config) for name, of in gat_cora.get_sweep().items()}
    found = spaces.populations(config, spaces.grid(space, config))
    assert [p.name for p in found] == ["model.heads=1", "model.heads=4", "model.heads=8"]
    assert [len(p.points) for p in found] == [9, 9, 9]
    assert sorted(n for p in found for n in p.trials) == list(range(27))
    assert found[0].points[:2] == [
        {"optimizer.learning_rate": 2e-3, "optimizer.l2": 1e-4},
        {"optimizer.learning_rate": 2e-3, "optimizer.l2": 5e-4},
    ]


def test_whether_gradients_are_clipped_is_a_program_of_its_own():
    config = gcn_cora.get_config()
    found = spaces.populations(config, grid({"optimizer.clip": [0.0, 1.0, 2.0]}))
    assert [(p.overrides, p.points) for p in found] == [
        ({"optimizer.clip": 0.0}, [{"optimizer.clip": 0.0}]),
        ({"optimizer.clip": 1.0}, [{"optimizer.clip": 1.0}, {"optimizer.clip": 2.0}]),
    ]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("model.width=8,16", [8, 16]),
        ("optimizer.learning_rate=1e-3,1", [1e-3, 1.0]),
        ("optimizer.schedule=linear, cosine", ["linear", "cosine"]),
        ("select.x", None),
        ("task.name=Citation", ["Citation"]),
        ("optimizer.drops=(5,),(5,10)", [(5,), (5, 10)]),
        ("model.width=4:64:log", Range(4, 64, True, True)),
        ("optimizer.l2=0:1e-3", Range(0.0, 1e-3)),
    ],
)
def test_words_of_the_command_line(words, values):
    config = gcn_cora.get_config()
    if values is None:
        with pytest.raises(SettingError, match="expected NAME=VALUE"):
            spaces.from_words([words], config)
    else:
        assert list(spaces.from_words([words], config).values()) == [values]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.widht=8"], "did you mean 'model.width'"),
        (["model=8"], "no such setting"),
        (["model.width=8,8.5"], "model.width = 8.5: expected int"),
        (["model.width=8,8"], "each once"),
        (["model.width="], "expected values"),
        (["model.width=8", "model.width=9"], "stands there twice"),
        (["seeds=1,2"], "say --config.seeds=N"),
        (["select.keep=best,last"], "such points do not compare"),
        (["=8"], "expected NAME=VALUE"),
        (["optimizer.l2=nan"], "expected float"),
        (["optimizer.l2=0:1:log"], "LOW below HIGH"),
        (["optimizer.l2=1:0"], "LOW below HIGH"),
        (["optimizer.l2=1:2:lin"], "expected LOW:HIGH"),
        (["model.width=0,1"], "model.width = 0: expected 1 or more"),
        (["model.width=4:8"], "a range needs --search"),
        (["steps=15,20"], "multiple of"),
    ],
)
def test_what_cannot_be_swept_over_is_one_line(words, said):
    config = toy_config(model={"name": "Net", "width": 4})
    with pytest.raises(SettingError, match=said):
        spaces.grid(spaces.from_words(words, config), config)


def test_a_points_numbers_are_those_of_a_run_by_itself():
    """Two rates in one population, and each alone."""
    from test_train import Net, Points

    own = toy_config(seeds=2)
    rates = [{"optimizer.learning_rate": rate} for rate in (0.1, 0.01)]
    model, task = Net(2, dropout=0.5), Points.make()

    def trained(config, points=({},)):
        program = population.plan(config, model, task, population.check(config, points))
        state = program.start(program.task)
        return program.advance(program.task, state)[1]["metrics"]["validation"]["loss"]

    both = trained(own, rates)
    alone = [trained(changed(own, rate)) for rate in rates]
    np.testing.assert_array_equal(both, np.concatenate(alone))
    assert both[0] != both[2]


def test_points_say_what_others_say():
    """One that is silent of a setting has the config's."""
    config = gcn_cora.get_config()
    found = spaces.checked([{"model.width": 8}, {"model.depth": 3}], config)
    assert found == [
        {"model.width": 8, "model.depth": 2},
        {"model.width": 16, "model.depth": 3},
    ]
    assert spaces.of_points(found) == {"model.width": [8, 16], "model.depth": [2, 3]}


def test_populations_have_names_of_their_own():
    """Of letters that a folder's name cannot have, too."""
    config = gcn_cora.get_config()
    patterns = ["(kernel_0)", "[kernel_0]", "kernel_0"]
    found = spaces.populations(config, grid({"optimizer.l2_on": patterns}))
    assert len({population.name for population in found}) == 3


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("(p for p in [])", "expected settings with their values, or a list of points"),
        ("3", "get_sweep() returns 3;"),
        ("[8, 16]", "a list of points"),
        ("{}", "a list of points"),
        ("{8: (1, 2)}", "a list of points"),
        ("{'model.width': 8}", "model.width = 8: expected its values"),
        ("{'model.width': None}", "model.width = None: expected its values"),
        ("{'model.width': (8, 'a')}", "model.width = 'a': expected int"),
        ("1 / 0", "ZeroDivisionError"),
        ("[{'model.width': 8}, {'model.width': 8}]", "one point twice"),
    ],
)
def test_what_a_config_cannot_ask_for_is_one_line(tmp_path, returned, said):
    file = tmp_path / "config.py"
    file.write_text(f"def get_sweep():\n    return {returned}\n")
    with pytest.raises(ValueError, match=re.escape(said)):
        spaces.from_file(file, gcn_cora.get_config())


def test_a_config_may_speak_numpy(tmp_path):
    file = tmp_path / "config.py"
    values = "{'optimizer.l2': np.logspace(-3, -1, 3), 'model.width': np.array([4, 8])}"
    file.write_text(f"import numpy as np\ndef get_sweep():\n    return {values}\n")
    found = spaces.from_file(file, gcn_cora.get_config())
    assert found == {"optimizer.l2": [0.001, 0.01, 0.1], "model.width": [4, 8]}


# ---- Crews


def test_every_point_is_trained_once_and_only_once(folder):  # SWEEP-3
    ways = [[0.7, 0.7], [0.8, 0.6], [0.9, 0.9], [0.5, 0.5]]
    found, known = widths(*ways)
    first = Listed(folder, found[:2], {})
    assert work(folder, first, lambda p: known[p.name]) == []
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    left, parts, failed = swept(folder, *ways)
    assert (left, failed) == ([], {})
    assert tries(folder) == {f"width={i}": 1 for i in range(4)}
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert [own["overrides"]["model.width"] for own, _ in parts] == [2, 0, 1, 3]


def test_a_failure_is_named_and_the_rest_goes_on(folder):  # SWEEP-2
    ways = [0.7, 0.7], "raise", [0.9, 0.9]
    left, parts, failed = swept(folder, *ways)
    assert (left, len(parts)) == ([], 2)
    assert failed == {"width=1": "RuntimeError: no such thing"}
    swept(folder, *ways)
    assert tries(folder)["width=1"] == 1  # not without being asked to
    forget(folder)
    _, parts, failed = swept(folder, ways[0], [0.8, 0.8], ways[2])
    assert (len(parts), failed) == (3, {})


def test_a_point_without_a_finite_run_is_listed_as_failed(folder):  # SWEEP-4
    left, parts, failed = swept(folder, [0.7, 0.7], [None, None], [0.9, None])
    about = {"experiment": "fake", "command": "", "metric": "accuracy"}
    about["space"] = {"model.width": [0, 1, 2]}
    found = outcome.outcome(about, parts, [], failed, [], left)
    assert found["chosen"]["settings"] == {"model.width": 2}
    assert found["chosen"]["validation"]["mean"] == 0.9
    assert [point["failed"] for point in found["points"]] == [["seed 1"], [], ["seed 0", "seed 1"]]
    text = outcome.words(found, folder)
    assert "model.width=1  no run stayed finite" in text and "NaN" not in text


def test_validation_chooses_and_only_the_chosen_is_tested(folder):  # SWEEP-6
    found = [Population("all", {}, [{"optimizer.learning_rate": r} for r in (0.1, 0.2)], [0, 1])]
    # Of the first point the tests are better: its validations are 0.7, its tests (reversed) too.
    ways = [[0.7, 0.7], [0.8, 0.8]]
    work(folder, Listed(folder, found, {}), lambda p: ways)
    summary = read_json(folder / "all/summary.json")
    summary["splits"]["test"]["accuracy"]["values"] = [0.99, 0.99, 0.6, 0.6]
    (folder / "all/summary.json").write_text(json.dumps(summary))
    about = {"experiment": "fake", "command": "", "metric": "accuracy"}
    about["space"] = {"optimizer.learning_rate": [0.1, 0.2]}
    found = outcome.outcome(about, outcome.gather(folder, ["all"]), [], {}, [], [])
    assert found["chosen"]["settings"] == {"optimizer.learning_rate": 0.2}
    assert found["chosen"]["test"]["mean"] == 0.6
    text = outcome.words(found, folder)
    assert "test accuracy        60.0 ± 0.0 %" in text and "99.0" not in text


def test_what_was_killed_is_started_again(folder):
    left, parts, failed = swept(folder, "kill", [0.9, 0.9])
    assert (left, failed, tries(folder)["width=0"]) == ([], {}, 2)


def test_what_dies_every_time_is_given_up(folder):
    found, _ = widths("")
    dying = [
        sys.executable,
        "-c",
        "import os; print('so long', flush=True); os.kill(os.getpid(), 9)",
    ]
    tail = lambda p: Tail(folder / p.name, 1, 1, "accuracy", 20)
    own = Crew(folder, Listed(folder, found, {}), lambda p: dying, tail, 1, 1)
    own.work([], lambda: None)
    assert failures(folder, ["width=0"]) == {"width=0": "killed 4 times: so long"}
    assert own.left() == []


def test_what_others_train_is_left_to_them(folder):
    found, known = widths([0.7, 0.7], [0.8, 0.8])
    other = crew(folder, Listed(folder, found, {}), lambda p: ["wait"], 1)
    other._start()
    [taken] = other.running
    left = work(folder, Listed(folder, found, {}), lambda p: known[p.name], join=True)
    assert left == [taken] and len(tries(folder)) == 2
    other.work([signal.SIGTERM], lambda: None)  # it ends; somebody else goes on
    assert work(folder, Listed(folder, found, {}), lambda p: known[p.name]) == []


def test_other_seeds_are_other_runs(folder):
    """Confirmed again with more seeds, a folder of fewer is no answer."""
    found, known = widths([0.7, 0.7])
    work(folder, Listed(folder, found, {}), lambda p: known[p.name])
    assert not Listed(folder, found, {"seeds": 9}).settled(found[0])
    assert Listed(folder, found, {}).settled(found[0])


def test_a_damaged_record_is_its_childs_to_tell(folder):
    (folder / "run").mkdir()
    row = {"step": 10, "run": 0, "split": "validation", "seconds": 0.0, "accuracy": 0.5}
    (folder / "run/metrics.jsonl").write_text(json.dumps(row) + "\ngarbage\n")
    found = Tail(folder / "run", 1, 1, "accuracy", 20).read()
    assert (found.step, found.best) == (10, [0.5])


def test_a_command_leaves_the_other_points_out():
    """Whatever the folder is called."""
    about = {"points": [{"a": 1}, {"a": 2}], "config": {"a": 0, "model": {}}, "overrides": {}}
    about["command"] = "python train.py --config=c.py '--points=/tmp/a b/points.json'"
    run = {"failed_at": 0, "seed": 0}
    summary = {"n": 2, "runs": [run, run], "splits": {}, "seconds": {"train": 1.0}}
    parts = points.split(about, summary)
    commands = [own["command"] for own, _ in parts]
    assert commands == [f"python train.py --config=c.py --config.a={a}" for a in (1, 2)]


def test_cpus_are_dealt_out(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3, 5, 7}, raising=False)
    assert launch.shares(1) == [[2, 3, 5, 7]]
    assert launch.shares(2) == [[2, 3], [5, 7]]
    assert launch.shares(3) == [[2], [3], [5]]
    assert launch.shares(5) == [[2], [3], [5], [7], [2]]
