"""A sweep's whole command beside the same runs by themselves: python -m benchmarks.sweep"""

import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.compare import PEER, Cost, Side, call, compare, cost, ours
from commandline import cpus
from sweeps.launch import pinned, shares

RATES = [f"{rate:.0e}" for rate in (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 3e-2, 5e-2, 1e-1)]
SEEDS, POPULATIONS = 8, 50
GRID = f"""{len(RATES)} rates × {SEEDS} seeds of GCN on Cora, 200 epochs each, tested and validated
at the end of training. Ours is one `sweep.py` command, compiling included. *Fresh processes* are
the same runs by `train.py`, each in a process of its own, two at a time, each on one core; the
first two compile, the others find the program in a cache. *PyTorch Geometric* trains in two
processes at a time, of which start-up and data do not count; its time is that of 8 runs, times
8."""
OVERHEAD = f"""{POPULATIONS} populations of an MLP on Cora, each a run of ten steps and a program of
its own. Ours is `sweep.py`; *bare* are the same commands of `train.py`, two at a time, each on one
core, and nothing around them. Programs are found in a cache."""


def apart(commands: Sequence[Sequence[str]]) -> Side:
    """The same runs by train.py: a process each, as many at a time as there are cores."""

    def run(cache: Path) -> Cost:
        with tempfile.TemporaryDirectory() as folder:
            words = [
                [sys.executable, "train.py", *words, f"--workdir={folder}/{i}"]
                for i, words in enumerate(commands)
            ]
            return cost(Path(folder), lambda: at_once(words, cache))

    return run


def peers(count: int, scale: float) -> Side:
    """So many runs of PyTorch Geometric, a process on each core; `scale` times what they take."""

    def run(cache: Path) -> Cost:
        each = count // cpus()
        command = [PEER, "benchmarks/peer_cora.py", "gcn", "--epochs=200", f"--runs={each}"]
        found = [json.loads(text) for text in at_once([command] * cpus(), cache)]
        seconds = max(each * one["seconds"] for one in found)
        memory = max(one["peak_memory"] for one in found) / 2**20
        return Cost(scale * seconds, memory, found[0]["versions"])

    return run


def at_once(commands: Sequence[Sequence[str]], cache: Path) -> list[str]:
    """What the commands print, each run on one core."""
    cores = itertools.cycle(shares(cpus()))
    free = [next(cores) for _ in range(cpus())]

    def one(command: Sequence[str]) -> str:
        core = free.pop()
        try:
            with pinned(core):  # of this thread, hence of what it starts
                return call(command, cache)
        finally:
            free.append(core)

    with ThreadPoolExecutor(cpus()) as pool:
        return list(pool.map(one, commands))


def grid() -> None:
    config = ["--config=configs/gcn_cora.py", "--config.evaluate=0"]
    alone = [
        [
            *config,
            "--config.seeds=1",
            f"--config.seed={seed}",
            f"--config.optimizer.learning_rate={rate}",
        ]
        for rate, seed in itertools.product(RATES, range(SEEDS))
    ]
    rates = f"--set=optimizer.learning_rate={','.join(RATES)}"
    sides = {
        "ours": ours("sweep.py", *config, f"--config.seeds={SEEDS}", rates),
        "fresh processes": apart(alone),
        "PyTorch Geometric": peers(8, len(RATES) * SEEDS / 8),
    }
    compare("sweep_gcn", "s", GRID, sides, cold=True)


def overhead() -> None:
    config = ["--config=configs/mlp_cora.py", "--config.seeds=1", "--config.steps=10"]
    widths = range(1, POPULATIONS + 1)
    sides = {
        "ours": ours("sweep.py", *config, f"--set=model.width={','.join(map(str, widths))}"),
        "bare": apart([[*config, f"--config.model.width={width}"] for width in widths]),
    }
    compare("sweep_overhead", "s", OVERHEAD, sides)


if __name__ == "__main__":
    grid()
    overhead()
