"""Pictures of what runs came to: learning curves, the spread over seeds, and what accuracy costs.

Each picture is a function from numbers to a figure, made for one column of a paper (or for both,
where it says so) with letters of seven points. Colours are those of Okabe & Ito and two of
Tol, which everybody can tell apart. Shapes: R runs, S steps.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from scipy.optimize import isotonic_regression

from results.report import in_words

SINGLE, DOUBLE = 3.3, 6.9  # inches: the width of one column, and of both
INK, GREY, PALE = "#222222", "#6e6e6e", "#e6e6e6"
COLOURS = "#0072B2 #E69F00 #009E73 #D55E00 #56B4E9 #CC79A7 #444444 #999933 #882255".split()
BLUE, ORANGE, GREEN, RED, *_ = COLOURS
LINE = 0.15  # inches from one name to the next
DASHED, DOTTED = (0, (4, 2)), (0, (2, 1))
Place = tuple[float, float]
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so a picture is the same everywhere
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "axes.linewidth": 0.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.2,
    "text.color": INK,
    "text.parse_math": False,  # a name may hold dollars
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
}


class Curve(NamedTuple):
    """A metric over the runs that are still training at each step: all [S]."""

    steps: np.ndarray
    mean: np.ndarray
    std: np.ndarray  # of the sample; nan of a single run
    n: np.ndarray


def curve(rows: Iterable[Mapping[str, Any]], split: str, metric: str) -> Curve:
    """The curve of these rows, at the steps at which every run that is still training has one.

    A run that stops between two such steps has its last row there: it is in no mean.
    """
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row["split"] == split and row.get(metric) is not None:
            found[row["step"]][row["run"]] = row[metric]
    ends = {run: step for step in sorted(found) for run in found[step]}
    last = np.array(list(ends.values()))
    steps = [step for step in sorted(found) if len(found[step]) == np.sum(last >= step)]
    values = [np.array(list(found[step].values())) for step in steps]
    mean, std = [v.mean() for v in values], [deviation(v) for v in values]
    return Curve(*map(np.array, (steps, mean, std, [len(v) for v in values])))


def curves(
    found: Mapping[str, Mapping[str, Curve]], marks: Mapping[str, float], note: str
) -> Figure:
    """found: for each metric, a panel's, the curve of each split; marks: steps to point out."""
    figure = Figure((SINGLE, 0.6 + 1.15 * len(found)), layout="constrained")
    panels = figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (metric, splits) in zip(panels, found.items(), strict=True):
        scale, label = unit(metric)
        colours = dict(zip(splits, (RED, BLUE, GREEN), strict=False))
        for split, (steps, *numbers, n) in splits.items():
            mean, std = (scale * a for a in numbers)
            whole = int(np.sum(n == n[0]))  # until the first run stops
            ax.plot(steps[:whole], mean[:whole], color=colours[split])
            ax.plot(steps[whole - 1 :], mean[whole - 1 :], color=colours[split], lw=0.7, ls=DOTTED)
            ax.fill_between(steps, mean - std, mean + std, color=colours[split], alpha=0.2, lw=0)
        if scale == 100:
            bottom, top = ax.get_ylim()
            ax.set_ylim(max(bottom, 0), min(top, 100))
        ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        ax.margins(x=0)
        ax.set_ylabel(label)
        ends = [scale * splits[split].mean[-1] for split in splits]
        for split, y in zip(splits, apart(ends, 0.1 * np.ptp(ax.get_ylim())), strict=True):
            put(ax, split, (1, y), (3, 0), ("axes fraction", "data"), color=colours[split])
        for step in marks.values():
            ax.axvline(step, color=GREY, lw=0.5, zorder=0)
    for (name, step), side in zip(marks.items(), ("right", "left"), strict=False):
        place = (2 if side == "left" else -2, 4)
        put(panels[0], name, (step, 1), place, ("data", "axes fraction"), ha=side, color=GREY)
    panels[-1].set_xlabel("step")
    caption(figure, note)
    return figure


def swarm(values: np.ndarray, width: float) -> np.ndarray:
    """Where a value stands in the row of those as near as `width`: 0, -1, 1, -2, 2, ... [R]."""
    near: dict[float, int] = defaultdict(int)
    ranks = np.zeros(len(values), int)
    for i in np.argsort(values, kind="stable"):
        place = round(values[i] / width)
        ranks[i] = near[place]
        near[place] += 1
    return (ranks + 1) // 2 * (-1) ** ranks


def seeds(found: Mapping[str, np.ndarray], expected: Mapping[str, Any], note: str) -> Figure:
    """found: for each split every run's value [R], below them mean ± sample standard deviation.

    expected: metric and, if published or expected of the first split, value, std, low, high.
    """
    metric, paper = expected["metric"], expected.get("value")
    scale, label = unit(metric)
    figure = Figure((SINGLE, 0.75 + 0.55 * len(found)), layout="constrained")
    ax = figure.subplots()
    shown = [scale * expected[name] for name in ("value", "low", "high") if expected.get(name)]
    for values in found.values():
        bar = np.nan_to_num(deviation(values))
        shown += [*scale * values, *scale * (values.mean() + np.array([-bar, bar]))]
    low, high = min(shown), max(shown)
    margin = (high - low) / 20 or abs(high) / 100 or 1
    for y, values in enumerate(found.values()):
        x, stack = scale * values, swarm(scale * values, margin / 3)
        rise = min(0.08, 0.25 / max(np.abs(stack).max(), 1))
        size = 1 + 100 * rise
        ax.scatter(x, y - 0.1 + rise * stack, size, color=BLUE, lw=0.3, edgecolors="white")
        std = deviation(values) if len(values) > 1 else None
        if std is not None:
            look: dict[str, Any] = {"color": INK, "fmt": "s", "ms": 3, "lw": 0.8, "capsize": 2}
            ax.errorbar(x.mean(), y + 0.33, xerr=scale * std, **look)
        words, level = in_words(metric, values.mean(), std), y - 0.1 if std is None else y + 0.33
        put(ax, words, (1, level), (4, 0), ("axes fraction", "data"))
    if expected.get("high"):
        ends = [scale * expected["low"], scale * expected["high"]]
        ax.fill_between(ends, -0.5, 0.5, color=PALE, lw=0, zorder=0)
    if paper:
        ax.plot([scale * paper] * 2, [-0.5, 0.5], color=RED, lw=0.8, ls=DASHED, zorder=1)
        words = f"published {in_words(metric, paper, expected['std'] or None)}"
        put(ax, words, (scale * paper, -0.5), (0, 6), "data", ha="center", color=RED)
    ax.set(xlabel=label, xlim=(low - margin, high + margin), ylim=(len(found) - 0.5, -0.5))
    ax.set_yticks(range(len(found)), list(found))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    caption(figure, note)
    return figure


class Point(NamedTuple):
    """A configuration: its name, what it costs, and a metric over its runs."""

    name: str
    cost: float
    mean: float
    std: float | None  # of one run, none


class Panel(NamedTuple):
    """Configurations that may be compared: of one data set, split and metric."""

    title: str
    metric: str
    points: Sequence[Point]


def costs(found: Sequence[Panel], cost: str, note: str) -> Figure:
    """Metric ± sample standard deviation against what is called `cost`, with its unit."""
    columns = min(len(found), 2)
    rows = -(-len(found) // 2)
    names = [[textwrap.fill(point.name, 24) for point in panel.points] for panel in found]
    height = max(2.1, 0.6 + LINE * max("\n".join(words).count("\n") + 1 for words in names))
    figure = Figure(((SINGLE, DOUBLE)[columns - 1], 0.4 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in panels[len(found) :]:
        ax.set_visible(False)
    for ax, (title, metric, points), words in zip(panels, found, names, strict=False):
        scale, label = unit(metric)
        x = np.array([point.cost for point in points])
        y = scale * np.array([point.mean for point in points])
        bars = scale * np.array([point.std or 0 for point in points])
        ax.errorbar(x, y, bars, fmt="o", ms=3.5, color=BLUE, lw=0.8, capsize=2)
        ax.set(title=title, xlabel=cost, ylabel=label)
        ax.margins(y=0.15)
        logarithmic(ax, x)
        line = np.ptp(ax.get_ylim()) * LINE / (height - 0.6)
        name_points(ax, x, y, words, line)
    caption(figure, note)
    return figure


def name_points(ax: Axes, x: np.ndarray, y: np.ndarray, names: Sequence[str], line: float) -> None:
    """Names beside their points, or where they are many in the margin, with a stroke to each.

    line: the height of a line of letters, as y is measured.
    """
    room = line * np.array([1 + words.count("\n") for words in names])
    if len(names) > 4 or max(map(len, names)) > 12:
        stroke = {"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 1, "shrinkB": 3}
        stroke["relpos"] = (0, 0.5)  # from the middle of a name's left side
        look: dict[str, Any] = {"arrowprops": stroke, "va": "center", "linespacing": 0.9}
        places = apart(y, room, ax.get_ylim())
        for words, point, at in zip(names, zip(x, y, strict=True), places, strict=True):
            ax.annotate(words, point, (1.06, at), "data", ("axes fraction", "data"), **look)
        return
    right = x > np.sqrt(x.min() * x.max())  # of the middle: these have their names on the left
    for half, side, away in ((right, "right", -6), (~right, "left", 6)):
        for i, at in zip(np.flatnonzero(half).tolist(), apart(y[half], room[half]), strict=True):
            put(ax, names[i], (x[i], at), (away, 0), ha=side, linespacing=0.9)


def logarithmic(ax: Axes, x: np.ndarray) -> None:
    """A logarithmic axis around x, if it is positive, with a few numbers written in full."""
    if x.min() <= 0:
        return
    room = max((x.max() / x.min()) ** 0.15, 2)
    low, high = x.min() / room, x.max() * room
    for factors in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        ticks = np.outer(10.0 ** np.arange(-9, 15), factors).ravel()
        ticks = np.sort(ticks[(ticks >= low) & (ticks <= high)])
        if len(ticks) > 1:
            break
    ticks = ticks[:: -(-len(ticks) // 5)]  # no more than fit
    ax.set(xscale="log", xlim=(low, high))
    ax.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())


def deviation(values: np.ndarray) -> float:
    """Of the sample; of a single value, nan."""
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def unit(metric: str) -> tuple[int, str]:
    """The factor a metric is shown with, and its axis: shares are in per cent."""
    name = metric.replace("_", " ")
    return (100, f"{name} (%)") if "accuracy" in metric else (1, name)


def apart(places: Any, room: Any, limits: tuple[float, float] = (-np.inf, np.inf)) -> np.ndarray:
    """These places, moved as little as possible so that each has its room, half on either side,
    and none is outside the limits."""
    order = np.argsort(places, kind="stable")
    room = np.broadcast_to(room, len(places))[order]
    if not len(places):
        return np.empty(0)
    steps, moved = np.cumsum(room) - room / 2, np.empty(len(places))
    found = isotonic_regression(np.array(places)[order] - steps).x
    moved[order] = np.clip(found, limits[0] - steps[0], limits[1] - steps[-1]) + steps
    return moved


def put(ax: Axes, words: str, at: Place, away: Place, of: Any = "data", **look: Any) -> None:
    """Words so many points `away` from a place, that is `of` the data or the axes."""
    look = {"va": "center", "annotation_clip": False, **look}
    ax.annotate(words, at, away, of, "offset points", **look)


def caption(figure: Figure, note: str) -> None:
    """What a reader has to know, in grey below the picture."""
    width = int(19.5 * figure.get_figwidth())
    lines = "\n".join(textwrap.fill(part, width) for part in note.split("\n"))
    figure.supxlabel(lines, x=0.01, ha="left", color=GREY, size=6.5)
