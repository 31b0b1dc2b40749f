"""A run's folder: what was asked, every row of metrics, checkpoints, and what came out.

    config.json      the resolved config, its file and overrides, versions, device, data, checksum
    metrics.jsonl    the record: one row per step, run and split, ascending
    checkpoints/     the last two states (Orbax)
    summary.json     what came out; until it is there, the run can be resumed
    outputs.npz      what plots need: test outputs of every run, attention and features of the best
    events.*         the rows' means over runs, for TensorBoard: a view, made anew from the record
    points/          the same of each point, if there are several
    hparams/         settings and what they came to, for TensorBoard's table of runs

Of several processes the first writes all of this, but for its share of a checkpoint.

Rows reach the disk before the checkpoint of their step, and a resume cuts those that come after
the state it found: killed at any moment, a run loses and doubles nothing. A row's "seconds" is the
time that training had taken when it was written, summed over all sittings.
"""

import contextlib
import functools
import hashlib
import io
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

import devices
from configs.check import flat
from devices import say
from results import files, points
from results.files import Facts, FolderError, Row

FREE = ("steps", "save", "expected.")  # what a resume may change
SEAL = "sha256"  # in a checkpoint: Orbax reads data with a flipped bit as it is


class Folder(contextlib.ExitStack):
    """An open run folder, locked against other processes until it is closed."""

    def __init__(self, path: Path, readonly: bool = False):
        super().__init__()
        self.path, self._readonly, self._leads = path, readonly, devices.leads()
        self._writers: dict[int, Any] = {}
        self.seconds = 0.0  # what training had taken when the state restored was saved
        self._saved_at, self._saved_step = time.monotonic(), -1
        if self._leads and not readonly:
            path.mkdir(parents=True, exist_ok=True)
            try:
                self.enter_context(FileLock(path / files.LOCK, blocking=False))
            except Timeout:
                raise ValueError(f"{path} is in use by another process") from None

    @classmethod
    def open(cls, path: Path, about: Facts, resume: bool = False, overwrite: bool = False) -> Self:
        """The folder of a new run, or with `resume` of the one that is there.

        Raises ValueError if a run would be lost, or go on with other settings or data.
        """
        if not devices.leads():  # the first process opens it, and says so if it cannot
            folder = cls(path)
            folder.about = about
            return folder
        known = files.status(path)
        if known == "foreign":
            raise ValueError(f"--workdir={path} holds files that are no run's: name another folder")
        if resume:
            old, _ = _same_run(path, about)
            for name in ("versions", "device", "code"):
                if about[name] != old[name]:
                    say(f"{name} changed since the run began: the numbers may change too")
            codes = dict.fromkeys([*old["code"].split("+"), about["code"]])
            about = {**about, "date": old["date"], "code": "+".join(codes)}
        elif known != "absent" and not overwrite:
            raise ValueError(f"{path} holds a run ({known}): say --resume or --overwrite")
        folder = cls(path)
        folder.about = about
        if not resume:  # what Lineage wrote goes, other files stay
            (path / "summary.json").unlink(missing_ok=True)  # first: it is about the old run
            shutil.rmtree(path / "checkpoints", ignore_errors=True)
            names = *files.PICTURES, *files.SWEEP_PICTURES
            pictures = [f"{name}.{kind}" for name in names for kind in ("png", "pdf")]
            for ours in ("metrics.jsonl", "outputs.npz", *pictures):
                (path / ours).unlink(missing_ok=True)
            folder._forget_events()
            folder._begin()
        return folder

    @classmethod
    def is_done(cls, path: Path, about: Facts) -> bool:
        """Whether nothing is left to resume: the run has ended and no more steps are asked for."""
        old, summary = _same_run(path, about)
        return bool(summary) and about["config"]["steps"] <= old["config"]["steps"]

    @functools.cached_property
    def about(self) -> Facts:
        return files.read_run(self.path)[0]

    def _begin(self) -> None:
        """From here on the folder is of the run that `about` describes, which has not ended."""
        (self.path / "summary.json").unlink(missing_ok=True)
        files.write_json(self.path / "config.json", self.about)

    def append(self, rows: Sequence[Row]) -> None:
        if not self._leads:
            return
        with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(files.json_lines(rows))
        self._show(rows)

    def save(self, step: int, state: Any, every: float = 0.0) -> None:
        """A checkpoint, unless there is one of this step or younger than `every` seconds."""
        young = time.monotonic() - self._saved_at < every
        if step == self._saved_step or every and devices.every(young)[0]:
            return
        import orbax.checkpoint as ocp  # here and below, since it is slow to import

        if self._leads:
            with open(self.path / "metrics.jsonl", "a") as file:
                os.fsync(file.fileno())
        try:
            self._checkpoints.save(step, args=ocp.args.StandardSave(state))
        except ValueError as e:  # Orbax's word for a disk that is full
            raise OSError(f"{self.path}: checkpoint {step} cannot be written: {e}") from e
        if self._leads:  # all processes have saved: Orbax waits for them
            checkpoint = self.path / "checkpoints" / str(step)
            files.write(checkpoint / SEAL, digest(checkpoint))
        self._saved_at, self._saved_step = time.monotonic(), step

    @devices.agreement()
    def restore(self, like: Any) -> Any:
        """The newest state that can be read, shaped as `like`; None if none was ever saved.

        A damaged checkpoint is named and passed over. Rows after the state found are cut.
        """
        import orbax.checkpoint as ocp

        steps = devices.first(sorted(self._checkpoints.all_steps(), reverse=True))
        for i, step in enumerate(steps):
            try:
                with devices.agreement():  # before all read: of one that is damaged, nobody does
                    self._check(step)
                # Of a damaged file Orbax prints pages.
                with devices.agreement(), contextlib.redirect_stderr(io.StringIO()):
                    saved = self._checkpoints.item_metadata(step)
                    if fits := shapes(saved) == shapes(like):
                        state = self._checkpoints.restore(step, args=ocp.args.StandardRestore(like))
            except Exception as e:  # Orbax raises another type for every part that is damaged
                if self._readonly:
                    raise FolderError(f"checkpoint {step} of {self.path} cannot be read") from e
                say(f"checkpoint {step} is damaged and passed over ({type(e).__name__})")
                continue
            if not fits:
                raise FolderError(f"{self.path}: the state saved is of another model or optimizer")
            for damaged in steps[:i]:
                self._checkpoints.delete(damaged)
            self._cut(step)
            self._saved_step = step
            return state
        if steps or self._readonly:
            hint = "" if self._readonly else "; --overwrite starts anew"
            raise FolderError(f"{self.path}: no checkpoint can be read{hint}")
        self._cut(0)
        return None

    def finish(self, summary: Facts, outputs: Facts) -> None:
        if not self._leads:
            return
        np.savez_compressed(self.path / "outputs.npz", **outputs)
        for i, part in enumerate(points.split(self.about, summary)):
            self._show_settings(i, *part)
        files.write_json(self.path / "summary.json", summary)  # last: it says that all is there

    def _check(self, step: int) -> None:
        """Raises FolderError if a checkpoint's bytes are not those that were saved."""
        checkpoint = self.path / "checkpoints" / str(step)
        seal = checkpoint / SEAL  # absent if the run was killed before it was written
        if self._leads and seal.exists() and seal.read_text() != digest(checkpoint):
            raise FolderError("its bytes are not those that were saved")

    @functools.cached_property
    def _checkpoints(self) -> Any:
        import orbax.checkpoint as ocp
        from absl import logging

        logging.set_verbosity(logging.FATAL)  # Orbax has forty lines to say of every checkpoint
        kept = {"max_to_keep": 2, "cleanup_tmp_directories": True, "read_only": self._readonly}
        options = ocp.CheckpointManagerOptions(**kept, enable_async_checkpointing=False)
        path = (self.path / "checkpoints").absolute()
        # The kind is told, since a guess from a damaged checkpoint would hold for all.
        kind = ocp.StandardCheckpointHandler()
        return self.enter_context(ocp.CheckpointManager(path, options=options, item_handlers=kind))

    def _events(self, point: int) -> Any:
        """TensorBoard's file of a point; the only point's is the folder's own."""
        if point not in self._writers:
            from tensorboardX import SummaryWriter

            several = len(self.about["points"]) > 1
            place = self.path / "points" / f"{point:03d}" if several else self.path
            self._writers[point] = self.enter_context(SummaryWriter(str(place)))
        return self._writers[point]

    def _forget_events(self) -> None:
        for events in self.path.glob("events.*"):
            events.unlink()
        for place in ("points", "hparams"):
            shutil.rmtree(self.path / place, ignore_errors=True)

    def _show_settings(self, point: int, own: Facts, came: Facts) -> None:
        """TensorBoard's HParams: a point's settings, and what it came to in validation."""
        known = flat({name: own["config"][name] for name in ("task", "model", "optimizer")})
        plain = {k: v if isinstance(v, int | float | str) else str(v) for k, v in known.items()}
        found = {
            f"best/{metric}": of["mean"]
            for metric, of in came["splits"].get("validation", {}).items()
            if isinstance(of, dict) and of["mean"] is not None
        }
        self._events(point).add_hparams(plain, found, name="hparams")

    def _cut(self, step: int) -> None:
        """Drops the rows after `step`, and a last one that was half written."""
        if self._readonly or not self._leads:
            return
        kept = [row for row in files.read_rows(self.path) if row["step"] <= step]
        self._begin()
        last = kept[-1] if kept else {"step": 0, "seconds": 0.0}
        self.seconds = last["seconds"]
        if step - last["step"] >= min(step or 1, self.about["config"]["every"]):  # a whole chunk
            say(f"{self.path}: the rows from step {last['step'] + 1} to {step} are missing")
        files.write(self.path / "metrics.jsonl", files.json_lines(kept))
        self._forget_events()
        self._show(kept)

    def _show(self, rows: Iterable[Row]) -> None:
        """TensorBoard's means over runs, at the steps at which every live run has a row."""
        config, values = self.about["config"], defaultdict(list)
        hypers = [p.items() - {"seed": p.get("seed")}.items() for p in self.about["points"]]
        for row in rows:
            if row["step"] % config["every"] == 0 or row["step"] == config["steps"]:
                point = next(i for i, hyper in enumerate(hypers) if hyper <= row.items())
                for name, value in row.items():
                    if isinstance(value, float) and name != "seconds" and "." not in name:
                        values[point, f"{row['split']}/{name}", row["step"]].append(value)
        for (point, tag, step), found in values.items():
            self._events(point).add_scalar(tag, np.mean(found), step)


def _same_run(path: Path, about: Facts) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `read_run` finds; raises ValueError unless it has these settings and this data."""
    old, summary = files.read_run(path)
    if not old:
        raise ValueError(f"--resume: there is no run in {path}")
    known = ({**it["config"], "data": it["data"], "--points": it["points"]} for it in (old, about))
    was, now = map(flat, known)
    reached = max((row["step"] for row in files.read_rows(path)), default=0)
    if about["config"]["steps"] < reached:
        raise ValueError(f"--resume: steps = {about['config']['steps']}, but the run has {reached}")
    whole = was.get("optimizer.schedule") in ("linear", "cosine")  # they end with the last step
    for name in sorted(now | was):
        one, other = now.get(name), was.get(name)
        if one != other and (not name.startswith(FREE) or whole and name == "steps"):
            raise ValueError(f"--resume: {name} = {one!r}, but the run has {other!r}")
    return old, summary


def digest(folder: Path) -> str:
    """The SHA-256 of all files in a folder, names and contents, but for the seal that holds it."""
    total = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SEAL):
        total.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return total.hexdigest()


def shapes(tree: Any) -> dict[str, str]:
    """The types and shapes of a tree's arrays by their paths, whatever the containers' kinds."""
    from jax.tree_util import keystr, tree_leaves_with_path

    leaves = tree_leaves_with_path(tree)
    return {keystr(path, simple=True): f"{a.dtype} {a.shape}" for path, a in leaves}
