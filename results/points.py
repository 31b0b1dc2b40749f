"""The points of a population: the settings in which its runs differ.

A folder may hold several, each with as many of the runs, in order. Here each is seen as the folder
of a run by itself would tell of it.
"""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from configs import lower_is_better
from results import report
from results.files import Facts

Part = tuple[dict[str, Any], dict[str, Any]]  # what config.json and summary.json say


def split(about: Facts, summary: Facts) -> list[Part]:
    """A folder's points."""
    points = about["points"]
    if len(points) == 1 and not points[0]:
        return [(dict(about), dict(summary))]
    size = summary["n"] // len(points)
    return [
        _part(about, summary, point, slice(i * size, (i + 1) * size))
        for i, point in enumerate(points)
    ]


def _part(about: Facts, summary: Facts, point: Facts, runs: slice) -> Part:
    config: dict[str, Any] = {**about["config"]}
    for name, value in point.items():
        section, _, field = name.rpartition(".")
        config |= {section: config[section] | {field: value}} if section else {field: value}
    words = [w for w in shlex.split(about["command"]) if not w.startswith("--points=")]
    words += [f"--config.{name}={value}" for name, value in point.items()]
    overrides = {**about["overrides"], **point}
    own = {
        "config": config,
        "overrides": overrides,
        "points": [{}],
        "command": shlex.join(words),
    }
    of = [{**run, "hyper": {}} for run in summary["runs"][runs]]  # it is the folder's now
    failed = np.array([run["failed_at"] for run in of])
    splits = {
        name: {
            metric: report.statistics(
                np.array([np.nan if v is None else v for v in numbers["values"][runs]]), failed
            )
            if isinstance(numbers, Mapping)
            else numbers
            for metric, numbers in found.items()
        }
        for name, found in summary["splits"].items()
    }
    share = len(of) / max(summary["n"], 1)
    train = round(summary["seconds"]["train"] * share, 2)
    came = {
        "changed": report.changed(config, overrides),
        "status": "failed" if failed.all() else "finished",
        "n": len(of),
        "runs": of,
        "splits": splits,
        "seconds": {**summary["seconds"], "train": train},
    }
    return {**about, **own}, {**summary, **came}


def best(parts: Iterable[Part]) -> Part | None:
    """The point with the best mean on the validation split; None if every run failed."""
    held = [part for part in parts if part[1]["status"] != "failed"]
    return min(held, key=lambda part: rank(part[1]), default=None)


def rank(summary: Facts) -> float:
    """What points are sorted by, ascending, the best first: the headline metric in validation."""
    mean = validation(summary)["mean"]
    if mean is None:
        return np.inf
    return mean if lower_is_better(summary["expected"]["metric"]) else -mean


def validation(summary: Facts) -> dict[str, Any]:
    """The headline metric in validation: mean, std, n, values."""
    return summary["splits"]["validation"][summary["expected"]["metric"]]


def final_block(about: Facts, summary: Facts, folder: Any) -> str:
    """A run's final block; of a population of several points, each one's validation, the best
    one's test."""
    parts = split(about, summary)
    if len(parts) == 1:
        return report.final_block(parts[0][1], folder)
    chosen = best(parts)
    if not chosen:
        return report.final_block(summary, folder)
    metric = summary["expected"]["metric"]
    lines = {}
    for (own, came), point in zip(parts, about["points"], strict=True):
        found = validation(came)
        words = f"{report.in_words(metric, found['mean'], found['std'])} (n = {found['n']})"
        name = " ".join(f"{name}={value}" for name, value in point.items())
        lines[name] = words + (" best" if own is chosen[0] else "")
    title = f"{len(parts)} points: validation {metric}, mean and sample std"
    block = report.final_block(chosen[1], folder)
    return "\n".join([title, *report.columns(lines), "", "the best of them", block])
