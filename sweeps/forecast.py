"""What a sweep would take, judged by the first steps of some of its populations."""

import time
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from ml_collections import ConfigDict

import experiment
from configs.check import changed
from population import trace
from results.report import columns, count
from sweeps.space import Population

IMPORTS = 2.0  # seconds that a process takes before it can do anything
TIMED = 3  # populations, from first to last; the others are taken to cost as much as their mean


def forecast(
    config: ConfigDict,
    space: Mapping[str, str],
    found: Sequence[Population],
    runs: Sequence[int],
    jobs: int,
) -> str:
    """Points, populations with their runs, and the time that they take at most."""
    picked = [found[i] for i in np.unique(np.linspace(0, len(found) - 1, TIMED).astype(int))]
    if not found[0].name:  # of a search, whose trials are all alike as far as is known
        picked = picked[:1]
    start, step = np.mean([measured(config, population) for population in picked], axis=0)
    seconds = sum(start + step * config.steps * n for n in runs) / jobs
    words = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    lines = {
        population.name: f"{count(len(population.points), 'point')}, {count(n, 'run')}"
        for population, n in zip(found, runs, strict=True)
        if population.name
    }
    points = sum(len(population.points) for population in found)
    total = (
        f"{count(points, 'point')}, {count(len(found), 'population')}, {count(sum(runs), 'run')}"
    )
    how = f"at most {words}, {jobs} at once, judged by {count(len(picked), 'population')}"
    text = ["space", *columns(space), *(["", "populations", *columns(lines)] if lines else [])]
    return "\n".join([*text, "", *columns({"in all": total, "time": how})])


def measured(config: ConfigDict, of: Population) -> tuple[float, float]:
    """Seconds until a population's first step, and of a step of one of its runs."""
    own = changed(config, of.overrides)
    began = time.monotonic()
    program = trace(own, *experiment.setup(own), of.points)
    advance = program.advance.compile()
    state, _ = jax.block_until_ready(advance(program.task, program.start(program.task)))
    ready, reached = time.monotonic(), int(state.step)
    state, _ = jax.block_until_ready(advance(program.task, state))
    steps = max(int(state.step) - reached, 1) * len(program.runs["seed"])
    return ready - began + IMPORTS, (time.monotonic() - ready) / steps
