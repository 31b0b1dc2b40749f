"""Pictures of runs, made for a paper's column: what the files of a run folder show.

python -m results.plot DIR                          # of one run, into its folder or --output
python -m results.plot DIR DIR... --output=FOLDER   # of many, or folders of them: what they cost
python -m results.plot SWEEP [--settings=A,B]       # of runs of one experiment that differ

Of one run: curves, seeds, confusion, features, attention; of many: parameters, seconds; of a sweep
both of these, by validation, and curves, heatmap, parallel, importance, or of one setting: setting.
Each is written as PNG and PDF, or as --format says. What a folder has no data for is left out and
named.
"""

import argparse
import io
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from PIL import Image

from results import figures, pictures, sweep_pictures, table
from results.files import MANIFEST, PICTURES, read_json, say, write
from results.report import span
from results.sweeps import NoSweep, Sweep

METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None}}  # no version, no date


def of_run(path: Path) -> dict[str, Figure]:
    """A run's pictures by name; in one line, which there are not, and why."""
    return drawn(pictures, PICTURES, pictures.Run(path), str(path))


def of_sweep(sweep: Sweep, pair: Sequence[int], where: str) -> dict[str, Figure]:
    """The pictures of points that differ in settings; in one line, which there are not, and why."""
    for line in sweep.left:
        say(line)
    study = sweep_pictures.Study(sweep, pair)
    return drawn(sweep_pictures, study.names, study, where)


def drawn(module: Any, names: Iterable[str], known: Any, where: str) -> dict[str, Figure]:
    found, missing = {}, defaultdict(list)
    for name in names:
        try:
            found[name] = getattr(module, name)(known)
        except pictures.Missing as e:
            missing[str(e)].append(name)
    if missing:
        reasons = (f"{', '.join(names)} ({why})" for why, names in missing.items())
        say(f"{where}: left out: {'; '.join(reasons)}")
    return found


def of_many(paths: Sequence[Path]) -> dict[str, Figure]:
    """A metric against what it costs, for each data set, split and metric by itself."""
    kinds: dict[tuple[str, str, str], list[table.Line]] = defaultdict(list)
    for line in sorted(table.read(paths, strict=False), key=table.label):
        if line["mean"] is None:
            say(f"{table.label(line)}: every run failed: left out")
            continue
        kinds[line["task"], line["split"], line["metric"]].append(line)
    if not kinds:
        raise ValueError("every run failed")
    lines = [line for group in kinds.values() for line in group]
    note = f"Mean ± sample standard deviation over {span([line['n'] for line in lines], 'run')}."
    device = f" Measured on: {'; '.join(sorted({line['device'] for line in lines}))}."
    found = {}
    for cost, label, more in (
        ("parameters", "parameters", ""),
        ("seconds", "training time of a run (s)", device),
    ):
        panels = []
        for (task, split, metric), group in sorted(kinds.items()):
            spent = [line["parameters"] if cost == "parameters" else each(line) for line in group]
            points = [
                figures.Point(name(line, group), price, line["mean"], line["std"])
                for line, price in zip(group, spent, strict=True)
            ]
            panels.append(figures.Panel(f"{task}, {split} split", metric, points))
        found[cost] = figures.costs(panels, label, note + more)
    return found


def name(line: table.Line, group: Sequence[table.Line]) -> str:
    """What tells a line from the others: its system, its experiment and settings, or its date."""
    for known in (lambda line: line["system"], table.label):
        if sum(known(other) == known(line) for other in group) == 1:
            return known(line)
    return f"{table.label(line)}, {line['date']}"


def each(line: table.Line) -> float:
    """The seconds that one of a line's runs took, those that failed among them."""
    return line["seconds"] / (line["n"] + len(line["failed"].split(", ")) * bool(line["failed"]))


def main(words: Sequence[str] | None = None) -> int:
    """The command. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m results.plot")
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="DIR", help="run folders, or folders of them")
    add("--output", type=Path, metavar="FOLDER", help="where the pictures go")
    add("--settings", metavar="A,B", help="of a sweep: the two of its heat map")
    add("--format", choices=METADATA, action="append", help="if not said, both")
    asked = parser.parse_args(words)
    try:
        for path in asked.paths:
            if next(path.rglob("config.json"), None) is None:
                raise ValueError(f"{path}: there is no run")
        [first, *more] = asked.paths
        one = not more and (first / "config.json").exists()
        sweep = as_sweep(asked.paths, one, bool(asked.settings))
        pair = sweep.chosen(asked.settings.split(",")) if sweep and asked.settings else []
        if not asked.output and (more or not (one or sweep)):
            raise ValueError("say --output=FOLDER: where the pictures of many runs go")
        folder = asked.output or first
        with matplotlib.style.context(figures.STYLE, after_reset=True):
            if sweep:
                found = of_sweep(sweep, pair, ", ".join(map(str, asked.paths)))
            else:
                found = of_run(first) if one else of_many(asked.paths)
            files = {
                folder / f"{name}.{kind}": content(figure, kind)
                for name, figure in found.items()
                for kind in asked.format or METADATA
            }
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():  # all are made before the first is written
            write(file, data)
            print(file)
    except (OSError, ValueError) as e:
        say(f"error: {' '.join(str(e).split())}")
        return 2
    return 0


def as_sweep(paths: Sequence[Path], one: bool, said: bool) -> Sweep | None:
    """The sweep in these folders. None if it is `one` run, or runs that are to be compared
    otherwise; that is an error if a manifest is there or it is `said` to be a sweep."""
    said |= any((path / MANIFEST).exists() for path in paths)
    if one and not said and len(read_json(paths[0] / "config.json").get("points", [{}])) < 2:
        return None
    try:
        return Sweep(paths)
    except NoSweep as e:
        if said:
            raise ValueError(f"{', '.join(map(str, paths))}: {e}") from None
        return None


def content(figure: Figure, kind: str) -> bytes:
    """A picture's file: the same bytes for the same run."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=METADATA[kind])
    if kind == "png":  # of at most 256 colours, which nobody sees, in a third of the bytes
        image = Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        image.save(file := io.BytesIO(), "png", optimize=True, dpi=(300, 300))
    return file.getvalue()


if __name__ == "__main__":
    if sys.stdout:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # no terminal lacks "?"
    sys.exit(main())
