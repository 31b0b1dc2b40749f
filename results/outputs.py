"""Pictures of what a model does with its examples: confusion, features, attention.

As in figures.py, a picture is a function from arrays to a figure; what has to be derived first is
derived by a function of its own. Shapes: C classes, N examples or nodes, E edges, H heads.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import entr

from results.figures import COLOURS, DOTTED, DOUBLE, GREY, INK, SINGLE, caption, put

BLUE, ORANGE, GREEN, *_ = COLOURS
MARKERS = "o^sDv"  # five and nine have no common divisor: 45 classes look different
GROUPS = {"same class": BLUE, "other class": ORANGE, "another node": BLUE, "the node itself": GREY}
ROW = 16  # heads that stand side by side


class Edges(NamedTuple):
    """One layer's attention over a list of edges."""

    source: np.ndarray  # [E]
    target: np.ndarray  # [E]
    weight: np.ndarray  # [E, H]


def confusion_counts(targets: np.ndarray, mask: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """How often each true class was taken for each: targets, mask [...], outputs [..., C] ->
    [C, C]."""
    counts = np.zeros((outputs.shape[-1],) * 2, int)
    counted = mask & (targets >= 0)
    np.add.at(counts, (targets[counted], outputs.argmax(-1)[counted]), 1)
    return counts


def confusion(counts: np.ndarray, classes: Sequence[str], runs: int, note: str) -> Figure:
    """Of every true class the share that was given each class, in per cent. counts: of all runs."""
    many = len(classes) > 8 or max(map(len, classes)) > 24
    figure = Figure((DOUBLE, 5.8) if many else (SINGLE, 3.4), layout="constrained")
    ax = figure.subplots()
    total = counts.sum(1)
    share = 100 * counts / np.maximum(total, 1)[:, None]
    ax.imshow(share, cmap="Blues", vmin=0, vmax=100)
    for (row, column), count in np.ndenumerate(counts):
        value = share[row, column]
        words = "" if not count else "<1" if value < 0.5 else f"{value:.0f}"
        colour = "white" if value > 55 else INK
        ax.text(column, row, words, ha="center", va="center", color=colour)
    sizes = total / runs
    for row, size in enumerate(sizes):
        words = f"{size:,.{int(any(sizes % 1))}f}"
        put(ax, words, (1, row), (4, 0), ("axes fraction", "data"), color=GREY)
    put(ax, "n", (1, 1), (4, 5), "axes fraction", color=GREY)
    names = [textwrap.fill(name, 40 if many else 18, break_long_words=False) for name in classes]
    ax.set_yticks(range(len(names)), names, linespacing=1, va="center")
    upright = 90 * (max(map(len, names)) > 3)
    ax.set_xticks(range(len(names)), names, linespacing=1, rotation=upright)
    ax.set(xlabel="predicted class", ylabel="true class")
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
    caption(figure, note)
    return figure


def flatten(features: np.ndarray) -> tuple[np.ndarray, str]:
    """[N, F] -> [N, 2], and how: by t-SNE, or if there are few by their principal components."""
    from sklearn.decomposition import PCA  # here, since it is slow to import
    from sklearn.manifold import TSNE

    if len(features) < 100:
        return PCA(2).fit_transform(features), "principal components"
    if features.shape[1] > 50:
        features = PCA(50, random_state=0).fit_transform(features)
    return TSNE(random_state=0).fit_transform(features), "t-SNE"


def features(
    places: np.ndarray, labels: np.ndarray, tested: np.ndarray, right: np.ndarray,
    classes: Sequence[str], note: str,
) -> Figure:  # fmt: skip
    """A map of examples: places [N, 2], labels or -1, whether tested, and whether rightly [N]."""
    columns = max(1, min(3, 60 // (max(map(len, classes)) + 6)))
    figure = Figure((SINGLE, 3.3 + 0.15 * -(-len(classes) // columns)), layout="constrained")
    ax = figure.subplots()
    for label in range(-1, len(classes)):
        own = labels == label
        colour, marker, name = GREY, ".", "unknown"
        if label >= 0:
            colour, marker, name = COLOURS[label % 9], MARKERS[label % 5], classes[label]
        look: dict[str, Any] = {"color": colour, "marker": marker}
        for drawn, size, more in (
            (own & ~tested, 3, {"alpha": 0.3, "lw": 0}),
            (own & tested & right, 7, {"lw": 0, "zorder": 2}),
            (own & tested & ~right, 9, {"lw": 0.6, "zorder": 3, "edgecolors": INK}),
        ):
            x, y = places[drawn].T
            ax.scatter(x, y, size, **look, **more)
        if own.any():
            ax.scatter([], [], 12, lw=0, label=name, **look)
    ax.set(xticks=[], yticks=[], aspect="equal")
    for scale, along in ((ax.set_xlim, places[:, 0]), (ax.set_ylim, places[:, 1])):
        margin = 0.02 * np.ptp(along) + 1e-6
        scale(along.min() - margin, along.max() + margin)
    ax.spines[:].set_visible(False)
    figure.legend(loc="outside upper left", ncols=columns, handlelength=1)
    caption(figure, note)
    return figure


def against_uniform(edges: Edges) -> np.ndarray:
    """Each weight times the number of its receiver's senders, [E, H]: 1 where it is uniform."""
    return edges.weight * np.bincount(edges.target)[edges.target][:, None]


def evenness(edges: Edges) -> np.ndarray:
    """The entropy of each receiver's weights relative to uniform's, the log of how many senders it
    has: [Q, H], of the Q receivers with two or more. 1 is uniform, 0 all on one sender."""
    count = np.bincount(edges.target)
    entropy = np.zeros((len(count), edges.weight.shape[1]))
    np.add.at(entropy, edges.target, entr(edges.weight))
    several = count > 1
    return entropy[several] / np.log(count[several])[:, None]


def agreement(edges: Edges, labels: np.ndarray | None) -> dict[str, np.ndarray]:
    """Which edges have ends of one class, of two, or are of a node to itself: each [E].

    An edge with an end of unknown class (-1) is in no group; without labels all are in one.
    """
    itself = edges.source == edges.target
    if labels is None:
        return {"another node": ~itself, "the node itself": itself}
    ends = labels[edges.source], labels[edges.target]
    known = ~itself & (ends[0] >= 0) & (ends[1] >= 0)
    same = ends[0] == ends[1]
    groups = {"same class": known & same, "other class": known & ~same}
    return groups | {"the node itself": itself}


def box(values: np.ndarray) -> dict[str, float]:
    """Median, quartiles, and whiskers over nine tenths of these values."""
    names = ("whislo", "q1", "med", "q3", "whishi")
    return dict(zip(names, np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)), strict=True))


def attention(layers: Mapping[str, Edges], labels: np.ndarray | None, note: str) -> Figure:
    """For every head: over edges, their weights against uniform's, apart by the agreement of their
    ends; over receivers, their evenness. A box is the middle half, its whiskers nine tenths."""
    heads: list[tuple[str, int, dict[str, np.ndarray], np.ndarray]] = []
    for name, edges in layers.items():
        ratio, even, groups = against_uniform(edges), evenness(edges), agreement(edges, labels)
        for i in range(ratio.shape[1]):
            parts = {group: ratio[members, i] for group, members in groups.items()}
            heads.append((name, i, parts, 100 * even[:, i]))
    rows = [heads[i : i + ROW] for i in range(0, len(heads), ROW)]
    size = DOUBLE if len(heads) > 4 else SINGLE, 0.7 + 2.2 * len(rows)
    figure = Figure(size, layout="constrained")
    panels = figure.subplots(2 * len(rows), 1, height_ratios=[2, 1] * len(rows))
    widest = max(len(row) + 0.5 * len({name for name, *_ in row}) - 0.5 for row in rows)
    for row, (above, below) in zip(rows, panels.reshape(-1, 2), strict=True):
        names, numbers, parts, even = zip(*row, strict=True)
        own = list(dict.fromkeys(names))
        places = np.array([i + 0.5 * own.index(name) for i, name in enumerate(names)])
        for i, group in enumerate(groups):
            shift = 0.25 * (i - (len(groups) - 1) / 2)
            boxes(above, places + shift, [part[group] for part in parts], GROUPS[group], group)
        boxes(below, places, even, GREEN, "receivers")
        for name in own:
            middle = places[[name == other for other in names]].mean()
            put(above, name, (middle, 1), (0, 5), ("data", "axes fraction"), ha="center")
        for ax, uniform in ((above, 1), (below, 100)):
            ax.axhline(uniform, color=INK, lw=0.6, ls=DOTTED, zorder=0)
            put(ax, "uniform", (1, uniform), (2, 0), ("axes fraction", "data"))
            ax.set_xlim(-0.6, widest - 0.4)
            ax.set_xticks(places, [str(number + 1) for number in numbers])
            ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        above.tick_params(labelbottom=False)
        above.set_ylabel("weight ×\nnumber of senders")
        below.set(ylabel="entropy\n(% of uniform)", xlabel="head")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, handlelength=1.2
    )
    caption(figure, note)
    return figure


def boxes(
    ax: Axes, places: np.ndarray, found: Sequence[np.ndarray], colour: str, name: str
) -> None:
    """A box for each array of values that is not empty."""
    drawn = [(at, box(values)) for at, values in zip(places, found, strict=True) if values.size]
    if drawn:
        at, stats = zip(*drawn, strict=True)
        line = {"color": colour, "lw": 0.8}
        ax.bxp(
            stats, at, widths=0.18, showfliers=False, showcaps=False, patch_artist=True,
            label=name, boxprops={"facecolor": colour, "lw": 0}, whiskerprops=line,
            medianprops={"color": INK, "lw": 0.9},
        )  # fmt: skip


def maps(layers: Mapping[str, np.ndarray], note: str) -> Figure:
    """For every layer and head, attention [Q, K, H]: who (row) hears whom (column) how much."""
    columns = max(a.shape[-1] for a in layers.values())
    width = min(1.8, (DOUBLE - 0.8) / columns)
    heights = [width * a.shape[0] / a.shape[1] for a in layers.values()]
    size = max(SINGLE, width * columns + 0.8), 0.7 + sum(heights) + 0.1 * len(layers)
    figure = Figure(size, layout="constrained")
    panels = figure.subplots(len(layers), columns, squeeze=False, height_ratios=heights)
    top = max(a.max() for a in layers.values())
    for row, (name, weights) in zip(panels, layers.items(), strict=True):
        for i, ax in enumerate(row):
            if i < weights.shape[-1]:
                drawn = ax.imshow(weights[..., i], cmap="Blues", vmin=0, vmax=top)
            ax.set(xticks=[], yticks=[], visible=i < weights.shape[-1])
            ax.spines[:].set(visible=True, color=GREY)
        row[0].set_ylabel(name)
    for i, ax in enumerate(panels[0]):
        ax.set_title(f"head {i + 1}", pad=3)
    bar = figure.colorbar(drawn, ax=panels, aspect=25, label="weight")
    bar.outline.set_visible(False)
    caption(figure, note)
    return figure
