"""Searches: what is tried depends on seed and outcome, whoever asks, and nothing is lost."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from crews import FAKE, tries, work
from toy import config

from results.files import FolderError
from results.live import Reached
from sweeps import space as spaces
from sweeps.search import SAMPLERS, Study
from sweeps.space import Range


def study(folder, sampler="random", trials=4, batch=1, **space):
    own = config(model={"name": "Net", "width": 4}, optimizer={"learning_rate": 0.1}, steps=20)
    space = space or {"optimizer.learning_rate": Range(1e-4, 1e-1, True)}
    return Study(folder, own, space, sampler, trials, batch)


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


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_batch_of_several_programs(folder, sampler):
    """Trials keep their numbers, whichever population they are in."""
    space = {"model.width": [1, 2], "optimizer.learning_rate": Range(1e-4, 1e-1, True)}
    found = study(folder, sampler, trials=6, batch=6, **space)
    found.ask()
    known = found.populations()
    assert sorted(n for p in known for n in p.trials) == list(range(6)) and found.undecided() == 0
    assert 1 < len(known) <= 6 and [p.name for p in known][0] == "trial-0000"
    for population in known:
        for number, point in zip(population.trials, population.points, strict=True):
            whole = population.overrides | point
            if sampler != "tpe":
                assert whole == spaces.drawn(space, sampler, number, 0)
            assert found._trials()[number].params == whole


def test_a_trial_whose_crew_died_is_taken_over(folder):
    found = study(folder, trials=3)
    found.ask()
    found._study.ask()  # and died before its population was noted
    again = study(folder, trials=3)
    assert work(folder, again, of) == []
    states = [t.state.name for t in again._trials()]
    assert states == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"] and len(tries(folder)) == 3


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


def test_a_trial_whose_folder_is_gone_is_trained_again(folder):
    assert work(folder, study(folder), of) == []
    shutil.rmtree(folder / "trial-0001")
    assert work(folder, study(folder), of) == []
    assert (folder / "trial-0001/summary.json").exists()
    assert tries(folder) == {f"trial-000{i}": 1 + (i == 1) for i in range(4)}


def test_a_crew_killed_as_it_wrote_leaves_no_damage(folder):
    found = study(folder)
    found.ask()
    file = folder / "study.log"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"op_code": 4, "wor')
    again = study(folder)
    assert file.read_bytes().startswith(whole + b"{") and tried(again) == tried(found)
    file.write_bytes(b"garbage\n" + whole)
    with pytest.raises(FolderError, match="study.log is damaged"):
        study(folder)


def test_a_space_keeps_its_kinds(folder):
    space = {
        "a": [(5,), (5, 10)],
        "b": [True, False],
        "c": ["x", "y"],
        "d": Range(1, 4, whole=True),
    }
    for sampler in ("tpe", "random"):
        place = folder / sampler
        place.mkdir()
        found = Study(place, config(), space, sampler, 4, 1)
        points = [found._draw(number) for number in range(2)]
        assert all(type(p["a"]) is tuple and type(p["b"]) is bool for p in points)
        assert all(p["c"] in "xy" and type(p["d"]) is int for p in points)


def test_the_ends_of_a_space_are_checked():
    space = {"dropout": Range(0.2, 1.5), "width": [1, 2, 3]}
    assert spaces.corners(space) == [
        {"dropout": 0.2, "width": 1}, {"dropout": 1.5, "width": 2}, {"dropout": 1.5, "width": 3}
    ]  # fmt: skip
