"""The pictures of a sweep: each from its points, or Missing.

As in pictures.py, a picture's data is chosen here and put into words; grids.py and
lines.py draw it.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from results import effects, grids, lines
from results.pictures import Missing
from results.report import count, in_words, span
from results.sweeps import FEW, Setting, Sweep, in_short

MOST = {"lines": 8, "named": 6, "axes": 8}
PART = 4  # in which the values of a setting are taken together where they are too many


class Study:
    """A sweep, and what its pictures have in common."""

    def __init__(self, sweep: Sweep, pair: Sequence[int] = ()):
        self.sweep, self.pair = sweep, list(pair)
        self.at = np.array([p.at for p in sweep.points])  # [P, D]
        self.values = np.array([p.mean for p in sweep.points])  # [P]
        self.scores = -self.values if sweep.lower else self.values
        sizes = sorted({len(p.runs) for p in sweep.points})
        self.many = sizes[-1] > 1
        self.title = f"{sweep.title}: {count(len(sweep.points), 'point')} of {span(sizes, 'run')}"
        self.mean = f"mean validation {sweep.metric.replace('_', ' ')}"
        best, metric = sweep.best, sweep.metric
        self.best = f"{sweep.name(best.at)}: {in_words(metric, best.mean, best.std)}"
        lost = [*map(sweep.name, sweep.broken[:3])]
        lost += [f"{len(sweep.broken) - 3} more"] * (len(sweep.broken) > 3)
        self.failed = (
            f" {count(len(sweep.broken), 'point')} failed: {'; '.join(lost)}." if lost else ""
        )
        if sweep.lost:
            self.failed += f" Of the others {count(sweep.lost, 'run')} failed and "
            self.failed += "are left out." if sweep.lost > 1 else "is left out."
        if sweep.left:
            self.failed += f" {count(len(sweep.left), 'folder')} without a result left out."
        if len(sweep.codes) > 1:
            self.failed += f" Runs of {len(sweep.codes)} versions of the code."

    @property
    def names(self) -> list[str]:
        """The pictures that such a sweep has."""
        several = ["heatmap", "parallel", "importance"]
        middle = several if len(self.sweep.settings) > 1 else ["setting"]
        return ["curves", *middle, "parameters", "seconds"]

    @functools.cached_property
    def shares(self) -> tuple[list[float], str]:
        """How much of the points' variance each setting explains, and how that was found."""
        means = self.sweep.means
        if not np.ptp(self.values) > 1e-7 * np.abs(self.values).max():
            raise Missing("every point came to the same")
        if means is not None:
            return effects.main_effects(means).tolist(), "grid"
        if len(self.values) < effects.FEWEST:
            points = count(len(self.values), "point")
            raise Missing(f"{points}: a full grid is needed, or {effects.FEWEST} points")
        settings = self.sweep.settings
        places = np.column_stack([s.places[self.at[:, i]] for i, s in enumerate(settings)])
        try:
            found = effects.forest_effects(places, [not s.ordered for s in settings], self.values)
        except ImportError:
            raise Missing('the points are no full grid: pip install "lineage[sweep]"') from None
        return found.tolist(), "forest"


def curves(study: Study) -> Figure:
    sweep = study.sweep
    courses = {name: sweep.courses(name) for name in dict.fromkeys(["loss", sweep.metric])}
    known = {name: sum(found, []) for name, found in courses.items()}
    steps = {name: effects.shared_steps(found) for name, found in known.items() if found}
    steps = {name: there for name, there in steps.items() if len(there)}
    if sweep.metric not in steps:
        raise Missing(f"metrics.jsonl has no validation {sweep.metric}")
    panels, joined = {}, False
    for i, setting in enumerate(sweep.settings):
        parts, own = parted(setting, study.at[:, i])
        joined |= len(parts) < len(set(study.at[:, i]))
        drawn = []
        for words, shade, members in parts:
            found = {
                name: effects.average(runs, there)
                for name, there in steps.items()
                if (runs := sum((courses[name][p] for p in members), []))
            }
            if sweep.metric in found:
                drawn.append(lines.Line(words, shade, found))
        panels[own] = drawn
    ended = {int(course.steps[-1]) for course in known[sweep.metric]}
    note = f"{study.title}. Validation; for each value of a setting the mean over all runs with it"
    note += ", whatever their other settings" if len(panels) > 1 else ""
    note += ", and as a band ± sample standard deviation."
    note += " Values are taken together in equal parts of their range." if joined else ""
    if len(ended) > 1:
        note += " A run that has stopped counts on with the value of the weights that it tests."
    return lines.by_setting(panels, note + study.failed)


def parted(
    setting: Setting, at: np.ndarray
) -> tuple[list[tuple[str, float | None, list[int]]], str]:
    """The lines of a setting: words, shade, points; and its title."""
    there = np.array(sorted(set(at.tolist())))
    groups = [np.array([value]) for value in there]
    if setting.kind != "rank" and len(there) > MOST["lines"]:
        groups = [there[part] for part in effects.bins(setting.places[there], PART)]
    if setting.ordered:
        groups.sort(key=lambda group: setting.places[group].mean())
    low, high = setting.places[there].min(), setting.places[there].max()
    found: list[tuple[str, float | None, list[int]]] = []
    for group in groups:
        words = setting.words[group[0]]
        if len(group) > 1:
            words = "–".join(in_short([setting.values[group[0]], setting.values[group[-1]]], 2))
        middle = (setting.places[group].mean() - low) / max(high - low, 1e-12)
        shade = float(middle) if setting.ordered else None
        found.append((words, shade, np.flatnonzero(np.isin(at, group)).tolist()))
    return found, setting.title


def heatmap(study: Study) -> Figure:
    sweep = study.sweep
    x, y = study.pair or important(study)
    across, up = sweep.settings[x], sweep.settings[y]
    others = [s.title for i, s in enumerate(sweep.settings) if i not in (x, y)]
    what = f"{study.mean} over runs" if study.many else study.mean.removeprefix("mean ")
    note = f"{study.title}. Colour: {what}"
    sizes = len(across.values), len(up.values)
    sparse = 2 * len({(p.at[x], p.at[y]) for p in sweep.points}) < math.prod(sizes)  # of a search
    if max(sizes) > FEW or sparse and "rank" not in (across.kind, up.kind):
        note += f"; ring: the best, {study.best}."
        data = study.at[:, [y, x]], study.values, sweep.metric, sweep.lower
        return grids.scattered(across, up, *data, note + study.failed)
    where = [(p.at[y], p.at[x]) for p in sweep.points]
    best = effects.best_cells(where, (-study.scores).tolist())
    cells = {at: grids.Cell(sweep.points[i].mean, sweep.points[i].std) for at, i in best.items()}
    for at in sweep.broken:
        cells.setdefault((at[y], at[x]), grids.Cell(None, None))
    numbers = grids.inside(across, up) > grids.NUMBER
    note += ", ± sample standard deviation" if study.many and numbers else ""
    if others:
        note += f", of the point that is best by it over {' and '.join(others)}"
    note += f". Edged: the best of all, {study.best}."
    empty = len(across.values) * len(up.values) - len(best)
    crossed = len(cells) - len(best)
    note += " Hatched: no finished run" * bool(empty)
    note += ", × where all failed" * bool(crossed) + "." * bool(empty)
    return grids.heatmap(across, up, cells, sweep.metric, sweep.lower, note + study.failed)


def important(study: Study) -> tuple[int, int]:
    """The two settings that explain most, or where that is not known have the most values; the one
    of fewer values first, since it is drawn across."""
    sizes = [len(s.values) for s in study.sweep.settings]
    try:
        weights: Sequence[float] = study.shares[0]
    except Missing:
        weights = sizes
    first, second = sorted(range(len(sizes)), key=lambda i: (-weights[i], -sizes[i]))[:2]
    x, y = sorted((first, second), key=lambda i: sizes[i])
    return x, y


def parallel(study: Study) -> Figure:
    sweep = study.sweep
    if len(sweep.settings) > MOST["axes"]:
        raise Missing(f"{len(sweep.settings)} settings are too many to see")
    note = f"{study.title}. A line for each point, by colour and at its end {study.mean}; "
    note += f"bold and red: the best, {study.best}."
    note += " Lines through one value stand side by side in the order of their ends."
    drawn = sweep.settings, study.at, study.values, sweep.metric, sweep.lower
    return grids.parallel(*drawn, note + study.failed)


def importance(study: Study) -> Figure:
    found, how = study.shares
    titles = [s.title for s in study.sweep.settings]
    note = f"{study.title}. Share of the variance of {study.mean} between points that each setting "
    note += "explains by itself: "
    if how == "grid":
        note += "functional ANOVA, exact on this full grid (the variance of the means over all "
        note += "other settings). "
    else:
        note += "functional ANOVA by a random forest (fANOVA, Hutter et al. 2014; Optuna's), since "
        note += "the points are no full grid. "
    note += "Grey: the rest, interactions between settings" + " and noise of the runs."
    shares = dict(zip(titles, found, strict=True))
    return lines.importance(shares, "interactions", note + study.failed)


def setting(study: Study) -> Figure:
    sweep = study.sweep
    [own] = sweep.settings
    note = f"{study.title}. Validation {sweep.metric.replace('_', ' ')}: "
    note += "mean ± sample standard deviation, each run a dot; " if study.many else ""
    note += f"ring: the best, {study.best}."
    best = sweep.points.index(sweep.best)
    values = [p.values for p in sweep.points]
    return lines.setting(own, study.at[:, 0], values, sweep.metric, best, note + study.failed)


def parameters(study: Study) -> Figure:
    spent = [float(p.parameters) for p in study.sweep.points]
    if len(set(spent)) == 1:
        raise Missing(f"every point has {spent[0]:,.0f} parameters")
    return priced(study, spent, "parameters", "")


def seconds(study: Study) -> Figure:
    spent = [p.seconds for p in study.sweep.points]
    if len(set(spent)) == 1:
        raise Missing(f"every point took {spent[0]:,.3g} s")
    folders = {p.runs[0].path for p in study.sweep.points}
    together = len(folders) < len(spent)
    note = " Points trained together share their time evenly." * together
    note += f" Measured on: {'; '.join(study.sweep.devices)}."
    return priced(study, spent, "training time of a run (s)", note)


def priced(study: Study, spent: Sequence[float], cost: str, more: str) -> Figure:
    """What validation comes to against what it costs."""
    sweep, x = study.sweep, np.array(spent)
    edge = effects.front(x, study.scores)
    shown = effects.spaced(x, study.values, edge)[-MOST["named"] :]
    marks = {int(i): str(number) for number, i in enumerate(shown, 1)}
    note = f"{study.title}: {study.mean}. "
    note += f"Red: the points that no other beats at the same cost or less.{more}{study.failed}"
    for i, number in marks.items():
        point = sweep.points[i]
        note += f"\n{number}: {sweep.name(point.at)}: "
        note += in_words(sweep.metric, point.mean, point.std)
    return lines.costs(x, study.values, edge, marks, sweep.metric, cost, note)
