"""Pictures of a sweep: how a metric depends on one setting at a time, and what it costs.

As in figures.py, a picture is a function from numbers to a figure.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from matplotlib.transforms import offset_copy

from results.figures import BLUE, COLOURS, RED, SINGLE, Curve, apart, logarithmic, put, unit
from results.grids import HALO, below, bright, short, ticks, upright
from results.sweeps import Setting


class Line(NamedTuple):
    """A mean over the runs with one value, or a few, of a setting."""

    name: str
    shade: float | None  # 0 to 1 where values have an order
    curves: Mapping[str, Curve]  # by metric


def by_setting(panels: Mapping[str, Sequence[Line]], note: str) -> Figure:
    """A row for each setting, a column for each metric, a line for each value."""
    metrics = list(dict.fromkeys(m for lines in panels.values() for ln in lines for m in ln.curves))
    heights = [max(1.15, 0.35 + 0.115 * len(lines)) for lines in panels.values()]
    figure = Figure((SINGLE, 0.3 + sum(heights)), layout="constrained")
    grid = figure.subplots(
        len(panels), len(metrics), sharex=True, squeeze=False, height_ratios=heights
    )
    for row, (title, lines) in zip(grid, panels.items(), strict=True):
        for ax, metric in zip(row, metrics, strict=True):
            shown = [line for line in lines if metric in line.curves]
            colours = [shade(line, i) for i, line in enumerate(shown)]
            scale, label = unit(metric)
            for line, colour in zip(shown, colours, strict=True):
                steps, mean, std, _ = line.curves[metric]
                mean, std = scale * mean, scale * np.nan_to_num(std)
                ax.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.1, lw=0)
                ax.plot(steps, mean, color=colour)
            if scale == 100:
                bottom, top = ax.get_ylim()
                ax.set_ylim(max(bottom, 0), min(top, 100))
            ax.margins(x=0)
            ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
            ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
            if ax in grid[0]:
                ax.set_title(label, loc="left")
            if ax in grid[-1]:
                ax.set_xlabel("step")
        ends = [scale * line.curves[metrics[-1]].mean[-1] for line in shown]
        low, high = row[-1].get_ylim()
        room = (high - low) * 0.115 / (heights[list(panels).index(title)] - 0.3)
        for line, colour, y in zip(shown, colours, apart(ends, room, (low, high)), strict=True):
            put(row[-1], short(line.name), (1, y), (3, 0), ("axes fraction", "data"), color=colour)
        row[0].set_ylabel(textwrap.fill(title, 16))
    below(figure, note)
    return figure


def shade(line: Line, i: int) -> Any:
    if line.shade is None:
        return COLOURS[i % len(COLOURS)]
    return bright(end=0.8)(line.shade)


def importance(shares: Mapping[str, float], rest: str, note: str) -> Figure:
    """Shares of a variance, the largest first, and in grey what is left, called `rest`."""
    order = sorted(shares, key=lambda name: -shares[name])
    left = max(1 - sum(shares.values()), 0.0)
    names = [*order, rest]
    percent = 100 * np.array([*(shares[name] for name in order), left])
    figure = Figure((SINGLE, 0.4 + 0.19 * len(names)), layout="constrained")
    ax = figure.subplots()
    ax.barh(range(len(names)), percent, 0.62, color=[BLUE] * len(order) + ["#b5b5b5"])
    for y, value in enumerate(percent):
        words = "<1 %" if 0 < value < 0.5 else f"{value:.0f} %"
        put(ax, words, (value, y), (3, 0))
    ax.set_yticks(range(len(names)), [textwrap.fill(name, 24) for name in names])
    ax.set(xlim=(0, max(percent.max() * 1.02, 1)), ylim=(len(names) - 0.5, -0.5))
    ax.set_xlabel("variance of the points explained (%)")
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    below(figure, note)
    return figure


def setting(
    own: Setting, at: np.ndarray, values: Sequence[np.ndarray], metric: str, best: int, note: str
) -> Figure:
    """Mean ± sample standard deviation over the runs of each value [P], every run a dot."""
    scale, label = unit(metric)
    there, words = ticks(own)
    angle, length = upright(words, 2.8 / len(words))
    figure = Figure((SINGLE, 1.8 + length), layout="constrained")
    ax = figure.subplots()
    order = np.argsort(own.places[at], kind="stable")
    x = own.places[at][order]
    runs = [scale * values[i] for i in order]
    mean = np.array([v.mean() for v in runs])
    std = np.array([v.std(ddof=1) if len(v) > 1 else 0.0 for v in runs])
    if own.ordered:
        ax.plot(x, mean, color=BLUE, lw=0.9, zorder=2)
    for place, several in zip(x, runs, strict=True):
        if len(several) > 1:
            beside = offset_copy(ax.transData, figure, x=4, units="points")
            look: dict[str, Any] = {"color": BLUE, "alpha": 0.4, "lw": 0, "transform": beside}
            ax.scatter([place] * len(several), several, 6, **look)
            ax.update_datalim([(place, several.min()), (place, several.max())])
    ax.errorbar(x, mean, std, fmt="o", ms=3.5, color=BLUE, lw=0.8, capsize=2, zorder=3)
    place, top = own.places[at[best]], scale * values[best].mean()
    ax.plot([place], [top], "o", ms=6.5, mfc="none", mec=RED, mew=1.2, zorder=4)
    ax.set_xticks(there, words, rotation=angle)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    ax.margins(x=0.08)
    ax.set(xlabel=own.title, ylabel=label)
    below(figure, note)
    return figure


def costs(
    x: np.ndarray, values: np.ndarray, edge: np.ndarray, marks: Mapping[int, str], metric: str,
    cost: str, note: str,
) -> Figure:  # fmt: skip
    """A metric against what it costs [P]; `edge`: the points that nobody beats, by cost; marks:
    points to name, best last."""
    scale, label = unit(metric)
    y = scale * values
    figure = Figure((SINGLE, 1.9), layout="constrained")
    ax = figure.subplots()
    rest = np.setdiff1d(np.arange(len(x)), edge)
    ax.scatter(x[rest], y[rest], 9, color=BLUE, alpha=0.4, lw=0, zorder=2)
    ends = np.r_[x[edge], x.max()], np.r_[y[edge], y[edge[-1:]]]
    ax.step(*ends, where="post", color=RED, lw=0.9, zorder=1)
    ax.scatter(x[edge], y[edge], 14, color=RED, lw=0, zorder=3)
    for i, word in marks.items():
        put(ax, word, (x[i], y[i]), (0, 6), ha="center", color=RED, path_effects=HALO, zorder=4)
    ax.set(xlabel=cost, ylabel=label)
    ax.margins(y=0.12)
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    logarithmic(ax, x)
    below(figure, note)
    return figure
