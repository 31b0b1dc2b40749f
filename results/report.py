"""What a person reads of a run, and the summary it is read from."""

import math
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from results.run import Row, flat, number

# Settings that change how many runs there are or how they are computed, not what they are.
SAME = ("seed", "seeds", "save", "together")
COST = ("parameters", "flops_per_step", "peak_memory", "seconds")
OUTCOME = ("status", "step", "stopped_at", "failed_at")  # of a run; the rest says which it is


def summarize(
    about: Mapping[str, Any],
    ids: Mapping[str, np.ndarray],
    best: Mapping[str, np.ndarray],
    splits: Mapping[str, Any],
    cost: Mapping[str, Any],
) -> dict[str, Any]:
    """The summary of a population: its runs and, for every split, metrics over those that held.

    ids: the runs' numbers [R]; best: step, stopped_at, failed_at [R]; splits: for each, examples
    [R] and metrics {name: [R]}; cost: COST of it all.
    """
    config = about["config"]
    kept = f"best {config['select']['split']} {' and '.join(config['select']['metrics'])}"
    failed = np.asarray(best["failed_at"])
    runs = [
        {name: int(numbers[i]) for name, numbers in ids.items()}
        | {"status": "failed" if failed[i] else "finished"}
        | {name: int(step[i]) for name, step in best.items()}
        for i in range(len(failed))
    ]
    return {
        "experiment": about["experiment"],
        "system": config["model"]["name"],
        "data": about["data"],
        "status": "failed" if failed.all() else "finished",
        "changed": [name for name in about["overrides"] if name not in SAME],
        "select": config["select"],
        "tested": "at the " + (kept if config["select"]["keep"] == "best" else "last step"),
        "n": len(runs),
        "splits": {
            split: {"examples": int(np.median(found["examples"]))}
            | {metric: over_runs(values, failed) for metric, values in found["metrics"].items()}
            for split, found in splits.items()
        },
        "runs": runs,
        **cost,
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
                row |= {name: _value(metric, i) for name, metric in metrics.items()}
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
    scale, digits, unit = (100, 1, " %") if is_share(metric) else (1, 4, "")
    std = f" ± {scale * found['std']:.{digits}f}" if found["std"] is not None else ""
    return f"{scale * found['mean']:.{digits}f}{std}{unit}"


def is_share(metric: str) -> bool:
    return "accuracy" in metric


def final_block(summary: Mapping[str, Any], folder: Any) -> str:
    """The end of a run: what came out, whether that was expected, where it is, what to do next."""
    expected, seconds, changed = (summary[k] for k in ("expected", "seconds", "changed"))
    own = not changed and expected["high"]  # the published number is for the config's own settings
    found = summary["splits"]["test"][expected["metric"]]
    lines = [
        (f"test {expected['metric']}", f"{in_words(found, expected['metric'])}   {spread(found)}"),
        ("published", published(expected)),
        ("expected", verdict(expected, found["mean"]) if own else ""),
        ("changed", ", ".join(changed)),
        ("tested", summary["tested"]),
        (
            "failed",
            ", ".join(f"{who(run)} at step {run['failed_at']}" for run in failures(summary)),
        ),
        (
            "model",
            f"{summary['parameters']:,} parameters, {flops(summary['flops_per_step'])} a step",
        ),
        (
            "time",
            f"{seconds['train']:.1f} s to train, {seconds['compile']:.1f} s to compile, "
            f"{summary['peak_memory'] / 2**30:.2f} GiB at most",
        ),
        ("folder", folder),
        ("next", f"python -m results.table {folder}"),
    ]
    return "\n".join([headline(summary), *(f"  {name:<15} {text}" for name, text in lines if text)])


def headline(summary: Mapping[str, Any]) -> str:
    data, n = summary["data"], summary["n"]
    runs = f"{n} run{'s' if n > 1 else ''}"
    where = f"{data['dataset']}, {data['split']} split"
    return f"{summary['experiment']}: {summary['system']} on {where}, {runs}"


def spread(found: Mapping[str, Any]) -> str:
    return f"(mean ± sample std, n = {found['n']})" if found["n"] > 1 else f"(n = {found['n']})"


def published(expected: Mapping[str, Any]) -> str:
    if not expected["value"]:
        return ""
    value = {"mean": expected["value"], "std": expected["std"] or None}
    return f"{in_words(value, expected['metric'])}   {expected['source']}"


def verdict(expected: Mapping[str, Any], mean: float | None) -> str:
    """ "82.3 to 83.8 %: met": the range that a config gives for its own settings."""
    low, high = (
        in_words({"mean": expected[k], "std": None}, expected["metric"]) for k in ("low", "high")
    )
    return f"{low.removesuffix(' %')} to {high}: {'met' if met(expected, mean) else 'NOT met'}"


def met(expected: Mapping[str, Any], mean: float | None) -> bool:
    return mean is not None and expected["low"] <= mean <= expected["high"]


def failures(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [run for run in summary["runs"] if run["failed_at"]]


def who(run: Mapping[str, Any]) -> str:
    """ "seed 3", "seed 3 split_seed 7": the numbers that tell a run from its neighbours."""
    return " ".join(f"{name} {run[name]}" for name in run if name not in OUTCOME)


def flops(count: float | None) -> str:
    if not count:
        return "unknown cost"
    power = min(int(math.log10(count) // 3), 5)
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
        "settings": flat(about["config"]),
        "data": about["data"],
        f"parameters: {count:,}": facts["parameters"],
        "a batch": facts["batch"],
        "cost": {"step": flops(facts["flops_per_step"]), "runs": facts["runs"]},
    }
    return "\n\n".join("\n".join([title, *_columns(rows)]) for title, rows in parts.items())


def _columns(rows: Mapping[str, Any]) -> list[str]:
    width = max(map(len, rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows.items()]
