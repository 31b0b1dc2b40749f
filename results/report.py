"""What a person reads of a run, and the summary it is read from."""

import math
import re
import resource
import shlex
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from configs.check import flat
from results import common
from results.files import Facts, Row, number

# Settings that change how many runs there are or how they are computed, not what they are.
SAME = ("seed", "seeds", "save", "together")
# Of a run; the rest says which it is.
OUTCOME = ("status", "best_step", "stopped_at", "failed_at", "hyper")


def summarize(
    about: Facts, ids: Facts, ends: Facts, splits: Facts, facts: Facts, rows: Sequence[Row] = ()
) -> dict[str, Any]:
    """The summary of a population: its runs and, for every split, metrics over those that held.

    ids: the runs' numbers [R]; ends: best_step, stopped_at, failed_at [R]; splits: each examples
    [R] and metrics {name: [R]}; facts: tested, parameters, flops_per_step, peak_memory, seconds;
    rows: all that were recorded, to choose the step from that is common to all runs.
    """
    config, failed = about["config"], np.asarray(ends["failed_at"])
    hypers = per_run(about["points"], len(failed))
    if config["select"].get("keep") == "common":
        points = np.array_split(np.arange(len(failed)), len(about["points"]))
        held = [[i for i in point if not failed[i]] for point in points]
        at_best = common.at_best_step(rows, config["select"], held, len(failed))
        validated = splits[config["select"]["split"]]
        splits = {**splits, "common": {**validated, "metrics": at_best}}
    runs = [
        {name: int(numbers[i]) for name, numbers in {**ids, **ends}.items()}
        | {
            "status": "failed" if at else "finished",
            "hyper": {k: v for k, v in hyper.items() if k != "seed"},
        }
        for i, (at, hyper) in enumerate(zip(failed, hypers, strict=True))
    ]
    return {
        "experiment": about["experiment"],
        "system": system(config["model"]),
        "data": about["data"],
        "status": "failed" if failed.all() else "finished",
        "changed": changed(config, about["overrides"]),
        "select": config["select"],
        "n": len(runs),
        "splits": {
            split: {"examples": int(np.median(found["examples"]))}
            | {metric: statistics(values, failed) for metric, values in found["metrics"].items()}
            for split, found in splits.items()
        },
        "runs": runs,
        **facts,
        "expected": config["expected"],
    }


def system(model: Facts) -> str:
    """A model's name and, in brackets, those of the models it is made of: "GAE(GCN)"."""
    parts = [system(part) for part in model.values() if isinstance(part, Mapping)]
    return model["name"] + (f"({', '.join(parts)})" if parts else "")


def settings(config: Facts) -> dict[str, Any]:
    """A config, flat, without how many runs there are, how they are computed, what is expected."""
    return {k: v for k, v in flat({**config, "expected": {}}).items() if k not in SAME}


def changed(config: Facts, overrides: Facts) -> list[str]:
    """Which of a config's settings are not its file's own: "model.heads=4"."""
    given = {name: value for name, value in settings(config).items() if name in overrides}
    return sorted(f"{name}={value}" for name, value in given.items())


def per_run(points: Sequence[Facts], count: int) -> list[Facts]:
    """The point of each of a population's runs: every point has as many of them, in order."""
    return [point for point in points for _ in range(count // len(points))]


def statistics(values: np.ndarray, failed: np.ndarray) -> dict[str, Any]:
    """Mean and sample standard deviation of the runs that did not fail; of one, no deviation."""
    held = np.asarray(values, np.float64)[failed == 0]
    return {
        "mean": number(held.mean()) if len(held) else None,
        "std": number(held.std(ddof=1)) if len(held) > 1 else None,
        "n": len(held),
        "values": [None if bad else number(v) for v, bad in zip(values, failed, strict=True)],
    }


def rows(ids: Facts, measured: Facts, seconds: float, points: Sequence[Facts] = ({},)) -> list[Row]:
    """The record of a chunk: for each run that was live and each split a row, in order of steps.

    measured: live, step, learning_rate [R] and, by split, metrics [R].
    """
    found, steps = [], measured["step"]
    hypers = per_run(points, len(steps))
    for i in sorted(np.flatnonzero(measured["live"]), key=lambda i: steps[i]):
        for split, metrics in measured["metrics"].items():
            if metrics:
                row: Row = {"step": int(steps[i]), "run": int(i), "split": split}
                row |= {name: int(numbers[i]) for name, numbers in ids.items()} | {**hypers[i]}
                row["seconds"] = round(seconds, 2)
                if split == "train":
                    row["learning_rate"] = number(measured["learning_rate"][i])
                row |= {name: number(metric[i]) for name, metric in metrics.items()}
                found.append(row)
    return found


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def in_words(metric: str, mean: float | None, std: float | None = None) -> str:
    """ "83.1 ± 0.6 %": shares in per cent, other metrics with four decimals."""
    if mean is None:
        return "none"
    scale, digits, unit = (100, 1, " %") if "accuracy" in metric else (1, 4, "")
    spread = f" ± {scale * std:.{digits}f}" if std is not None else ""
    return f"{scale * mean:.{digits}f}{spread}{unit}"


def published(expected: Facts) -> str:
    """ "83.0 ± 0.7 % (Veličković et al. 2018, table 2)"; empty if nothing is."""
    number = in_words(expected["metric"], expected["value"], expected["std"] or None)
    return f"{number} ({expected['source']})" if expected["value"] else ""


def verdict(expected: Facts, mean: float | None) -> str:
    """ "82.3 to 83.8 %: met": the range that a config gives for its own settings, if it does."""
    low, high = (in_words(expected["metric"], expected[end]) for end in ("low", "high"))
    words = f"{low.removesuffix(' %')} to {high}: {'met' if met(expected, mean) else 'NOT met'}"
    return words if expected["high"] else ""


def met(expected: Facts, mean: float | None) -> bool:
    return mean is not None and expected["low"] <= mean <= expected["high"]


def numbers(run: Facts) -> dict[str, int]:
    """A run's own: its seed, and a split's or a fold's."""
    return {name: run[name] for name in run if name not in OUTCOME}


def who(run: Facts) -> str:
    """ "seed 3 split_seed 7": the numbers that tell a run from the others, and its settings."""
    known = numbers(run) | run.get("hyper", {})
    return " ".join(f"{name} {value}" for name, value in known.items())


def label(line: Facts) -> str:
    """ "gcn_cora model.width=32": what a line of a table is called."""
    return f"{line['experiment']} {line['changed']}".strip()


def numbered(name: str) -> list[Any]:
    """A key to sort by: Layer_2 comes before Layer_10, width=8 before width=16."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def headline(summary: Facts) -> tuple[str, str]:
    """The split that a summary's number is of, and what the number is called."""
    metric, select = summary["expected"]["metric"], summary["select"]
    if select.get("keep") == "common":
        return "common", f"{select['split']} {metric}, at one step for all runs"
    return "test", metric


def count(number: int, what: str) -> str:
    """ "1 run", "1,000 runs"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def span(counts: Collection[int], what: str) -> str:
    """ "3 runs", "2 to 3 runs"."""
    low, high = min(counts), max(counts)
    return count(high, what) if low == high else f"{low} to {high} {what}s"


def final_block(summary: Facts, folder: Any) -> str:
    """The end of a run: what came out, whether that was expected, where it is, what to do next."""
    expected, seconds, data = summary["expected"], summary["seconds"], summary["data"]
    metric = expected["metric"]
    part, name = headline(summary)
    found = summary["splits"][part][metric]
    own = not summary["changed"]  # what was published is for the config's own settings
    failed = [run for run in summary["runs"] if run["failed_at"]]
    spread = "mean ± sample std, " if found["n"] > 1 else ""
    title = f"{summary['experiment']}: {summary['system']} on {data['dataset']}, "
    title += f"{data['split']} split, {summary['n']} run{'s' * (summary['n'] > 1)}"
    test = in_words(metric, found["mean"], found["std"])
    lines = {
        f"test {metric}" if part == "test" else name: f"{test} ({spread}n = {found['n']})",
        "published": published(expected) if own else "",
        "expected": verdict(expected, found["mean"]) if own else "",
        "changed": ", ".join(summary["changed"]),
        "tested": summary["tested"],
        "failed": ", ".join(f"{who(run)} at step {run['failed_at']}" for run in failed),
        "model": f"{summary['parameters']:,} parameters, {operations(summary)} a step",
        "time": f"{seconds['train']:.1f} s to train, {seconds['compile']:.1f} s to compile, "
        f"{summary['peak_memory'] / 2**30:.2f} GiB at most",
        "folder": str(folder),
        "next": shlex.join(["python", "-m", "results.table", str(folder)]),
    }
    return "\n".join([title, *columns(lines)])


def columns(lines: Facts) -> list[str]:
    width = max(map(len, lines), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in lines.items() if value != ""]


def operations(facts: Facts) -> str:
    count = facts["flops_per_step"] or 0
    power = min(int(math.log10(max(count, 1)) // 3), 5)
    return f"{count / 1000**power:.3g} {' kMGTP'[power].strip()}FLOP"


class Progress:
    """A line that is written over on a terminal, and every ten seconds a new one elsewhere."""

    def __init__(self, steps: int, select: Facts, out: TextIO):
        self._steps, self._out, self._terminal = steps, out, out.isatty()
        self._means = {"train": ["loss"], select["split"]: select["metrics"]}
        self._first: tuple[int, float] | None = None  # step and time of the first rows seen
        self._shown = -math.inf

    def show(self, rows: Sequence[Row]) -> None:
        now = time.monotonic()
        if now - self._shown < (0.1 if self._terminal else 10):
            return
        step = max(row["step"] for row in rows)
        self._first, self._shown = self._first or (step, now), now
        words = [f"step {step}/{self._steps}"]
        if step > self._first[0]:
            pace = (step - self._first[0]) / (now - self._first[1])
            left = (self._steps - step) / pace
            words += [f"{left:.0f} s left" if left < 120 else f"{left / 60:.0f} min left"]
            words += [f"{pace:.1f} steps/s"]
        for split, metrics in self._means.items():
            found = {m: [r[m] for r in rows if r["split"] == split] for m in metrics}
            finite = {m: [v for v in values if v is not None] for m, values in found.items()}
            means = [f"{m} {np.mean(values):.4f}" for m, values in finite.items() if values]
            words += [" ".join([split, *means])] if means else []
        words.append(f"still training {sum(row['split'] == 'train' for row in rows)}")
        line = "  ".join(words)
        if self._terminal:
            line = "\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1]
        print(line, end="" if self._terminal else "\n", file=self._out, flush=True)

    def close(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=self._out, flush=True)


def dry_run(about: Facts, facts: Facts) -> str:
    """What would be run: settings, data, parameters, a batch, cost."""
    settings = flat(about["config"])
    parts = {
        "settings": {k: repr(tuple(v) if type(v) is list else v) for k, v in settings.items()},
        "data": about["data"],
        f"parameters: {facts['parameters']:,}": facts["shapes"],
        "a batch": facts["batch"],
        "cost": {"a step of one run": operations(facts), "device": about["device"]},
    }
    return "\n\n".join("\n".join([title, *columns(lines)]) for title, lines in parts.items())
