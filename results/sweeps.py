"""A sweep: the runs in some folders, of one experiment, as points that differ in settings.

A point's value is the mean over its runs of the headline metric on the validation split. Nothing
here reads a test split: who looks at it to choose has no test left.
"""

import collections
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from configs import lower_is_better
from configs.check import nearest
from results import points, report
from results.effects import Course
from results.files import MANIFEST, FolderError, read_json, read_rows, read_run, status

CONFIRM = "confirm"  # the folder of fresh runs of the chosen, which are no part of the sweep
FEW = 12  # values of a setting that are seen one by one
At = tuple[int, ...]  # of each setting, which of its values
Said = tuple[Path, int, dict[str, Any], dict[str, Any]]  # a point as its folder tells of it


class NoSweep(ValueError):
    """Why some folders are no sweep."""


class Setting(NamedTuple):
    """A setting that varies. Values are in the order given, else ascending."""

    name: str  # "optimizer.learning_rate"
    title: str  # "learning rate", if no other is called so
    values: list[Any]
    words: list[str]
    kind: str  # of its axis: "log", "linear", or "rank" where a value has a rank only
    places: np.ndarray  # of the values on that axis

    @property
    def ordered(self) -> bool:
        return self.kind != "rank" or all(map(is_number, self.values))


class Run(NamedTuple):
    """Where a run's rows are, and its validation metrics in the end."""

    path: Path
    number: int
    ends: dict[str, float | None]


class Point(NamedTuple):
    """What the runs of one choice of settings came to."""

    at: At  # which value of each setting
    values: np.ndarray  # of the runs that did not fail
    mean: float
    std: float | None  # of one run, none
    parameters: int
    seconds: float  # of a run
    runs: list[Run]  # those that did not fail


class Sweep:
    """The points of these folders. Raises NoSweep unless they are one experiment's, and vary."""

    def __init__(self, tops: Sequence[Path]):
        self.left: list[str] = []  # out, and why
        parts = list(self._parts(tops))
        if not parts:
            raise NoSweep("there is no finished run")
        _, _, about, summary = parts[0]
        for what, of in (("experiment", _experiment), ("data set or split", _data)):
            if len(found := sorted({of(about) for _, _, about, _ in parts})) > 1:
                raise NoSweep(f"a sweep is of one {what}, these runs of {', '.join(found)}")
        self.metric: str = summary["expected"]["metric"]
        self.lower = lower_is_better(self.metric)
        self.settings = _varied([report.settings(about["config"]) for *_, about, _ in parts], tops)
        varied = [s.name for s in self.settings]
        changed = set.intersection(*(set(came["changed"]) for *_, came in parts))
        fixed = sorted(one for one in changed if one.partition("=")[0] not in varied)
        self.title = summary["system"] if "model.name" not in varied else about["experiment"]
        self.title += f" ({', '.join(fixed)})" if fixed else ""
        self.title += f" on {about['data']['dataset']}, {about['data']['split']} split"
        self.codes, self.devices = (
            sorted({about[name] for _, _, about, _ in parts}) for name in ("code", "device")
        )
        self.points, self.broken, self.lost = self._pooled(parts)
        if len(self.points) < 2:
            raise NoSweep("fewer than two points came to something")
        self.best = min(self.points, key=lambda p: p.mean if self.lower else -p.mean)

    def _parts(self, tops: Iterable[Path]) -> Iterator[Said]:
        """Of each point in each folder: the folder, its first run there, and what is said of it."""
        files = [(top, file) for top in tops for file in sorted(top.rglob("config.json"))]
        folders = [f.parent for top, f in files if CONFIRM not in f.relative_to(top).parts]
        for path in dict.fromkeys(folders):
            try:
                about, summary = read_run(path)
                if not summary:
                    raise FolderError(f"{path} is {status(path)}")
            except FolderError as e:
                self.left.append(f"{e}: left out")
                continue
            if summary["expected"]["metric"] not in summary["splits"].get("validation", {}):
                raise NoSweep(f"{path} has no validation {summary['expected']['metric']}")
            first = 0
            for own, came in points.split(about, summary):
                yield path, first, own, came
                first += came["n"]

    def _pooled(self, parts: Iterable[Said]) -> tuple[list[Point], list[At], int]:
        """The points that came to something; where those are that did not; how many runs of the
        others failed. A run that stands in two folders counts once."""
        pools: dict[At, dict[str, Any]] = collections.defaultdict(dict)
        for path, first, about, came in parts:
            own = report.settings(about["config"])
            at = tuple([*map(key, s.values)].index(key(own.get(s.name))) for s in self.settings)
            split = came["splits"]["validation"]
            metrics = [name for name, numbers in split.items() if isinstance(numbers, Mapping)]
            for i, run in enumerate(came["runs"]):
                known = {metric: split[metric]["values"][i] for metric in metrics}
                held = Run(path, first + i, known) if not run["failed_at"] else None
                pools[at][report.who(run)] = (held, came)
        held_points, failed, lost = [], [], 0
        for at, pool in pools.items():
            runs = [run for run, _ in pool.values() if run]
            ends = [run.ends[self.metric] for run in runs]
            if not runs or None in ends:
                failed.append(at)
                continue
            lost += len(pool) - len(runs)
            values = np.array(ends, float)
            std = float(values.std(ddof=1)) if len(values) > 1 else None
            seconds = [came["seconds"]["train"] / came["n"] for _, came in pool.values()]
            cost = [*pool.values()][-1][1]["parameters"], float(np.mean(seconds))
            held_points.append(Point(at, values, float(values.mean()), std, *cost, runs))
        return held_points, failed, lost

    def name(self, at: At) -> str:
        """ "learning rate 1e-2, width 8"."""
        known = zip(self.settings, at, strict=True)
        return ", ".join(f"{setting.title} {setting.words[i]}" for setting, i in known)

    def chosen(self, words: Sequence[str]) -> list[int]:
        """Which settings these are, said by name or by the end of it."""
        found = []
        for word in words:
            ends = [i for i, s in enumerate(self.settings) if f".{s.name}".endswith(f".{word}")]
            if len(ends) != 1:
                hint = nearest(word, [s.name for s in self.settings])
                raise ValueError(f"--settings: {word!r} is none that varies; {hint}")
            found += ends
        if len(set(found)) != 2:
            raise ValueError(f"--settings={','.join(words)}: expected two settings")
        return found

    @functools.cached_property
    def means(self) -> np.ndarray | None:
        """The points' means on the grid, an axis a setting; None where one is missing."""
        if len(self.points) < np.prod([len(s.values) for s in self.settings]):
            return None
        grid = np.empty([len(s.values) for s in self.settings])
        for point in self.points:
            grid[point.at] = point.mean
        return grid

    def courses(self, metric: str) -> list[list[Course]]:
        """Of each point, its runs' courses; of runs without a row there is none."""
        rows: dict[Path, dict[int, dict[int, float]]] = {}
        for path in {run.path: 0 for point in self.points for run in point.runs}:
            rows[path] = collections.defaultdict(dict)
            for row in read_rows(path):
                if row["split"] == "validation" and row.get(metric) is not None:
                    rows[path][row["run"]][row["step"]] = row[metric]
        return [
            [_course(rows[run.path][run.number], run.ends.get(metric)) for run in point.runs
             if rows[run.path][run.number]]
            for point in self.points
        ]  # fmt: skip


def _course(known: Mapping[int, float], end: float | None) -> Course:
    steps, values = zip(*sorted(known.items()), strict=True)
    return Course(np.array(steps), np.array(values), values[-1] if end is None else end)


def _experiment(about: Mapping[str, Any]) -> str:
    return about["experiment"]


def _data(about: Mapping[str, Any]) -> str:
    data = about["data"]
    return f"{data['dataset']} {data['split']} {data['checksum'][:8]}"


def _varied(configs: Sequence[Mapping[str, Any]], tops: Iterable[Path]) -> list[Setting]:
    """The settings in which these configs differ, those that a manifest names first."""
    spaces: dict[str, Any] = {}
    for top in tops:
        if (file := top / MANIFEST).exists():
            said = read_json(file)
            space = said.get("space") if isinstance(said, dict) else None
            spaces |= space if isinstance(space, dict) else {}
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys([*spaces, *(name for config in configs for name in config)]):
        given = spaces.get(name)
        given = list(given) if isinstance(given, list) else []
        there = {key(v): v for v in [*given, *(config.get(name) for config in configs)]}
        more = sorted((k, v) for k, v in there.items() if k not in set(map(key, given)))
        values = [*{key(v): v for v in given}.values(), *(v for _, v in more)]
        if len(values) > 1:
            found[name] = values
    if not found:
        raise NoSweep("the runs differ in no setting")
    ends = collections.Counter(name.rpartition(".")[2] for name in found)
    return [
        _setting(name, name if ends[end] > 1 else end, values)
        for name, values in found.items()
        for end in [name.rpartition(".")[2]]
    ]


def _setting(name: str, title: str, values: list[Any]) -> Setting:
    kind, places = scale(values)
    return Setting(name, title.replace("_", " "), values, in_short(values), kind, places)


def key(value: Any) -> tuple[int, float, str]:
    """What tells values apart, and sorts them: 0 is 0.0, but True is not 1."""
    if is_number(value):
        return 0, float(value), ""
    return 1, 0.0, json.dumps(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scale(values: Sequence[Any]) -> tuple[str, np.ndarray]:
    """The axis that suits these values, and their places on it."""
    if not all(map(is_number, values)):
        return "rank", np.arange(len(values), dtype=float)
    numbers = np.array(values, float)
    if (numbers > 0).all():
        steps = np.diff(np.sort(np.log(numbers)))
        geometric = len(steps) > 1 and np.allclose(steps, steps[0])
        if geometric or numbers.max() >= 10 * numbers.min():
            return "log", np.log10(numbers)
    apart = np.sort(np.abs(numbers[numbers != 0]))
    if apart[-1] >= 10 * apart[0] and len(numbers) <= FEW:  # with a zero, or of both signs
        return "rank", np.argsort(np.argsort(numbers)).astype(float)
    return "linear", numbers


def in_short(values: Sequence[Any], digits: int = 3) -> list[str]:
    """Values in words, the numbers among them written alike: 1e-3, 5e-4, 0. A few have as many
    digits as tell them apart."""
    sizes = [abs(v) for v in values if isinstance(v, float) and v]
    power = any(not 0.01 <= size < 1e5 for size in sizes)

    def say(value: Any, digits: int) -> str:
        if isinstance(value, float) and value and power:
            number, _, exponent = f"{value:.{digits - 1}e}".partition("e")
            return f"{float(number):.{digits}g}" + f"e{int(exponent)}" * bool(int(exponent))
        if is_number(value):
            return f"{int(value):,}" if value == round(value) else f"{value:.{digits}g}"
        return value if isinstance(value, str) and value else json.dumps(value)

    for enough in (digits, 6, 17):
        words = [say(value, enough) for value in values]
        if len(set(words)) == len(words) or len(values) > FEW:
            break
    return words
