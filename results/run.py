"""A run's folder: what was asked, every row of metrics, checkpoints, and what came out.

    config.json      the resolved config, its file and overrides, versions, device, data, checksum
    metrics.jsonl    the record: one row per step, run and split, ascending
    checkpoints/     the last two states (Orbax)
    summary.json     what came out; a folder without it, or not "finished", can be resumed
    outputs.npz      what plots need: test outputs of every run, attention and features of the best
    events.*         the rows' means over runs, for TensorBoard: a view, made anew from the record

Rows reach the disk before the checkpoint of their step, and a resume cuts those that come after
the state it found: killed at any moment, a run loses and doubles nothing.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

Row = dict[str, Any]
FREE = ("steps", "save", "expected.")  # what a resume may change
LOCK = ".lock"
ENDED = ("finished", "failed")


def status(path: Path) -> str:
    """ "absent" (or empty), "foreign" (other files), "finished", "failed" or "unfinished"."""
    if not path.is_dir():
        return "foreign" if path.exists() else "absent"
    if not (path / "config.json").exists():
        return "absent" if {p.name for p in path.iterdir()} <= {LOCK} else "foreign"
    with contextlib.suppress(OSError, ValueError):
        found = read_json(path / "summary.json")["status"]
        return found if found in ENDED else "unfinished"
    return "unfinished"


class Folder(contextlib.AbstractContextManager):
    """An open run folder, locked against other processes while it is a context."""

    def __init__(self, path: Path, readonly: bool = False):
        self.path, self._readonly = path, readonly
        self.about: Mapping[str, Any] = {}
        self._saved_at, self._saved_step = time.monotonic(), -1
        self._rows: Any = None
        self._events: Any = None
        self._manager: Any = None
        self._lock = FileLock(path / LOCK)
        if not readonly:
            path.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise ValueError(f"{path} is in use by another process") from None

    def __exit__(self, *_: object) -> None:
        for resource in (self._rows, self._events, self._manager):
            if resource is not None:
                resource.close()
        self._lock.release()

    @classmethod
    def open(
        cls, path: Path, about: Mapping[str, Any], resume: bool = False, overwrite: bool = False
    ) -> "Folder":
        """A new run, or with `resume` the one that is there. ValueError if that is not to be."""
        known = status(path)
        if known == "foreign":
            raise ValueError(f"--workdir={path} holds files that are no run's: name another folder")
        if resume:
            about = _continued(path, about)
        elif known != "absent" and not overwrite:
            raise ValueError(f"{path} holds a run ({known}): say --resume or --overwrite")
        folder = cls(path)
        (path / "summary.json").unlink(missing_ok=True)  # first: it is of what was
        if not resume:  # what is ours goes, what anybody else put there stays
            shutil.rmtree(path / "checkpoints", ignore_errors=True)
            for old in (path / "metrics.jsonl", path / "outputs.npz", *path.glob("events.*")):
                old.unlink(missing_ok=True)
        folder.about = about
        write_json(path / "config.json", about)
        return folder

    @classmethod
    def is_done(cls, path: Path, about: Mapping[str, Any]) -> bool:
        """Whether nothing is left to resume: the run has ended and no more steps are asked for."""
        old = read_json(path / "config.json")["config"] if status(path) in ENDED else None
        return old is not None and _continued(path, about)["config"]["steps"] <= old["steps"]

    def append(self, rows: Sequence[Row]) -> None:
        if self._rows is None:
            self._rows = open(self.path / "metrics.jsonl", "a", encoding="utf-8")
        self._rows.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        self._rows.flush()
        self._show(rows)

    def save(self, step: int, state: Any, every: float = 0.0) -> None:
        """A checkpoint, unless there is one of this step or younger than `every` seconds."""
        if step == self._saved_step or time.monotonic() - self._saved_at < every:
            return
        import orbax.checkpoint as ocp  # here and below, since it is slow to import

        if self._rows is not None:
            os.fsync(self._rows.fileno())
        self._checkpoints().save(step, args=ocp.args.StandardSave(state))
        self._saved_at, self._saved_step = time.monotonic(), step

    def restore(self, like: Any) -> Any:
        """The newest state that can be read, shaped as `like`; None if none was ever saved.

        A damaged one is named and passed over. Rows after the state found are cut.
        """
        import orbax.checkpoint as ocp

        manager = self._checkpoints()
        steps = sorted(manager.all_steps(), reverse=True)
        for step in steps:
            try:
                with _quiet():
                    state = manager.restore(step, args=ocp.args.StandardRestore(like))
            except Exception as e:  # Orbax raises another type for every part that is damaged
                if self._readonly:
                    raise ValueError(f"checkpoint {step} of {self.path} cannot be read") from e
                say(f"checkpoint {step} is damaged ({type(e).__name__}): taking the one before")
                continue
            if not self._readonly:
                for damaged in steps[: steps.index(step)]:
                    manager.delete(damaged)
                self._cut(step)
            self._saved_step = step
            return state
        if steps or self._readonly:
            raise ValueError(f"{self.path}: no checkpoint can be read; --overwrite starts anew")
        self._cut(0)
        return None

    def finish(self, summary: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        partial = self.path / "outputs.tmp.npz"
        np.savez_compressed(partial, **outputs)
        os.replace(partial, self.path / "outputs.npz")
        write_json(self.path / "summary.json", summary)

    def _checkpoints(self) -> Any:
        if self._manager is None:
            import orbax.checkpoint as ocp

            if self._readonly:
                options = ocp.CheckpointManagerOptions(read_only=True)
            else:
                options = ocp.CheckpointManagerOptions(
                    max_to_keep=2, enable_async_checkpointing=False, cleanup_tmp_directories=True
                )
            path = (self.path / "checkpoints").absolute()
            self._manager = ocp.CheckpointManager(path, options=options)
        return self._manager

    def _cut(self, step: int) -> None:
        """Drops the rows after `step`, and a last one that was half written."""
        kept = [row for row in read_rows(self.path) if row["step"] <= step]
        partial = self.path / "metrics.tmp.jsonl"
        partial.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        os.replace(partial, self.path / "metrics.jsonl")
        for events in self.path.glob("events.*"):
            events.unlink()
        self._show(kept)

    def _show(self, rows: Sequence[Row]) -> None:
        if self._events is None:
            from tensorboardX import SummaryWriter

            self._events = SummaryWriter(str(self.path))
        values = defaultdict(list)
        for row in rows:
            for name, value in row.items():
                if isinstance(value, float):
                    values[row["step"], f"{row['split']}/{name}"].append(value)
        for (step, tag), found in values.items():
            self._events.add_scalar(tag, np.mean(found), step)


def _continued(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a run that goes on: ValueError where its settings or data are others."""
    if status(path) == "absent":
        raise ValueError(f"--resume: there is no run in {path}")
    old = read_json(path / "config.json")
    was, now = (flat({**it["config"], "data": it["data"]}) for it in (old, about))
    for name in sorted(now | was):
        one, other = now.get(name), was.get(name)
        if one != other and not name.startswith(FREE):
            raise ValueError(f"--resume: {name} = {one!r}, but the run has {other!r}")
    for name in ("versions", "device"):
        if about[name] != old[name]:
            say(f"another {name} than before: the numbers will be close, not equal bit for bit")
    return {**about, "date": old["date"]}


def read_rows(path: Path) -> list[Row]:
    """The rows of a run folder; a last line that was half written is left out."""
    with contextlib.suppress(FileNotFoundError):
        lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]
    return []


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise ValueError(f"{path} is damaged: {e}") from e


def write_json(path: Path, content: Any) -> None:
    """All or nothing: a reader never sees a half-written file."""
    partial = path.with_suffix(".tmp")
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    partial.write_text(text + "\n", encoding="utf-8")
    os.replace(partial, path)


def number(value: Any) -> float | None:
    """A float32 as JSON has it: the shortest decimal that means it; null if it is not finite."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def flat(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """{"model": {"heads": 8}} -> {"model.heads": 8}."""
    pairs: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            pairs |= flat(value, f"{path}{key}.")
        else:
            pairs[path + key] = value
    return pairs


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides the pages that Orbax's coroutines print to stderr about a damaged file."""
    with open(os.devnull, "w") as void, contextlib.redirect_stderr(void):
        yield
