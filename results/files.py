"""The files of a run folder, read and written: JSON that is whole, or an error that names it."""

import functools
import json
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
Facts = Mapping[str, Any]
LOCK = ".lock"
MANIFEST = "sweep.json"  # of a sweep's folder
PARTIAL = ".partial"  # of a file that is being written
ENDED = ("finished", "failed")
# Of a run, by plot.py; and of a sweep, these too.
PICTURES = ("curves", "seeds", "confusion", "features", "attention", "graph", "ranking")
SWEEP_PICTURES = ("setting", "heatmap", "parallel", "importance", "parameters", "seconds")

# What these files have to say, whoever reads them.
ROW = "step split seconds".split()
ABOUT = "experiment command date code device overrides versions config.steps config.every".split()
ABOUT += "data.dataset data.split data.checksum".split()
SUMMARY = "status experiment system data.dataset data.split changed tested n runs".split()
SUMMARY += "parameters flops_per_step peak_memory seconds.compile seconds.train".split()
SUMMARY += [f"expected.{name}" for name in ("metric", "value", "std", "low", "high", "source")]


class FolderError(ValueError):
    """A run's file cannot be read, lacks what it has to say, or does not fit; it is named."""


def status(path: Path) -> str:
    """ "absent" (or empty), "foreign" (other files), "damaged", "unfinished", or as it ended."""
    try:
        about, summary = read_run(path)
    except FolderError:
        return "damaged"
    if about:
        return summary.get("status", "unfinished")
    if not path.is_dir():
        return "foreign" if path.exists() else "absent"
    others = [p for p in path.iterdir() if p.name != LOCK and p.suffix != PARTIAL]
    return "foreign" if others else "absent"  # or a run that was killed as it began


def read_run(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A folder's config.json, {} if no run is there, and summary.json, {} until it has ended."""
    config, file = path / "config.json", path / "summary.json"
    about = {"points": [{}], **read_json(config, ABOUT)} if config.exists() else {}
    if not about or not file.exists():
        return about, {}
    text = file.read_bytes()
    metric = parse(text, SUMMARY, str(file))["expected"]["metric"]
    return about, parse(text, [f"splits.test.{metric}.values"], str(file))


def read_rows(path: Path) -> list[Row]:
    """The rows of a run folder; a last line that was half written is left out."""
    file = path / "metrics.jsonl"
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    whole = (line for line in lines if line.endswith(b"\n"))
    return [parse(line, ROW, f"{file}, line {i}") for i, line in enumerate(whole, 1)]


def read_json(path: Path, names: Sequence[str] = ()) -> Any:
    return parse(path.read_bytes(), names, str(path))


def parse(text: bytes, names: Sequence[str], source: str) -> Any:
    """The content of a JSON text. Raises FolderError unless it has these names ("data.split")."""
    try:
        found = json.loads(text)
        for name in names:
            functools.reduce(operator.getitem, name.split("."), found)
        return found
    except (ValueError, LookupError, TypeError) as e:
        raise FolderError(f"{source} is damaged: {type(e).__name__}: {e}") from e


def write_json(path: Path, content: Any) -> None:
    write(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def json_lines(items: Iterable[Any]) -> str:
    return "".join(json.dumps(i, ensure_ascii=False, allow_nan=False) + "\n" for i in items)


def write(path: Path, content: str | bytes) -> None:
    """All or nothing: a reader never sees a half-written file; OSError names it.

    What is there and no plain file, a pipe or a device, is written to as it is.
    """
    data = content.encode() if isinstance(content, str) else content
    path = path.resolve()  # a link stays one
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as e:
        raise OSError(f"{path}: {e.strerror}") from e


def number(value: Any) -> float | None:
    """A float32 as JSON has it: the shortest decimal that means it; null if it is not finite."""
    return float(str(np.float32(value))) if np.isfinite(value) else None


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
