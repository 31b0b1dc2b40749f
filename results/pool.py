"""Finished run folders, pooled: folders that differ in nothing but their seeds are one population.

What a configuration came to is a *line*: one number with all that says where it comes from, as it
stands in published.jsonl. Tables are views of lines.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from results import report
from results.run import flat, read_json, say, status

Line = dict[str, Any]


class Run(NamedTuple):
    """A finished folder, whose runs are usually several."""

    path: Path
    about: dict[str, Any]  # its config.json
    summary: dict[str, Any]

    @property
    def place(self) -> tuple[str, str, str]:
        """Experiment, data set and split."""
        return self.about["experiment"], self.about["data"]["dataset"], self.about["data"]["split"]

    @property
    def settings(self) -> dict[str, Any]:
        """Config and data, without what only says how many runs there are and how computed."""
        settings = flat(self.about["config"] | {"data": self.about["data"]})
        return {name: value for name, value in settings.items() if name not in report.SAME}

    @property
    def date(self) -> str:
        ended = (self.path / "summary.json").stat().st_mtime
        return datetime.fromtimestamp(ended, UTC).date().isoformat()


def find(folders: Sequence[Path], strict: bool = False) -> list[Run]:
    """The runs in these folders and below them; one without a result is named and left out.

    Raises ValueError if none is left or, when strict, for one without a result.
    """
    paths: dict[Path, Path] = {}  # told apart as resolved, shown as given
    for folder in folders:
        inside = {p.parent.resolve(): p.parent for p in sorted(folder.rglob("config.json"))}
        if not inside:
            raise ValueError(f"there is no run in {folder}")
        paths = inside | paths
    runs = []
    for path in sorted(paths.values()):
        if (found := status(path)) in ("finished", "failed"):
            runs.append(
                Run(path, read_json(path / "config.json"), read_json(path / "summary.json"))
            )
        elif strict:
            raise ValueError(f"{path} is {found}: only finished runs are recorded")
        else:
            say(f"{path} is {found}: left out")
    if not runs:
        raise ValueError(f"there is no finished run in {', '.join(map(str, folders))}")
    return runs


def pools(runs: Iterable[Run]) -> list[list[Run]]:
    """The folders of each configuration; one that was edited in between is another."""
    found = defaultdict(list)
    for run in runs:
        found[json.dumps([run.place, run.settings], sort_keys=True)].append(run)
    return list(found.values())


def differing(run: Run, runs: Iterable[Run]) -> dict[str, Any]:
    """Its values of the settings that are not the same in all runs of its experiment and data.

    Overrides alone do not tell runs apart: the config's file may have been edited in between.
    """
    others = [other.settings for other in runs if other.place == run.place]
    return {
        name: value
        for name, value in run.settings.items()
        if any(other.get(name) != value for other in others)
    }


def line(pool: Sequence[Run], metric: str | None = None) -> Line:
    """What a configuration came to on the test split, by its headline metric or another.

    Raises ValueError for a metric that was not measured.
    """
    members = distinct(pool)
    pool = [run for run in pool if any(run is owner for owner, _ in members.values())]
    first = pool[0]
    expected, splits = first.summary["expected"], first.summary["splits"]
    metric = metric or expected["metric"]
    if metric not in (there := [name for name in splits["test"] if name != "examples"]):
        raise ValueError(f"{first.path} has no metric {metric!r}: there are {', '.join(there)}")
    failed = np.array([run.summary["runs"][i]["failed_at"] for run, i in members.values()])

    def over_runs(split: str) -> dict[str, Any]:
        values = [run.summary["splits"][split][metric]["values"][i] for run, i in members.values()]
        found = report.over_runs(np.array(values, float), failed)
        return {name: found[name] for name in ("mean", "std", "n")}

    # What only some had to override is what the config's file says by itself.
    changed = set.intersection(*(set(run.summary["changed"]) for run in pool))
    own = not changed and metric == expected["metric"]  # the number that the config expects
    paper = {name: expected[name] or None for name in ("value", "std", "source")}
    return {
        "experiment": first.about["experiment"],
        "system": first.summary["system"],
        "task": first.about["data"]["dataset"],
        "split": first.about["data"]["split"],
        "changed": {name: first.settings[name] for name in sorted(changed)},
        "metric": metric,
        "paper": paper if own and expected["value"] else None,
        "range": [expected["low"], expected["high"]] if own and expected["high"] else None,
        **over_runs("test"),
        "failed": [who for who, step in zip(members, failed, strict=True) if step],
        "validation": over_runs("validation") if metric in splits["validation"] else None,
        "tested": first.summary["tested"],
        "parameters": first.summary["parameters"],
        "seconds": round(sum(run.summary["seconds"]["train"] for run in pool), 1),
        "command": " && ".join(dict.fromkeys(run.about["command"] for run in pool)),
        "checksum": first.about["data"]["checksum"],
        "versions": {
            name: ", ".join(dict.fromkeys(run.about["versions"][name] for run in pool))
            for name in first.about["versions"]
        },
        "device": ", ".join(dict.fromkeys(run.about["device"] for run in pool)),
        "date": max(run.date for run in pool),
    }


def distinct(pool: Iterable[Run]) -> dict[str, tuple[Run, int]]:
    """Folder and index of each run by its name, "seed 3"; one that was run twice counts once."""
    members: dict[str, tuple[Run, int]] = {}
    for run in pool:
        own = {report.who(one): (run, i) for i, one in enumerate(run.summary["runs"])}
        if twice := [who for who in own if who in members]:
            say(f"{run.path}: not counted, being in another folder too: {', '.join(twice)}")
        members |= {who: member for who, member in own.items() if who not in members}
    return members
