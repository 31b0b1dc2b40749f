"""Pictures of a sweep: how a metric depends on several settings at once.

As in figures.py, a picture is a function from numbers to a figure. A setting comes with its places
on an axis and the words that stand there. Brighter is better, wherever colour is a metric.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullLocator

from results.figures import DOUBLE, INK, RED, SINGLE, caption, put, unit
from results.sweeps import Setting, in_short

HALO = [withStroke(linewidth=1.6, foreground="white")]
NUMBER = 0.3  # inches that one needs in a cell
LETTER = 0.06  # inches: the width of one, at seven points
MOST = {"ticks": 7, "words": 12}
SIDE = 0.06  # of an axis, to which lines of one value spread


def bright(lower: bool = False, end: float = 1.0) -> LinearSegmentedColormap:
    """Viridis, from the worst to the best; up to `end`, since its yellow is no line on white."""
    colours = matplotlib.colormaps["viridis"](np.linspace(0, end, 256))
    return LinearSegmentedColormap.from_list("", colours[::-1] if lower else colours)


def limits(values: np.ndarray, lower: bool) -> tuple[float, float, str]:
    """The range of colours, and whether it was cut: a few bad values would take all of it."""
    low, high = values.min(), values.max()
    q1, q3 = np.quantile(values, (0.25, 0.75))
    if lower and high > q3 + 1.5 * (q3 - q1) > q3:
        return low, q3 + 1.5 * (q3 - q1), "max"
    if not lower and low < q1 - 1.5 * (q3 - q1) < q1:
        return q1 - 1.5 * (q3 - q1), high, "min"
    margin = 0.5 * (low == high)
    return low - margin, high + margin, "neither"


class Cell(NamedTuple):
    """What a pair of values came to: mean and deviation; if there is none, whether it failed."""

    mean: float | None
    std: float | None
    failed: bool = False


def heatmap(
    x: Setting, y: Setting, cells: Mapping[tuple[int, int], Cell], metric: str, lower: bool,
    note: str,
) -> Figure:  # fmt: skip
    """The metric for each pair of values (of y, of x)."""
    scale, label = unit(metric)
    rows, columns = len(y.values), len(x.values)
    width = inside(x, y)
    height = float(np.clip(width, 0.32, 0.45))
    angle, length = upright(x.words, width)
    figure = Figure((SINGLE, 0.4 + height * rows + length), layout="constrained")
    ax = figure.subplots()
    held = {at: cell for at, cell in cells.items() if cell.mean is not None}
    values = scale * np.array([cell.mean for cell in held.values()], float)
    low, high, cut = limits(values, lower)
    norm, colours = Normalize(low, high, clip=True), bright(lower)
    digits = 1 if scale == 100 else int(np.clip(2 - np.floor(np.log10(np.abs(values).max())), 0, 4))
    best = min(held, key=lambda at: (held[at].mean or 0) * (1 if lower else -1))
    for row, column in np.ndindex(rows, columns):
        at = (column - 0.5, row - 0.5)
        cell = cells.get((row, column))
        if cell is None or cell.mean is None:
            ax.add_patch(
                Rectangle(at, 1, 1, fc="white", ec="#bdbdbd", hatch="//////", lw=0, zorder=1)
            )
            if cell:
                put(ax, "×", (column, row), (0, 0), ha="center", color=INK, path_effects=HALO)
            continue
        value = scale * cell.mean
        face = colours(norm(value))
        ax.add_patch(Rectangle(at, 1, 1, fc=face, ec="white", lw=0.6, zorder=1))
        words = f"{value:.{digits}f}"
        spread = f"±{scale * cell.std:.{digits}f}" if cell.std is not None else ""
        look: dict[str, Any] = {"ha": "center", "color": readable(face), "zorder": 4}
        if (row, column) == best:
            look["weight"] = "bold"
        if width > NUMBER:
            put(ax, words, (column, row), (0, 3.2 * bool(spread)), **look)
        if width > NUMBER and spread:
            put(ax, spread, (column, row), (0, -4.2), **look | {"size": 6, "weight": "normal"})
    row, column = best
    ax.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=RED, lw=1.4, zorder=3)
    )  # on the edge, seen on every colour
    ax.set_xticks(range(columns), [*map(short, x.words)], rotation=angle)
    ax.set_yticks(range(rows), [*map(short, y.words)])
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5), xlabel=x.title, ylabel=y.title)
    if not y.ordered:  # words are read downwards
        ax.invert_yaxis()
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
    colour_bar(figure, ax, norm, colours, label, cut)
    below(figure, note)
    return figure


def inside(x: Setting, y: Setting) -> float:
    """The inches that a heat map's cell is wide."""
    left = LETTER * min(max(map(len, y.words)), 14) + 0.3
    return (SINGLE - left - 0.55) / len(x.values)


def upright(words: Sequence[str], width: float) -> tuple[int, float]:
    """The angle of words that have so many inches each, and how much higher that makes them."""
    longest = LETTER * min(max(map(len, words)), 14)
    return (90, longest) if longest > width else (0, 0.0)


def colour_bar(figure: Figure, ax: Any, norm: Any, colours: Any, label: str, cut: str) -> None:
    scale = matplotlib.cm.ScalarMappable(norm, colours)
    bar = figure.colorbar(scale, ax=ax, label=label, extend=cut, aspect=25, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    bar.ax.tick_params(length=2, width=0.5)


def readable(face: Sequence[float]) -> str:
    """Ink or white, whichever stands out from a colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in face[:3]]
    return INK if np.dot((0.2126, 0.7152, 0.0722), linear) > 0.22 else "white"


def scattered(
    x: Setting, y: Setting, at: np.ndarray, values: np.ndarray, metric: str, lower: bool, note: str
) -> Figure:
    """A heat map's numbers where the values are too many for cells: a dot for each point [P, 2]."""
    scale, label = unit(metric)
    figure = Figure((SINGLE, 2.3), layout="constrained")
    ax = figure.subplots()
    low, high, cut = limits(scale * values, lower)
    norm, colours = Normalize(low, high, clip=True), bright(lower)
    order = np.argsort(values * (-1 if lower else 1), kind="stable")  # the best are in front
    across, up = x.places[at[:, 1]][order], y.places[at[:, 0]][order]
    ax.scatter(across, up, 16, scale * values[order], norm=norm, cmap=colours, lw=0.3, ec="white")
    ax.scatter(across[-1:], up[-1:], 34, fc="none", lw=1.2, ec=RED)
    for axis, setting in ((ax.xaxis, x), (ax.yaxis, y)):
        axis.set_ticks(*ticks(setting))
        axis.set_minor_locator(NullLocator())
        axis.set_label_text(setting.title)
    ax.margins(0.06)
    colour_bar(figure, ax, norm, colours, label, cut)
    below(figure, note)
    return figure


def ticks(setting: Setting) -> tuple[list[float], list[str]]:
    """Where an axis has its words: at all values if they are few, else at a few round ones."""
    places, low, high = setting.places, setting.places.min(), setting.places.max()
    apart_enough = np.diff(np.sort(places)).min() > 0.09 * (high - low)
    if setting.kind == "rank" or (len(places) <= MOST["ticks"] and apart_enough):
        every = -(-len(places) // MOST["words"])
        return places[::every].tolist(), [*map(short, setting.words[::every])]
    if setting.kind == "linear":
        at = MaxNLocator(5).tick_values(low, high)
        at = at[(at >= low - 1e-9) & (at <= high + 1e-9)]
        return at.tolist(), [f"{v:,.6g}" for v in at]
    for factors in ((1,), (1, 3), (1, 2, 5)):
        numbers = np.outer(10.0 ** np.arange(np.floor(low), np.ceil(high) + 1), factors).ravel()
        numbers = numbers[(np.log10(numbers) >= low - 1e-9) & (np.log10(numbers) <= high + 1e-9)]
        if len(numbers) > 2:
            break
    numbers = numbers[:: -(-len(numbers) // MOST["ticks"])]
    return np.log10(numbers).tolist(), in_short(numbers.tolist())


def short(word: str, most: int = 14) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def parallel(
    settings: Sequence[Setting], at: np.ndarray, values: np.ndarray, metric: str, lower: bool,
    note: str,
) -> Figure:  # fmt: skip
    """A line for each point [P, D] from its first setting to its metric [P], the best in bold."""
    scale, label = unit(metric)
    count = len(settings)
    ax_width = (SINGLE if count < 5 else DOUBLE) - 0.6
    figure = Figure((ax_width + 0.6, 2.1), layout="constrained")
    ax = figure.subplots()
    values = scale * values
    low, high, cut = limits(values, lower)
    norm, colours = Normalize(low, high, clip=True), bright(lower, 0.9)
    bottom, top = values.min(), values.max()
    margin = 0.5 * (bottom == top)
    bottom, top = bottom - margin, top + margin
    heights = (values - bottom) / (top - bottom)
    lines = np.column_stack([spread(s, at[:, i], heights) for i, s in enumerate(settings)])
    lines = np.column_stack([lines, heights])
    order = np.argsort(-values if lower else values, kind="stable")
    width = float(np.clip(40 / len(values), 0.4, 0.9))
    for rank, i in enumerate(order):
        best = rank == len(order) - 1
        look = {"lw": 2 if best else width, "alpha": 1 if best else 0.7, "zorder": 2 + best}
        path = smooth(lines[i])
        if best:
            ax.add_patch(PathPatch(path, fill=False, ec="white", lw=3.4, zorder=2.5))
        ax.add_patch(
            PathPatch(path, fill=False, ec=RED if best else colours(norm(values[i])), **look)
        )
    for i, setting in enumerate(settings):
        ax.plot([i, i], [-SIDE, 1 + SIDE], color=INK, lw=0.7, zorder=4)
        places, words = ticks(setting)
        for y, word in zip(unit_range(np.array(places), setting.places), words, strict=True):
            ax.plot([i - 0.02, i], [y, y], color=INK, lw=0.5, zorder=4)
            put(ax, word, (i, y), (-4, 0), ha="right", zorder=5, path_effects=HALO)
    gradient = np.linspace(bottom, top, 256)[:, None]
    box = (count, count + 0.07, 0, 1)
    ax.imshow(
        gradient, cmap=colours, norm=norm, extent=box, aspect="auto", origin="lower", zorder=4
    )
    for value in MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(bottom, top):
        if bottom - 1e-9 <= value <= top + 1e-9:
            y = (value - bottom) / (top - bottom)
            put(ax, f"{value:,.6g}", (count + 0.07, y), (3, 0))
    for i, title in enumerate([*(s.title for s in settings), label]):
        put(
            ax,
            textwrap.fill(title, int(ax_width / count / LETTER)),
            (i, 1 + SIDE),
            (0, 4),
            ha="center",
            va="bottom",
            linespacing=1,
        )
    ax.set(xlim=(-0.3, count + 0.3), ylim=(-SIDE - 0.02, 1 + SIDE + 0.02))
    ax.set_axis_off()
    below(figure, note)
    return figure


def unit_range(places: np.ndarray, own: np.ndarray) -> np.ndarray:
    return (places - own.min()) / np.ptp(own)


def spread(setting: Setting, at: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Where lines cross an axis: those of one value side by side, in the order of their ends."""
    places = unit_range(setting.places, setting.places)
    ordered = np.sort(places)
    room = 0.5 * float(np.diff(ordered).min()) if len(at) > len(places) else 0.0
    found = places[at]
    for value in range(len(places)):
        own = np.flatnonzero(at == value)
        if len(own) > 1:
            rank = np.argsort(np.argsort(heights[own], kind="stable"), kind="stable")
            found[own] += min(room, 2 * SIDE) * (rank / (len(own) - 1) - 0.5)
    return found


def smooth(line: np.ndarray) -> Path:
    """A curve through these heights that crosses every axis at a right angle."""
    points, codes = [(0.0, line[0])], [Path.MOVETO]
    for i, (here, there) in enumerate(zip(line, line[1:], strict=False)):
        points += [(i + 0.4, here), (i + 0.6, there), (i + 1.0, there)]
        codes += [Path.CURVE4] * 3
    return Path(points, codes)


def below(figure: Figure, note: str) -> None:
    """A caption that makes its own room: the longer it is, the taller the picture."""
    caption(figure, note)
    lines = figure.get_supxlabel().count("\n") + 1
    figure.set_figheight(figure.get_figheight() + 0.115 * lines + 0.06)
