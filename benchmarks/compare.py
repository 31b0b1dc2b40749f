"""Ours beside its peers: whole processes in turn, ratios pair by pair, one JSON line a workload.

A, B, C, A, B, C ...: what else the machine does meanwhile falls on all alike. A ratio is ours over
a peer's of the same round; of the rounds the median is reported. Lower is better.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from commandline import cpus
from results.files import json_lines, write

HOME = Path(__file__).parent
PEER = os.environ.get("PEER_PYTHON", str(HOME.parent / ".venv-peers/bin/python"))
ROUNDS = 5
PAGE = """\
# Benchmarks

Whole processes in turn: ours, a peer, the next peer, and again, {rounds} times. A ratio is ours to
the peer's of the same round; its median is given, and its range. Lower is better. Nothing is typed:
`make bench` measures everything and writes this page.

The peers are in [peer_cora.py](peer_cora.py), with the same settings, on the same cores. *PyTorch
Geometric* is its own layers on dense features, as in its examples: their product, and dropout for
3.9 million entries, are most of its time. *Tuned torch* is the same layers after a user took care:
features sparse, dropout drawn for the 49,216 entries that are not zero, which is the fairer of the
two. Neither uses torch.compile, nor do their first ten epochs count; of ours all count. Compiling
is not in an epoch's time: ours takes some seconds once, and is found in a cache after that.

Versions: {versions}.
"""


class Cost(NamedTuple):
    """What one side took."""

    value: float  # in the workload's unit
    memory: float  # MiB at most
    versions: Mapping[str, str]


Side = Callable[[Path], Cost]  # runs processes, which may keep compiled programs in a folder
Value = Callable[[Mapping[str, Any]], float]


def ours(script: str, *words: str, value: Value | None = None) -> Side:
    """A script of ours, in a folder of its own; `value` of its summary, or else all its seconds."""

    def run(cache: Path) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, script, *words, f"--workdir={folder}/run"]
            return cost(Path(folder), lambda: call(command, cache), value)

    return run


def peer(value: Value, *words: str) -> Side:
    """A peer's script; `value` of the JSON line that it prints."""

    def run(cache: Path) -> Cost:
        found = json.loads(call([PEER, *words], cache))
        return Cost(value(found), found["peak_memory"] / 2**20, found["versions"])

    return run


def call(command: Sequence[str], cache: Path) -> str:
    """What a process prints, which may keep compiled programs in a folder."""
    kept = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)}
    home = HOME.parent
    done = subprocess.run(command, cwd=home, env=kept, check=True, capture_output=True, text=True)
    return done.stdout


def cost(folder: Path, work: Callable[[], Any], value: Value | None = None) -> Cost:
    """What work took that leaves runs in a folder, and the most that one of its processes held."""
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    summaries = [json.loads(file.read_text("utf-8")) for file in folder.rglob("summary.json")]
    about = json.loads(next(folder.rglob("config.json")).read_text("utf-8"))
    versions = {name: about["versions"][name] for name in ("python", "jax", "flax")}
    took = value(*summaries) if value else seconds
    return Cost(took, max(one["peak_memory"] for one in summaries) / 2**20, versions)


def compare(
    workload: str,
    unit: str,
    notes: str,
    sides: Mapping[str, Side],
    cold: bool = False,
    home: Path = HOME,
) -> None:
    """Measures the sides, "ours" and peers; prints the line and keeps it for home's page.

    Ours finds its compiled programs in a cache that a run before the first round has filled, whose
    memory is given too; if `cold`, it compiles them in every round.
    """
    rounds: list[dict[str, Cost]] = []
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as cache:
        first = sides["ours"](Path(cache, "warm"))
        for i in range(ROUNDS):
            place = Path(cache, str(i) if cold else "warm")
            rounds.append({name: side(place) for name, side in sides.items()})
            print(f"{workload}, round {i + 1}: {say(rounds[-1])} {unit}", file=sys.stderr)
    line = {
        "workload": workload,
        "unit": unit,
        "ours": spread([one["ours"].value for one in rounds]),
        "peers": {
            name: spread([one[name].value for one in rounds]) for name in sides if name != "ours"
        },
        "ratio": ratios(rounds, "value"),
        "memory": {name: spread([one[name].memory for one in rounds]) for name in sides},
        "memory_when_compiling": round(first.memory, 1),
        "memory_ratio": ratios(rounds, "memory"),
        "rounds": ROUNDS,
        "versions": {k: v for cost in rounds[0].values() for k, v in cost.versions.items()},
        "machine": machine(),
        "load_before": round(busy, 2),
        "notes": notes,
    }
    print(json.dumps(line, ensure_ascii=False))
    keep(home, line)


def keep(home: Path, *new: dict[str, Any]) -> None:
    """Puts lines among those measured before, in the place of older ones, and writes the page."""
    file = home / "measured.jsonl"
    known = file.read_text("utf-8").splitlines() if file.exists() else []
    lines = {line["workload"]: line for line in [*map(json.loads, known), *new]}
    write(file, json_lines(lines.values()))
    write(home / "README.md", page(list(lines.values())))


def say(costs: Mapping[str, Cost]) -> str:
    return ", ".join(f"{name} {cost.value:.3g}" for name, cost in costs.items())


def spread(values: list[float]) -> dict[str, float]:
    found = dict(median=statistics.median(values), min=min(values), max=max(values))
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def ratios(rounds: list[dict[str, Cost]], field: str) -> dict[str, dict[str, float]]:
    pairs = lambda name: [getattr(one["ours"], field) / getattr(one[name], field) for one in rounds]
    return {name: spread(pairs(name)) for name in rounds[0] if name != "ours"}


def machine() -> str:
    """The processor, as the system names it, and how many of its cores are ours."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    names = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("model name")]
    return f"{cpus()} cores of {(names or [platform.processor()])[0]}"


def page(lines: list[dict[str, Any]]) -> str:
    """benchmarks/README.md."""
    known = {name: version for line in lines for name, version in line["versions"].items()}
    versions = ", ".join(f"{name} {version}" for name, version in sorted(known.items()))
    text = [PAGE.format(rounds=ROUNDS, versions=versions)]
    for line in sorted(lines, key=lambda line: line["workload"]):
        text += [f"## {line['workload']}\n", line["notes"] + "\n"]
        text += [
            f"| | {line['unit']} | ours / it | MiB at most | ours / it |",
            "|---|---|---|---|---|",
        ]
        text += [f"| ours | {cell(line['ours'])} | | {cell(line['memory']['ours'])} | |"]
        for name, found in line["peers"].items():
            cells = found, line["ratio"][name], line["memory"][name], line["memory_ratio"][name]
            text += [f"| {name} | {' | '.join(map(cell, cells))} |"]
        text += [
            f"\nOurs takes {line['memory_when_compiling']:.0f} MiB in a run that compiles. "
            f"On {line['machine']}; the load before was {line['load_before']}.\n"
        ]
    return "\n".join(text)


def cell(found: Mapping[str, float]) -> str:
    median, low, high = (f"{v:.3g}" if v < 1000 else f"{v:,.0f}" for v in found.values())
    return f"{median} ({low} to {high})"


if __name__ == "__main__":  # the page anew, of what was measured before
    keep(HOME)
