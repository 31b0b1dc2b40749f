"""What a sweep came to: its points in order of their validation, and the one that is chosen.

Nothing is chosen by a test: the test of the chosen point alone is told.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from results import points
from results.files import MANIFEST, Facts, read_json, read_run, write_json
from results.points import Part
from results.report import columns, count, in_words, span, who

SHOWN = 20  # points on the terminal; outcome.json has all
CONFIRM = "confirm"  # the folder of the runs with fresh seeds


def claim(folder: Path, manifest: Facts) -> None:
    """Makes a folder this sweep's; raises ValueError if it is of another, or of other things."""
    file, new = folder / MANIFEST, json.loads(json.dumps(manifest))
    if file.exists():
        old = read_json(file, ["command"])
        if differ := [key for key in new if key != "command" and new[key] != old.get(key)]:
            other = f"a sweep with other {', '.join(differ)}: {old['command']}"
            raise ValueError(f"--workdir={folder} holds {other}")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"--workdir={folder} holds files that are no sweep's")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, new)


def sweep_of(path: Path) -> Path | None:
    """The folder of the sweep that a run folder belongs to, or to whose confirmation."""
    above = path.parents[1] if path.parent.name == CONFIRM else path.parent
    return above if (above / MANIFEST).exists() else None


def is_chosen(sweep: Path, own: Facts) -> bool:
    """Whether a run on fresh seeds is of the point that the sweep has chosen."""
    if not (sweep / "outcome.json").exists():
        return False
    chosen = read_json(sweep / "outcome.json", ["chosen"])["chosen"] or {"settings": None}
    known = json.loads(json.dumps(own["overrides"]))
    return chosen["settings"] == {name: known.get(name) for name in chosen["settings"] or ()}


def gather(folder: Path, names: Iterable[str]) -> list[Part]:
    """The points of these populations that have ended, the best in validation first."""
    parts: list[Part] = []
    for name in names:
        about, summary = read_run(folder / name)
        if summary:
            parts += points.split(about, summary)
    return sorted(parts, key=lambda part: points.rank(part[1]))


def outcome(
    about: Facts,
    parts: Sequence[Part],
    confirmed: Sequence[Part],
    failed: Mapping[str, str],
    pruned: Sequence[str],
    left: Sequence[str],
) -> dict[str, Any]:
    """outcome.json. parts, confirmed: points in order; failed: populations and why; pruned:
    those given up; left: those that have not ended."""
    chosen = None
    if part := points.best(confirmed or parts):
        own, came = part
        chosen = {**_point(own, came, about), "command": own["command"]}
        chosen["test"] = came["splits"]["test"][about["metric"]]
        chosen["fresh_seeds"] = bool(confirmed)
    return {
        **about,
        "points": [_point(*part, about) for part in parts],
        "confirmed": [_point(*part, about) for part in confirmed],
        "failed": dict(failed),
        "pruned": list(pruned),
        "left": list(left),
        "chosen": chosen,
    }


def _point(own: Facts, came: Facts, about: Facts) -> dict[str, Any]:
    return {
        "settings": {name: own["overrides"][name] for name in about["space"]},
        "status": came["status"],
        "validation": points.validation(came),
        "failed": [who(run) for run in came["runs"] if run["failed_at"]],
        "parameters": came["parameters"],
        "seconds": round(came["seconds"]["train"] / max(came["n"], 1), 2),  # of a run
    }


def words(found: Facts, folder: Path) -> str:
    """The end of a sweep, for its reader."""
    metric = found["metric"]
    came = "no point has ended yet"
    if known := found["points"]:
        came = f"{count(len(known), 'point')}, {_runs(known)} each"
    text = [f"{found['experiment']}: {came}", *_table(known, metric)]
    if found["confirmed"]:
        text += ["", f"the best again, on fresh seeds, {_runs(found['confirmed'])} each"]
        text += _table(found["confirmed"], metric)
    lost = [point for point in found["points"] if point["status"] == "failed"]
    lines = {_name(point["settings"]): "no run stayed finite" for point in lost} | found["failed"]
    if lines:
        text += ["", "failed", *columns(lines)]
    if found["pruned"]:
        text += ["", f"given up: {len(found['pruned'])} of no promise"]
    if found["left"]:
        text += ["", f"not ended: {', '.join(found['left'])}"]
    lines = {}
    if chosen := found["chosen"]:
        how = "fresh seeds" if chosen["fresh_seeds"] else "the runs it was chosen by"
        test, valid = chosen["test"], chosen["validation"]
        result = in_words(metric, test["mean"], test["std"])
        lines = {
            "chosen": _name(chosen["settings"]),
            f"validation {metric}": in_words(metric, valid["mean"], valid["std"]),
            f"test {metric}": f"{result} (mean ± sample std, n = {test['n']}, {how})",
            "command": chosen["command"],
        }
        lines["next"] = f"python -m results.plot {shlex.quote(str(folder))}"
        if not found["confirmed"]:
            lines["next"] += ", or the same command with --confirm=3: the best on fresh seeds"
    lines["folder"] = str(folder)
    return "\n".join([*text, "", *columns(lines)])


def _runs(found: Sequence[Facts]) -> str:
    return span([len(point["validation"]["values"]) for point in found], "run")


def _name(settings: Facts) -> str:
    return " ".join(f"{name}={shown(value)}" for name, value in settings.items())


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(found: Sequence[Facts], metric: str) -> list[str]:
    """Lines: each point's settings, validation, failed runs, parameters and seconds."""
    if not found:
        return []
    names = list(found[0]["settings"])
    rows = [[*names, f"validation {metric}", "n", "failed", "parameters", "seconds a run"]]
    for point in found[:SHOWN]:
        valid = point["validation"]
        rows.append([shown(point["settings"][name]) for name in names])
        rows[-1] += [in_words(metric, valid["mean"], valid["std"]), str(valid["n"])]
        rows[-1] += [str(len(point["failed"]) or ""), f"{point['parameters']:,}"]
        rows[-1] += [f"{point['seconds']:,.2f}"]
    kept = [i for i, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    widths = [max(len(row[i]) for row in rows) for i in kept]
    lines = [
        "  " + "  ".join(row[i].ljust(w) for i, w in zip(kept, widths, strict=True)).rstrip()
        for row in rows
    ]
    return lines + ([f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])
