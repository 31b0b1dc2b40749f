"""Populations against others: p-values corrected for being many, in words, table and picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from configs import lower_is_better
from results import compare, figures
from results.compare import Difference, Line
from results.report import in_words

LEVEL = 0.05  # what a corrected p-value has to stay below: chosen before any run
VERDICTS = ("better", "worse", "not shown to differ", "not compared, for lack of runs,")
CAPTION = """Left: test {metric} of each run, and the mean. Right: differences of means, with \
95 % bootstrap intervals; filled: p < {level} after Holm's correction."""
PAPER = {"fc": "white", "lw": 0, "pad": 0.5}  # behind letters that a line may cross
HEAD = ["runs", "test", "n", "against", "difference", "p (Holm)", "compared"]


class Contrast(NamedTuple):
    """A population against another."""

    ours: str
    base: str
    metric: str
    found: Difference | None  # None: too few runs held
    p: float  # corrected for all contrasts of the claim

    @property
    def verdict(self) -> str:
        if self.found is None:
            return VERDICTS[3]
        if self.p >= LEVEL:
            return VERDICTS[2]
        return VERDICTS[(self.found.value < 0) != lower_is_better(self.metric)]

    @property
    def signed(self) -> list[str]:
        """Difference, low and high as they are shown; none of no difference."""
        return (
            [compare.signed(self.metric, value) for value in self.found[:3]] if self.found else []
        )

    @property
    def against(self) -> str:
        """What the other's name has that ours has not."""
        ours = self.ours.split(", ")
        return ", ".join(word for word in self.base.split(", ") if word not in ours)


def contrasts(lines: Mapping[str, Line], pairs: Sequence[tuple[str, str]]) -> list[Contrast]:
    """All of a claim at once: p-values are corrected for their number."""
    found = [compare.difference(lines[ours], lines[base]) for ours, base in pairs]
    fair = iter(compare.holm([one.p for one in found if one]))
    return [
        Contrast(ours, base, lines[ours]["metric"], one, next(fair) if one else 1.0)
        for (ours, base), one in zip(pairs, found, strict=True)
    ]


def tally(found: Sequence[Contrast]) -> str:
    """ "better in 3 and not shown to differ in 1 of 4 comparisons"."""
    counts = Counter(one.verdict for one in found)
    words = [f"{verdict} in {counts[verdict]}" for verdict in VERDICTS if counts[verdict]]
    start = ", ".join(words[:-1]) + " and " if words[1:] else ""
    return f"{start}{words[-1]} of {len(found)} comparisons"


def yes_or_no(found: Sequence[Contrast]) -> str:
    """Whether ours are better."""
    verdicts = {one.verdict for one in found}
    if VERDICTS[0] in verdicts:
        return "Yes" if len(verdicts) == 1 else "In part"
    return "No" if VERDICTS[1] in verdicts else "Not shown"


def amount(one: Contrast) -> str:
    """ "+0.36 points [−0.46, +1.15; p = 0.402]": the p-value of what may be chance."""
    if not one.found:
        return "unknown for lack of runs"
    value, low, high = one.signed
    chance = f"; p = {compare.small(one.p)}" if one.p >= LEVEL else ""
    return f"{value} {compare.unit(one.metric)}".strip() + f" [{low}, {high}{chance}]"


def rows(lines: Mapping[str, Line], found: Sequence[Contrast]) -> list[list[str]]:
    """A table: every population, and what it was compared to."""
    table = [HEAD]
    for name, line in lines.items():
        own = [name, in_words(line["metric"], line["mean"], line["std"]), str(line["n"])]
        for one in (one for one in found if one.ours == name):
            cells = ["", "", "too few runs"]
            if one.found:
                value, low, high = one.signed
                cells = [f"{value} [{low}, {high}]", compare.small(one.p), one.found.how]
            table.append([*own, one.against, *cells])
        if table[-1][0] != name:
            table.append(own + [""] * 4)
    return table


def effects(
    groups: Mapping[str, Mapping[str, Line]], panels: Mapping[str, Sequence[Contrast]]
) -> Figure:
    """Of each group of systems a row: every run as a dot, and beside it differences with intervals.

    panels: for each title a contrast of every group, in their order.
    """
    systems = list(dict.fromkeys(system for group in groups.values() for system in group))
    colours = dict(zip(systems, figures.COLOURS, strict=False))
    metric = next(iter(panels.values()))[0].metric
    scale, label = figures.unit(metric)
    figure = Figure((figures.DOUBLE, 0.85 + 0.5 * len(groups)), layout="constrained")
    shares = [2.2, *[1.0] * len(panels)]
    first, *others = figure.subplots(1, len(shares), sharey=True, width_ratios=shares)
    values = {
        (row, system): scale
        * np.array([v for run in line["values"] if (v := run["value"]) is not None])
        for row, group in enumerate(groups.values())
        for system, line in group.items()
    }
    ends = np.concatenate(list(values.values()))
    width = np.ptp(ends) / 90 if len(ends) > 1 and np.ptp(ends) else 1.0
    for (row, system), held in values.items():
        lane = row + 0.6 * ((systems.index(system) + 0.5) / len(systems) - 0.5)
        rise = 0.035 * figures.swarm(held, width)
        look = {"color": colours[system], "lw": 0, "alpha": 0.75}
        first.scatter(held, lane + rise, 5, label=None if row else system, **look)
        if len(held):
            first.plot([held.mean()] * 2, [lane - 0.1, lane + 0.1], color=figures.INK, lw=1)
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(systems)}
    first.legend(**place, markerscale=2, borderaxespad=0.2, columnspacing=2.5, handletextpad=0)
    first.set(xlabel=f"test {label}", ylim=(len(groups) - 0.5, -0.5))
    first.set_yticks(range(len(groups)), list(groups))
    for ax, (title, found) in zip(others, panels.items(), strict=True):
        ax.axvline(0, color=figures.GREY, lw=0.6, ls=figures.DASHED, zorder=0)
        for row, one in enumerate(found):
            if one.found:
                x, low, high = (scale * value for value in one.found[:3])
                shown = one.p < LEVEL
                ax.plot([low, high], [row, row], color=figures.INK, lw=1)
                face = figures.INK if shown else "white"
                ax.plot(x, row, "o", ms=3.2, color=figures.INK, markerfacecolor=face)
                figures.put(ax, " ".join(one.signed[:1]), (x, row), (0, 8), ha="center", bbox=PAPER)
        ax.set(title=title, xlabel=f"difference{' (points)' if scale == 100 else ''}")
        ax.margins(x=0.25)
    for ax in (first, *others):
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    figures.caption(figure, CAPTION.format(metric=metric, level=LEVEL))
    return figure
