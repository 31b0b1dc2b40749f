"""One step for all runs: the protocol in which folds have no test set (Xu et al. 2019).

Every fold is validated on what it does not train on. The step at which the mean of all folds is
best is taken for each of them, and their validation there is what is reported. The choice has seen
what it is judged by: it flatters, as the same folds with an inner holdout show.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from configs import lower_is_better
from results.files import Facts, Row


def at_best_step(
    rows: Iterable[Row], select: Facts, groups: Sequence[Sequence[int]], count: int
) -> dict[str, np.ndarray]:
    """The validation [count] by metric, where the mean over each group of runs of the first
    selected metric is best; nan for runs in no group, or if no step has a value of all.

    rows: of metrics.jsonl.
    """
    rows = [row for row in rows if row["split"] == select["split"]]
    steps = {step: i for i, step in enumerate(sorted({row["step"] for row in rows}))}
    facts = {"step", "run", "split", "seconds"}
    names = dict.fromkeys(name for row in rows for name in row if name not in facts)
    values = {name: np.full((count, len(steps)), np.nan) for name in names}
    for row in rows:
        for name in names:
            if row.get(name) is not None:
                values[name][row["run"], steps[row["step"]]] = row[name]
    chosen = select["metrics"][0]
    sign = 1 if lower_is_better(chosen) else -1
    found = {name: np.full(count, np.nan) for name in [*names, chosen]}
    for group in filter(None, groups):
        means = sign * values[chosen][group].mean(0) if chosen in values else np.array([])
        if np.isfinite(means).any():
            for name, table in values.items():
                found[name][group] = table[group, np.nanargmin(means)]
    return found
