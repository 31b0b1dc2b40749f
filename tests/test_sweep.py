"""Sweeps: every point is tried once, what fails is named, what was killed goes on, validation
chooses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toy import config as toy_config

import population
from configs import gat_cora, gcn_cora, grid
from configs.check import SettingError, changed
from results import outcome
from results.files import read_json
from results.live import Reached, Tail
from sweeps import launch
from sweeps import space as spaces
from sweeps.crew import Crew, failures, forget
from sweeps.search import SAMPLERS, Listed, Study
from sweeps.space import Population, Range

FAKE = [sys.executable, str(Path(__file__).with_name("fake_train.py"))]


def widths(*ways):
    """A population for each width, and how each is to end."""
    found = [Population(f"width={i}", {"model.width": i}, [{}], [i]) for i in range(len(ways))]
    return found, {f"width={i}": [way] for i, way in enumerate(ways)}


def crew(folder, source, ways, jobs=2):
    def command(p):
        several = p.points if len(p.points) > 1 else [{}]
        return [*FAKE, str(folder / p.name), *map(json.dumps, (p.given(), several, ways(p)))]

    tail = lambda p: Tail(folder / p.name, len(p.points), 2, "accuracy", 20)
    return Crew(folder, source, command, tail, jobs, 1)


def work(folder, source, ways, jobs=2, join=False):
    """What has not ended when a crew has done its work."""
    own = crew(folder, source, ways, jobs)
    own.work([], lambda: None, join)
    return own.left()


def swept(folder, *ways, **how):
    """A crew's work on a grid: what is left, the points in order, what failed."""
    found, known = widths(*ways)
    left = work(folder, Listed(folder, found, {}), lambda p: known[p.name], **how)
    names = [p.name for p in found]
    return left, outcome.gather(folder, names), failures(folder, names)


def tries(folder):
    return {path.stem: int(path.read_text()) for path in folder.glob("*.tries")}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sweep").mkdir()
    return tmp_path / "sweep"


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
        ("task.dataset=cora", ["cora"]),
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
    forget(folder, ["width=1"])
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
    assert "test accuracy        60.0 ± 0.0 %" in text and "99" not in text


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


def test_cpus_are_dealt_out(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3, 5, 7}, raising=False)
    assert launch.shares(1) == [[2, 3, 5, 7]]
    assert launch.shares(2) == [[2, 3], [5, 7]]
    assert launch.shares(3) == [[2], [3], [5]]
    assert launch.shares(5) == [[2], [3], [5], [7], [2]]


# ---- Searches


def study(folder, sampler="random", trials=4, batch=1, **space):
    config = toy_config(
        model={"name": "Net", "width": 4}, optimizer={"learning_rate": 0.1}, steps=20
    )
    space = space or {"optimizer.learning_rate": Range(1e-4, 1e-1, True)}
    return Study(folder, config, space, sampler, trials, batch)


def tried(found):
    return [p.given() for p in found.populations()]


def of(population):
    return [[0.5, 0.6] for _ in population.points]


@pytest.mark.parametrize("sampler", ["random", "quasirandom"])
def test_points_are_drawn_evenly_from_all_of_a_space(sampler):
    space = {"a": Range(1.0, 100.0, log=True), "b": Range(0, 3, whole=True), "c": ["x", "y"]}
    drawn = [spaces.drawn(space, sampler, i, 0) for i in range(400)]
    assert abs(np.mean([point["a"] < 10 for point in drawn]) - 0.5) < 0.1
    for name, values in {"b": range(4), "c": "xy"}.items():
        counts = [sum(point[name] == value for point in drawn) for value in values]
        assert sum(counts) == 400 and min(counts) > 0.7 * 400 / len(counts)
    assert all(type(point["b"]) is int and 1 <= point["a"] <= 100 for point in drawn)
    assert spaces.drawn(space, sampler, 7, 1) != drawn[7]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_search_tries_different_points_and_the_same_again(folder, tmp_path, sampler):  # SWEEP-5
    one, other = study(folder, sampler), study(folder, sampler)  # two workers
    while one.ask() and other.ask():
        pass
    first = tried(one)
    assert len(first) == 4 and len({json.dumps(point) for point in first}) == 4
    assert all(1e-4 <= point["optimizer.learning_rate"] <= 1e-1 for point in first)
    (tmp_path / "again").mkdir()
    alone = study(tmp_path / "again", sampler)
    while alone.ask():
        pass
    assert tried(alone) == first


def test_a_batch_of_rates_is_one_population(folder):
    found = study(folder, trials=5, batch=3)
    assert work(folder, found, of) == []
    assert [len(p.points) for p in found.populations()] == [3, 2]
    assert {t.value for t in found._trials()} == {0.55}


def test_a_trial_whose_crew_died_is_taken_over(folder):
    found = study(folder, trials=3)
    found.ask()
    found._study.ask()  # and died before its population was noted
    again = study(folder, trials=3)
    assert work(folder, again, of) == []
    assert [t.state.name for t in again._trials()] == ["COMPLETE"] * 3
    assert len(tries(folder)) == 3


def test_a_trial_that_ended_before_it_was_told_is_told(folder):
    found = study(folder, trials=1)
    found.ask()
    [only] = found.populations()
    shown = [only.given(), [{}], of(only)]
    subprocess.run([*FAKE, str(folder / only.name), *map(json.dumps, shown)], check=True)
    assert work(folder, study(folder, trials=1), of) == []
    assert tries(folder) == {only.name: 1} and found._trials()[0].value == 0.55


def test_failed_trials_are_told_so(folder):
    found = study(folder, trials=3)
    ways = {"trial-0000": "raise", "trial-0001": [None, None]}
    work(folder, found, lambda p: [ways.get(p.name, [0.5, 0.5])])
    assert [t.state.name for t in found._trials()] == ["FAIL", "FAIL", "COMPLETE"]


def test_what_has_no_promise_is_given_up(folder):
    found = study(folder, trials=10)
    for value in np.linspace(0.5, 0.9, 9):
        found.ask()
        last = found.populations()[-1]
        assert not found.hopeless(last, reached(10, value))  # better than those before
        found._study.tell(last.trials[0], value)
    found.ask()
    last = found.populations()[-1]
    assert found.hopeless(last, reached(10, 0.1))
    found.ended(last, True)
    assert found._trials()[-1].state.name == "PRUNED"


def reached(step, value):
    return Reached(0.0, step, step / 20, [value], value)
