"""By how much a line of a table differs from another, and whether chance would do as much.

Runs on the same random split (or fold) are paired: what an easy split adds to one line it adds to
the other. Seeds of one split are averaged first, since they tell nothing new about splits. On one
fixed split two lines with the same seed share but a number, so their runs are not paired; for two
settings of one system, which may begin alike, that is the cautious choice.

The interval is the percentile bootstrap of the difference of means, as good as there are many runs:
of normal noise, what is called 95 % holds the truth in 76 % of cases with 3 pairs, 83 % with 5,
90 % with 10, 93 % with 20. A permutation test takes all permutations where there are no more than
RESAMPLES. Neither speaks of another data set: what varies is the seed, or the split of this one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from configs.check import nearest
from results.report import in_words, label, who

RESAMPLES = 10_000
TESTS = ("bootstrap", "wilcoxon")
NAMES = {
    ("bootstrap", True): "sign-flip permutation test",
    ("bootstrap", False): "permutation test",
    ("wilcoxon", True): "Wilcoxon signed-rank test",
    ("wilcoxon", False): "Mann-Whitney U test",
}
CSV = ["baseline", "difference", "low", "high", "p", "p_holm", "compared"]
Line = dict[str, Any]  # of published.jsonl, and of a table: what one configuration came to
Samples = tuple[np.ndarray, ...]  # the differences of pairs, or the values of either side


class Difference(NamedTuple):
    """A line's mean minus another's."""

    value: float
    low: float  # of the 95 % interval
    high: float
    p: float
    least: float  # that p can be, of so few runs
    how: str  # "paired by split_seed, n = 10: sign-flip permutation test"


def kind(line: Line) -> tuple[str, str, str]:
    """Lines of one kind may be compared."""
    return line["task"], line["split"], line["metric"]


def units(line: Line) -> tuple[str, dict[tuple[int, ...], float]]:
    """What of a line is independent: its splits' means over seeds, or its seeds. A name for what
    tells them apart, and their values, those without a run that held left out."""
    names = sorted({name for run in line["values"] for name in run} - {"seed", "value"})
    found = defaultdict(list)
    for run in line["values"]:
        if run["value"] is not None:
            found[tuple(run[name] for name in names or ["seed"])].append(run["value"])
    return ", ".join(names), {key: float(np.mean(found[key])) for key in sorted(found)}


def difference(line: Line, base: Line, test: str = "bootstrap") -> Difference | None:
    """None if fewer than two runs, or pairs of them, held."""
    (names, ours), (same, theirs) = units(line), units(base)
    shared = [key for key in ours if key in theirs] if names and names == same else []
    if shared:
        each = np.array([ours[key] - theirs[key] for key in shared])
        samples: Samples = (np.round(each, 12),)  # 0.3 - 0.2 and 0.2 - 0.1 are alike
        how = f"paired by {names}, n = {len(shared)}"
        lost = {
            who(dict(zip(names.split(", "), key, strict=True)))
            for key in ours.keys() ^ theirs.keys()
        }
        how += f" (without {', '.join(sorted(lost))})" if lost else ""
    else:
        samples = tuple(np.array([*side.values()]) for side in (ours, theirs))
        how = f"unpaired, n = {len(ours)} and {len(theirs)}"
    if min(map(len, samples)) < 2:
        return None
    low, high = interval(samples)
    how += f": {NAMES[test, len(samples) == 1]}"
    counts = [len(sample) for sample in samples]
    least = 2 / (2 ** counts[0] if len(counts) == 1 else math.comb(sum(counts), counts[0]))
    return Difference(float(gap(*samples)), low, high, probability(samples, test), least, how)


def gap(*samples: np.ndarray, axis: int = -1) -> Any:
    """The mean of pairs' differences, or the difference of two means."""
    means = [sample.mean(axis) for sample in samples]
    return means[0] - means[1] if len(means) > 1 else means[0]


def interval(samples: Samples) -> tuple[float, float]:
    rng = np.random.default_rng(0)  # the same numbers, the same interval
    found = stats.bootstrap(
        samples, gap, vectorized=True, n_resamples=RESAMPLES, method="percentile", rng=rng
    ).confidence_interval
    return float(found.low), float(found.high)


def probability(samples: Samples, test: str) -> float:
    """Two-sided: how often chance alone would make them differ as much."""
    paired = len(samples) == 1
    if test == "bootstrap":
        rng, of = np.random.default_rng(0), "samples" if paired else "independent"
        return stats.permutation_test(
            samples, gap, permutation_type=of, vectorized=True, n_resamples=RESAMPLES, rng=rng
        ).pvalue.item()
    if not paired:
        return float(stats.mannwhitneyu(*samples).pvalue)
    return float(stats.wilcoxon(*samples).pvalue) if samples[0].any() else 1.0


def holm(found: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm 1979): the least times their count, the next times
    one less, and so on; none below one before it."""
    order = np.argsort(found, kind="stable")
    steps = np.arange(len(order), 0, -1) * np.array(found, float)[order]
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted.tolist()


def against(lines: Iterable[Line], name: str, test: str = "bootstrap") -> list[Line]:
    """Lines with how each differs from the line of its kind that `name` names: a system, an
    experiment, or an experiment with its settings. Raises ValueError if nothing can be compared."""
    kinds, known = defaultdict(list), set()
    for line in lines:
        kinds[kind(line)].append(line)
        known |= {*names_of(line)}
    if name not in known:
        raise ValueError(f"--baseline={name}: there is no such line; {nearest(name, known)}")
    if not any(line.get("values") for group in kinds.values() for line in group):
        raise ValueError("these lines were recorded without their runs' values: name run folders")
    return [line for group in kinds.values() for line in _compared(group, name, test)]


def names_of(line: Line) -> tuple[str, str, str]:
    return label(line), line["experiment"], line["system"]


def _compared(group: Sequence[Line], name: str, test: str) -> list[Line]:
    """Lines of one kind."""
    levels = ([one for one in group if names_of(one)[level] == name] for level in range(3))
    bases = next(filter(None, levels), [])  # by what it is named most closely
    if len(bases) > 1:
        labels = sorted({label(line) for line in bases})
        which = f"say which: {', '.join(map(repr, labels))}" if len(labels) > 1 else "by date"
        raise ValueError(f"--baseline={name}: {len(bases)} lines of a table are that, {which}")
    rows = [line | dict.fromkeys(CSV) | {"baseline": name if bases else ""} for line in group]
    for row, line in zip(rows, group, strict=True) if bases else ():
        if line is bases[0]:
            row["compared"] = "baseline"
        elif not (line.get("values") and bases[0].get("values")):
            row["compared"] = "recorded without its runs' values"
        elif found := difference(line, bases[0], test):
            value, low, high, p, least, how = found
            row |= {"difference": value, "low": low, "high": high, "p": p, "compared": how}
            row["least"] = least
        else:
            row["compared"] = "too few runs"
    made = [row for row in rows if row["p"] is not None]
    for row, p in zip(made, holm([row["p"] for row in made]), strict=True):
        row["p_holm"] = p
    return rows


def cells(line: Line, group: Sequence[Line]) -> dict[str, str]:
    """The columns of a compared line, beside the others of its table."""
    if not line.get("baseline"):
        return {}
    several = sum(other["p"] is not None for other in group) > 1
    known = line["p"] is not None
    rest = "baseline" if line["compared"] == "baseline" else ""
    return {
        f"difference to {line['baseline']}": in_brackets(line) if known else rest,
        "p (Holm)" if several else "p": small(line["p_holm"]) if known else "",
    }


def small(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def in_brackets(line: Line) -> str:
    """ "+1.66 [+1.26, +2.05]": in points of a per cent, or in the metric's unit."""
    value, low, high = (
        signed(line["metric"], line[name]) for name in ("difference", "low", "high")
    )
    return f"{value} [{low}, {high}]"


def signed(metric: str, value: float) -> str:
    """Always with a sign; of shares, one digit more than a mean is shown with."""
    words = f"{100 * value:+.2f}" if unit(metric) else f"{value:+.4f}"
    return words.replace("-", "−")


def unit(metric: str) -> str:
    return "points" if in_words(metric, 0.0).endswith("%") else ""


def note(group: Sequence[Line]) -> str:
    """What a reader of a table of compared lines has to know."""
    ways = defaultdict(list)
    for line in group:
        if line["compared"] not in (None, "baseline"):
            ways[line["compared"]].append(label(line))
    if not ways:
        return ""
    named = [f"{', '.join(names)}: {how}" for how, names in ways.items()]
    how = "; ".join(named if len(ways) > 1 else ways)
    points = f" in {unit(group[0]['metric'])}" if unit(group[0]["metric"]) else ""
    text = f"Differences are of means{points}, in brackets the 95 % interval by bootstrap "
    text += f"({RESAMPLES:,} resamples); {how}."
    count = sum(line["p"] is not None for line in group)
    text += f" p is corrected by Holm for {count} comparisons." if count > 1 else ""
    least = count * max(line.get("least", 0.0) for line in group)
    few = f" Of so few runs p cannot be below {small(min(least, 1.0))}, whatever they show."
    return text + (few if least > 0.05 else "")
