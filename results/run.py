"""A run's folder: what was asked, every row of metrics, checkpoints, and what came out.

    config.json      the resolved config, its file and overrides, versions, device, data, checksum
    metrics.jsonl    the record: one row per step, run and split, ascending
    checkpoints/     the last two states (Orbax)
    summary.json     what came out; until it is there, the run can be resumed
    outputs.npz      what plots need: test outputs of every run, attention and features of the best
    events.*         the rows' means over runs, for TensorBoard: a view, made anew from the record

Rows reach the disk before the checkpoint of their step, and a resume cuts those that come after
the state it found: killed at any moment, a run loses and doubles nothing. A row's "seconds" is the
time that training had taken when it was written, summed over all sittings.
"""

import contextlib
import functools
import io
import json
import operator
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

Row = dict[str, Any]
Facts = Mapping[str, Any]
FREE = ("steps", "save", "expected.")  # what a resume may change
LOCK = ".lock"
ENDED = ("finished", "failed")

# What these files have to say, whoever reads them.
ROW = "step split seconds".split()
ABOUT = "experiment command date device overrides versions config.steps config.every".split()
ABOUT += "data.dataset data.split data.checksum".split()
SUMMARY = "status experiment system data.dataset data.split changed tested n runs".split()
SUMMARY += "parameters flops_per_step peak_memory seconds.compile seconds.train".split()
SUMMARY += [f"expected.{name}" for name in ("metric", "value", "std", "low", "high", "source")]


class DamagedError(ValueError):
    """A file of a run cannot be read, or lacks what it has to say. The message names the file."""


class Folder(contextlib.ExitStack):
    """An open run folder, locked against other processes until it is closed."""

    def __init__(self, path: Path, readonly: bool = False):
        super().__init__()
        self.path, self._readonly = path, readonly
        self.seconds = 0.0  # what training had taken when the state restored was saved
        self._saved_at, self._saved_step = time.monotonic(), -1
        if not readonly:
            path.mkdir(parents=True, exist_ok=True)
            try:
                self.enter_context(FileLock(path / LOCK, blocking=False))
            except Timeout:
                raise ValueError(f"{path} is in use by another process") from None

    @classmethod
    def open(cls, path: Path, about: Facts, resume: bool = False, overwrite: bool = False) -> Self:
        """The folder of a new run, or with `resume` of the one that is there.

        Raises ValueError if a run would be lost, or go on with other settings or data.
        """
        known = status(path)
        if known == "foreign":
            raise ValueError(f"--workdir={path} holds files that are no run's: name another folder")
        if resume:
            old, _ = _same_run(path, about)
            for name in ("versions", "device"):
                if about[name] != old[name]:
                    say(f"{name} changed: the numbers will be close, not equal bit for bit")
            about = {**about, "date": old["date"]}
            read_rows(path)  # a damaged record is an error before anything is changed
        elif known != "absent" and not overwrite:
            raise ValueError(f"{path} holds a run ({known}): say --resume or --overwrite")
        folder = cls(path)
        (path / "summary.json").unlink(missing_ok=True)  # first: it would be about the old run
        if not resume:  # what Lineage wrote goes, other files stay
            shutil.rmtree(path / "checkpoints", ignore_errors=True)
            for ours in (path / "metrics.jsonl", path / "outputs.npz", *path.glob("events.*")):
                ours.unlink(missing_ok=True)
        write_json(path / "config.json", about)
        return folder

    @classmethod
    def is_done(cls, path: Path, about: Facts) -> bool:
        """Whether nothing is left to resume: the run has ended and no more steps are asked for."""
        old, summary = _same_run(path, about)
        return bool(summary) and about["config"]["steps"] <= old["config"]["steps"]

    @functools.cached_property
    def about(self) -> dict[str, Any]:
        return read_json(self.path / "config.json", ABOUT)

    def append(self, rows: Sequence[Row]) -> None:
        with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json_lines(rows))
        self._show(rows)

    def save(self, step: int, state: Any, every: float = 0.0) -> None:
        """A checkpoint, unless there is one of this step or younger than `every` seconds."""
        if step == self._saved_step or time.monotonic() - self._saved_at < every:
            return
        import orbax.checkpoint as ocp  # here and below, since it is slow to import

        with open(self.path / "metrics.jsonl", "a") as file:
            os.fsync(file.fileno())
        self._checkpoints.save(step, args=ocp.args.StandardSave(state))
        self._saved_at, self._saved_step = time.monotonic(), step

    def restore(self, like: Any) -> Any:
        """The newest state that can be read, shaped as `like`; None if none was ever saved.

        A damaged checkpoint is named and passed over. Rows after the state found are cut.
        """
        import orbax.checkpoint as ocp

        steps = sorted(self._checkpoints.all_steps(), reverse=True)
        for i, step in enumerate(steps):
            try:
                with contextlib.redirect_stderr(io.StringIO()):  # of a damaged file it prints pages
                    state = self._checkpoints.restore(step, args=ocp.args.StandardRestore(like))
            except Exception as e:  # Orbax raises another type for every part that is damaged
                if self._readonly:
                    raise DamagedError(f"checkpoint {step} of {self.path} cannot be read") from e
                say(f"checkpoint {step} is damaged ({type(e).__name__}): taking the one before")
                continue
            for damaged in steps[:i]:
                self._checkpoints.delete(damaged)
            if not self._readonly:
                self._cut(step)
            self._saved_step = step
            return state
        if steps or self._readonly:
            raise DamagedError(f"{self.path}: no checkpoint can be read; --overwrite starts anew")
        self._cut(0)
        return None

    def finish(self, summary: Facts, outputs: Facts) -> None:
        np.savez_compressed(self.path / "outputs.npz", **outputs)
        write_json(self.path / "summary.json", summary)  # last: it says that all is there

    @functools.cached_property
    def _checkpoints(self) -> Any:
        import orbax.checkpoint as ocp

        kept = {"max_to_keep": 2, "cleanup_tmp_directories": True, "read_only": self._readonly}
        options = ocp.CheckpointManagerOptions(**kept, enable_async_checkpointing=False)
        path = (self.path / "checkpoints").absolute()
        return self.enter_context(ocp.CheckpointManager(path, options=options))

    @functools.cached_property
    def _events(self) -> Any:
        from tensorboardX import SummaryWriter

        return self.enter_context(SummaryWriter(str(self.path)))

    def _cut(self, step: int) -> None:
        """Drops the rows after `step`, and a last one that was half written."""
        kept = [row for row in read_rows(self.path) if row["step"] <= step]
        last = kept[-1] if kept else {"step": 0, "seconds": 0.0}
        self.seconds = last["seconds"]
        if step - last["step"] >= min(step or 1, self.about["config"]["every"]):  # a whole chunk
            say(f"{self.path}: the rows from step {last['step'] + 1} to {step} are missing")
        write(self.path / "metrics.jsonl", json_lines(kept))
        for events in self.path.glob("events.*"):
            events.unlink()
        self._show(kept)

    def _show(self, rows: Iterable[Row]) -> None:
        """TensorBoard's means over runs, at the steps at which every live run has a row."""
        config, values = self.about["config"], defaultdict(list)
        for row in rows:
            if row["step"] % config["every"] == 0 or row["step"] == config["steps"]:
                for name, value in row.items():
                    if isinstance(value, float) and name != "seconds":
                        values[row["step"], f"{row['split']}/{name}"].append(value)
        for (step, tag), found in values.items():
            self._events.add_scalar(tag, np.mean(found), step)


def _same_run(path: Path, about: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `read_run` finds; raises ValueError unless it has these settings and this data."""
    old, summary = read_run(path)
    if not old:
        raise ValueError(f"--resume: there is no run in {path}")
    was, now = (flat({**it["config"], "data": it["data"]}) for it in (old, about))
    for name in sorted(now | was):
        one, other = now.get(name), was.get(name)
        if one != other and not name.startswith(FREE):
            raise ValueError(f"--resume: {name} = {one!r}, but the run has {other!r}")
    return old, summary


def status(path: Path) -> str:
    """ "absent" (or empty), "foreign" (other files), "damaged", "unfinished", or as it ended."""
    try:
        about, summary = read_run(path)
    except DamagedError:
        return "damaged"
    if about:
        return summary.get("status", "unfinished")
    empty = not path.exists() or path.is_dir() and {p.name for p in path.iterdir()} <= {LOCK}
    return "absent" if empty else "foreign"


def read_run(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A folder's config.json, {} if no run is there, and summary.json, {} until it has ended."""
    files = path / "config.json", path / "summary.json"
    about = read_json(files[0], ABOUT) if files[0].exists() else {}
    if not about or not files[1].exists():
        return about, {}
    metric = read_json(files[1], SUMMARY)["expected"]["metric"]
    return about, read_json(files[1], [f"splits.test.{metric}.values"])


def read_rows(path: Path) -> list[Row]:
    """The rows of a run folder; a last line that was half written is left out."""
    file = path / "metrics.jsonl"
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    whole = (line for line in lines if line.endswith(b"\n"))
    return [parse(line, ROW, f"{file}, line {i}") for i, line in enumerate(whole, 1)]


def read_json(path: Path, names: Sequence[str] = ()) -> Any:
    return parse(path.read_bytes(), names, str(path))


def parse(text: bytes, names: Sequence[str], source: str) -> Any:
    """The content of a JSON text. Raises DamagedError unless it has these names ("data.split")."""
    try:
        found = json.loads(text)
        for name in names:
            functools.reduce(operator.getitem, name.split("."), found)
        return found
    except (ValueError, LookupError, TypeError) as e:
        raise DamagedError(f"{source} is damaged: {type(e).__name__}: {e}") from e


def write_json(path: Path, content: Any) -> None:
    write(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def json_lines(items: Iterable[Any]) -> str:
    return "".join(json.dumps(i, ensure_ascii=False, allow_nan=False) + "\n" for i in items)


def write(path: Path, text: str) -> None:
    """All or nothing: a reader never sees a half-written file."""
    partial = path.with_name(f"{path.name}.tmp")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def number(value: Any) -> float | None:
    """A float32 as JSON has it: the shortest decimal that means it; null if it is not finite."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def flat(config: Any, path: str = "") -> dict[str, Any]:
    """{"model": {"heads": 8}} -> {"model.heads": 8}."""
    if not isinstance(config, Mapping):
        return {path: config}
    parts = [flat(value, f"{path}.{key}".lstrip(".")) for key, value in config.items()]
    return {name: value for part in parts for name, value in part.items()}


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
