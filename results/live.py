"""A sweep while it runs: what its populations have reached, a table on a terminal, else lines."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from configs import lower_is_better
from results.files import ROW, FolderError, parse
from results.report import in_words

SHOWN = 20  # lines of the table, which is to fit a terminal
EVERY = 30.0  # seconds between lines where there is no terminal


class Reached(NamedTuple):
    """What the rows of a run that is still training say."""

    at: float  # when, by the monotonic clock
    step: int
    share: float  # of its steps
    best: list[float | None]  # of each point, the mean over runs of their best validation so far
    top: float | None  # the best of these


class Tail:
    """The rows of a run folder, read as they are written. size: the runs of a point."""

    def __init__(self, folder: Path, points: int, size: int, metric: str, steps: int):
        self._file, self._points, self._size = folder / "metrics.jsonl", points, size
        self._metric, self._steps = metric, steps
        self._better = min if lower_is_better(metric) else max
        self._at, self._step = 0, 0
        self._best: dict[int, float] = {}

    def read(self) -> Reached:
        text = b""
        if self._file.exists():
            if self._file.stat().st_size < self._at:  # a resume has cut it
                self._at = 0
            with open(self._file, "rb") as file:
                file.seek(self._at)
                text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # the last line may be half written
        self._at += len(whole)
        for line in whole.splitlines():
            try:
                row = parse(line, ["run", *ROW], str(self._file))
            except FolderError:  # train.py will say so, when it reads it
                break
            self._step = row["step"]
            value = row.get(self._metric)
            if row["split"] == "validation" and value is not None:
                self._best[row["run"]] = self._better(value, self._best.get(row["run"], value))
        means: list[float | None] = []
        for i in range(self._points):
            own = range(i * self._size, (i + 1) * self._size)
            found = [self._best[run] for run in own if run in self._best]
            means.append(float(np.mean(found)) if found else None)
        top = self._better((mean for mean in means if mean is not None), default=None)
        return Reached(time.monotonic(), self._step, self._step / self._steps, means, top)


class Entry(NamedTuple):
    """A population as the board shows it."""

    name: str
    runs: int
    state: str  # "waiting", "training", "finished", "failed", "pruned", "elsewhere"
    share: float  # of its steps
    best: float | None  # the best of its points in validation


class Board:
    """Where a sweep stands, shown anew at every call of `show`; lines tell of what has changed."""

    def __init__(self, title: str, metric: str, total: int, out: TextIO):
        self._title, self._metric, self._total, self._out = title, metric, total, out
        self._began, self._first = time.monotonic(), -1.0
        self._known: dict[str, str] = {}
        self._told = -EVERY
        self._live: Any = None
        if out.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=out), auto_refresh=False, transient=True)
            self._live.start()

    def show(self, entries: Sequence[Entry]) -> None:
        now = time.monotonic()
        changed = [e for e in entries if e.state not in (self._known.get(e.name), "waiting")]
        self._known |= {entry.name: entry.state for entry in changed}
        if self._live:
            self._live.update(self._table(entries), refresh=True)
            return
        for entry in changed:
            print(self._words(entry), file=self._out, flush=True)
        if now - self._told >= EVERY:
            self._told = now
            print(self._sum(entries), file=self._out, flush=True)

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def _words(self, entry: Entry) -> str:
        best = "" if entry.best is None else f", best {in_words(self._metric, entry.best)}"
        share = f" {100 * entry.share:.0f} %" if entry.state == "training" and entry.share else ""
        return f"{entry.name}: {entry.state}{share} ({entry.runs} runs{best})"

    def _sum(self, entries: Sequence[Entry]) -> str:
        done = sum(entry.runs * entry.share for entry in entries)
        self._first = done if self._first < 0 else self._first
        took = time.monotonic() - self._began
        words = f"{self._title}: {100 * done / max(self._total, 1):.0f} % of {self._total} runs"
        if done > self._first:
            left = took * (self._total - done) / (done - self._first)
            words += f", {left:.0f} s" if left < 120 else f", {left / 60:.0f} min"
            words += " left at most"  # runs may stop early
        return words

    def _table(self, entries: Sequence[Entry]) -> Any:
        from rich.table import Table

        order = ("training", "failed", "elsewhere", "finished", "pruned", "waiting")
        shown = sorted(entries, key=lambda e: order.index(e.state))[:SHOWN]
        table = Table(title=self._sum(entries), title_justify="left", box=None)
        for head in ("population", "runs", "", "steps", f"validation {self._metric}"):
            table.add_column(head, justify="right" if head in ("runs", "steps") else "left")
        for entry in shown:
            best = "" if entry.best is None else in_words(self._metric, entry.best)
            share = f"{100 * entry.share:.0f} %"
            table.add_row(entry.name, str(entry.runs), entry.state, share, best)
        if len(entries) > SHOWN:
            table.add_row(f"and {len(entries) - SHOWN} more")
        return table
