"""Crews of a sweep whose training is fake_train.py's."""

import json
import sys
from pathlib import Path

from results.live import Tail
from sweeps.crew import Crew
from sweeps.space import Population

FAKE = [sys.executable, str(Path(__file__).with_name("fake_train.py"))]


def widths(*ways):
    """A population for each width, and how each is to end."""
    found = [Population(f"width={i}", {"model.width": i}, [{}], [i]) for i in range(len(ways))]
    return found, {f"width={i}": [way] for i, way in enumerate(ways)}


def crew(folder, source, ways, jobs=2):
    def command(p):
        several = p.points if len(p.points) > 1 else [{}]
        return [*FAKE, str(folder / p.name), *map(json.dumps, (p.given(), several, ways(p)))]

    tail = lambda p: Tail(folder / p.name, len(p.points), 2, "accuracy", 20)
    return Crew(folder, source, command, tail, jobs, 1)


def work(folder, source, ways, jobs=2, join=False):
    """What has not ended when a crew has done its work."""
    own = crew(folder, source, ways, jobs)
    own.work([], lambda: None, join)
    return own.left()


def tries(folder):
    return {path.stem: int(path.read_text()) for path in folder.glob("*.tries")}
