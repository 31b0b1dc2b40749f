"""What the points of a sweep say of its settings, in numbers: importance, fronts, courses.

Shapes: P points, S steps.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from results.figures import Curve, deviation

FEWEST = 8  # points from which a forest is grown


class Course(NamedTuple):
    """A metric of one run: at its steps, and in the end, of the weights that it tests."""

    steps: np.ndarray
    values: np.ndarray
    end: float


def main_effects(means: np.ndarray) -> np.ndarray:
    """Of each axis of a full grid, the share of the variance between its cells that the marginal
    means explain. What is missing to 1 are interactions. Raises ZeroDivisionError if none vary."""
    total = means.var()
    if not total > 1e-14 * np.square(means).max():
        raise ZeroDivisionError
    axes = range(means.ndim)
    marginals = [means.mean(tuple(j for j in axes if j != i)) for i in axes]
    return np.array([marginal.var() / total for marginal in marginals])


def forest_effects(places: np.ndarray, words: Sequence[bool], values: np.ndarray) -> np.ndarray:
    """As `main_effects`, of points anywhere [P, D], by a random forest: functional ANOVA of Hutter
    et al. 2014. words: whether a setting's places are but numbers of words."""
    import optuna  # an extra, and slow to import
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

    kinds: list[BaseDistribution] = [
        CategoricalDistribution(sorted(set(own))) if word else FloatDistribution(*_span(own))
        for own, word in zip(places.T.tolist(), words, strict=True)
    ]
    names = [str(i) for i in range(len(kinds))]
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study()
        for own, value in zip(places.tolist(), values.tolist(), strict=True):
            known = dict(zip(names, own, strict=True)), dict(zip(names, kinds, strict=True))
            study.add_trial(
                optuna.create_trial(params=known[0], distributions=known[1], value=value)
            )
        found: Mapping[str, float] = optuna.importance.FanovaImportanceEvaluator(seed=0).evaluate(
            study
        )
    finally:
        optuna.logging.set_verbosity(before)
    return np.array([float(found[name]) for name in names])


def _span(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def front(costs: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Which points nobody beats: cheaper than all that score as high or higher. By cost, [F]."""
    order = np.lexsort((-scores, costs))
    best = np.maximum.accumulate(scores[order])
    first = np.r_[True, best[1:] > best[:-1]]
    return order[first]


def spaced(costs: np.ndarray, scores: np.ndarray, edge: np.ndarray) -> list[int]:
    """Of a front, the last, and those before it that have room for a name."""
    places = np.column_stack([np.log(costs) if (costs > 0).all() else costs, scores])
    places = (places - places.min(0)) / np.maximum(np.ptp(places, 0), 1e-12)
    found: list[int] = []
    for i in edge[::-1].tolist():
        if all(np.abs(places[i] - places[j]).max() > 0.09 for j in found):
            found.insert(0, i)
    return found


def shared_steps(courses: Sequence[Course]) -> np.ndarray:
    """The steps at which every run that is still training has a value."""
    last = np.array([course.steps[-1] for course in courses])
    steps, count = np.unique(np.concatenate([c.steps for c in courses]), return_counts=True)
    return steps[count == (last[:, None] >= steps).sum(0)]


def average(courses: Sequence[Course], steps: np.ndarray) -> Curve:
    """The mean over runs at these steps. One that has stopped counts on, with the value of the
    weights that it tests: if it left the mean, settings that stop early would be compared by the
    runs that happen to go on."""
    values = np.empty((len(courses), len(steps)))
    for own, (there, numbers, end) in zip(values, courses, strict=True):
        going = steps <= there[-1]
        own[:] = end
        own[going] = numbers[np.searchsorted(there, steps[going])]
    std = np.array([deviation(column) for column in values.T])
    return Curve(steps, values.mean(0), std, np.full(len(steps), len(courses)))


def bins(places: np.ndarray, count: int) -> list[np.ndarray]:
    """The indices of these places in so many equal parts of their range, none of them empty."""
    low, high = places.min(), places.max()
    part = np.minimum(((places - low) / (high - low) * count).astype(int), count - 1)
    groups = [np.flatnonzero(part == i) for i in range(count)]
    return [group[np.argsort(places[group], kind="stable")] for group in groups if len(group)]


def best_cells(at: Sequence[tuple[int, int]], ranks: Sequence[float]) -> dict[tuple[int, int], int]:
    """For each cell that has points, which of them has the lowest rank."""
    order = sorted(range(len(at)), key=lambda i: ranks[i], reverse=True)
    return {at[i]: i for i in order}
