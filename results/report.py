"""What a person reads of a run, and the summary it is read from."""

import math
import resource
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from results.run import Row, flat, number

# Settings that change how many runs there are or how they are computed, not what they are.
SAME = ("seed", "seeds", "save", "together")
FACTS = ("tested", "parameters", "flops_per_step", "peak_memory", "seconds")
OUTCOME = ("status", "best_step", "stopped_at", "failed_at")  # of a run; the rest says which it is


def summarize(
    about: Mapping[str, Any],
    ids: Mapping[str, np.ndarray],
    ends: Mapping[str, np.ndarray],
    splits: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The summary of a population: its runs and, for every split, metrics over those that held.

    ids: the runs' numbers [R]; ends: best_step, stopped_at, failed_at [R]; splits: each examples
    [R] and metrics {name: [R]}; facts: FACTS about all of it.
    """
    config = about["config"]
    failed = np.asarray(ends["failed_at"])
    runs = [
        {name: int(numbers[i]) for name, numbers in ids.items()}
        | {"status": "failed" if failed[i] else "finished"}
        | {name: int(step[i]) for name, step in ends.items()}
        for i in range(len(failed))
    ]
    return {
        "experiment": about["experiment"],
        "system": config["model"]["name"],
        "data": about["data"],
        "status": "failed" if failed.all() else "finished",
        "changed": sorted(name for name in about["overrides"] if name not in SAME),
        "select": config["select"],
        "n": len(runs),
        "splits": {
            split: {"examples": int(np.median(found["examples"]))}
            | {metric: over_runs(values, failed) for metric, values in found["metrics"].items()}
            for split, found in splits.items()
        },
        "runs": runs,
        **facts,
        "expected": config["expected"],
    }


def rows(ids: Mapping[str, np.ndarray], measured: Mapping[str, Any]) -> list[Row]:
    """The record of a chunk: for each run that was live and each split a row, in order of steps.

    measured: live, step, learning_rate [R] and, by split, metrics [R] or means of them.
    """
    found = []
    steps = measured["step"]
    for i in sorted(np.flatnonzero(measured["live"]), key=lambda i: (steps[i], i)):
        for split, metrics in measured["scores"].items():
            if metrics:
                row: Row = {"step": int(steps[i]), "run": int(i), "split": split}
                row |= {name: int(numbers[i]) for name, numbers in ids.items()}
                if split == "train":
                    row["learning_rate"] = number(measured["learning_rate"][i])
                row |= {name: _value(metric, int(i)) for name, metric in metrics.items()}
                found.append(row)
    return found


def _value(metric: Any, i: int) -> float | None:
    """Of run i; null for a mean of nothing, such as the loss of a run that failed at once."""
    if isinstance(metric, tuple):
        total, weight = (float(part[i]) for part in metric)
        return number(total / weight) if weight else None
    return number(metric[i])


def over_runs(values: np.ndarray, failed: np.ndarray) -> dict[str, Any]:
    """Mean and sample standard deviation of the runs that did not fail; of one, no deviation."""
    held = np.asarray(values, np.float64)[failed == 0]
    return {
        "mean": number(held.mean()) if len(held) else None,
        "std": number(held.std(ddof=1)) if len(held) > 1 else None,
        "n": len(held),
        "values": [None if bad else number(v) for v, bad in zip(values, failed, strict=True)],
    }


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def in_words(found: Mapping[str, Any], metric: str) -> str:
    """ "83.1 ± 0.6 %": shares in per cent, other metrics with four decimals."""
    if found["mean"] is None:
        return "none"
    scale, digits, unit = (100, 1, " %") if "accuracy" in metric else (1, 4, "")
    std = f" ± {scale * found['std']:.{digits}f}" if found["std"] is not None else ""
    return f"{scale * found['mean']:.{digits}f}{std}{unit}"


def final_block(summary: Mapping[str, Any], folder: Any) -> str:
    """The end of a run: what came out, whether that was expected, where it is, what to do next."""
    expected, data, cost = summary["expected"], summary["data"], summary["seconds"]
    metric, n = expected["metric"], summary["n"]
    found = summary["splits"]["test"][metric]
    own = not summary["changed"]  # what was published is for the config's own settings
    spread = "mean ± sample std, " if found["n"] > 1 else ""
    lines = {
        f"test {metric}": f"{in_words(found, metric)} ({spread}n = {found['n']})",
        "published": published(expected) if own else "",
        "expected": verdict(expected, found["mean"]) if own and expected["high"] else "",
        "changed": ", ".join(summary["changed"]),
        "tested": summary["tested"],
        "failed": ", ".join(failures(summary)),
        "model": f"{summary['parameters']:,} parameters, {operations(summary)} a step",
        "time": f"{cost['train']:.1f} s to train, {cost['compile']:.1f} s to compile, "
        f"{summary['peak_memory'] / 2**30:.2f} GiB at most",
        "folder": str(folder),
        "next": shlex.join(["python", "-m", "results.table", str(folder)]),
    }
    title = f"{summary['experiment']}: {summary['system']} on {data['dataset']}"
    title += f", {data['split']} split, {n} run{'s' if n > 1 else ''}"
    return "\n".join([title, *columns(lines)])


def columns(rows: Mapping[str, Any]) -> list[str]:
    width = max(map(len, rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows.items() if value != ""]


def published(expected: Mapping[str, Any]) -> str:
    if not expected["value"]:
        return ""
    value = {"mean": expected["value"], "std": expected["std"] or None}
    return f"{in_words(value, expected['metric'])} ({expected['source']})"


def verdict(expected: Mapping[str, Any], mean: float | None) -> str:
    """ "82.3 to 83.8 %: met": the range that a config gives for its own settings."""
    low, high = (
        in_words({"mean": expected[k], "std": None}, expected["metric"]) for k in ("low", "high")
    )
    return f"{low.removesuffix(' %')} to {high}: {'met' if met(expected, mean) else 'NOT met'}"


def met(expected: Mapping[str, Any], mean: float | None) -> bool:
    return mean is not None and expected["low"] <= mean <= expected["high"]


def failures(summary: Mapping[str, Any]) -> list[str]:
    """ "seed 3 split_seed 7 at step 12", for every run that failed."""
    named = [
        (" ".join(f"{name} {run[name]}" for name in run if name not in OUTCOME), run["failed_at"])
        for run in summary["runs"]
    ]
    return [f"{name} at step {step}" for name, step in named if step]


def operations(facts: Mapping[str, Any]) -> str:
    count = facts["flops_per_step"] or 0
    power = min(int(math.log10(max(count, 1)) // 3), 5)
    return f"{count / 1000**power:.3g} {' kMGTP'[power].strip()}FLOP"


class Progress:
    """A line that is written over on a terminal, and every ten seconds a new one elsewhere."""

    def __init__(self, steps: int, metrics: Sequence[str], out: TextIO = sys.stderr):
        self._steps, self._metrics, self._out = steps, metrics, out
        self._began = self._shown = time.monotonic()
        self._first: int | None = None

    def show(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        step, now, terminal = max(row["step"] for row in rows), time.monotonic(), self._out.isatty()
        if self._first is None:
            self._first, self._began = step, now
        elif now - self._shown < (0.1 if terminal else 10):
            return
        self._shown = now
        words = [f"step {step}/{self._steps}", f"{sum(r['split'] == 'train' for r in rows)} live"]
        for split, metric in [("train", "loss"), *(("validation", m) for m in self._metrics)]:
            found = [r[metric] for r in rows if r["split"] == split and r[metric] is not None]
            words += [f"{split} {metric} {np.mean(found):.4f}"] if found else []
        if now > self._began:
            pace = (step - self._first) / (now - self._began)
            words.append(f"{pace:.1f} steps/s")
            words += [f"{(self._steps - step) / pace:.0f} s left at most"] if pace else []
        line = "  ".join(words)
        if terminal:
            line = "\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1]
        print(line, end="" if terminal else "\n", file=self._out, flush=True)

    def close(self) -> None:
        if self._out.isatty():
            print("\r\x1b[K", end="", file=self._out, flush=True)


def dry_run(about: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """What would be run: settings, data, parameters, a batch, cost."""
    count = sum(math.prod(shape) for shape in facts["parameters"].values())
    parts = {
        "settings": {name: repr(value) for name, value in flat(about["config"]).items()},
        "data": about["data"],
        f"parameters: {count:,}": facts["parameters"],
        "a batch": facts["batch"],
        "cost": {"a step of one run": operations(facts), "device": about["device"]},
    }
    return "\n\n".join("\n".join([title, *columns(rows)]) for title, rows in parts.items())
