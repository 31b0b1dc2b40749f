"""A sweep's populations, claimed, trained some at a time, and passed over when they have failed."""

import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from filelock import FileLock, Timeout

from results.files import ENDED, LOCK, read_json, status, write_json
from results.live import Entry, Reached, Tail
from results.outcome import gather
from results.points import validation
from sweeps.launch import Child, shares
from sweeps.space import Population

RESTARTS = 3  # of a child that was killed, each from its checkpoint


class Source(Protocol):
    """Where populations come from: a list of them, or a search."""

    def populations(self) -> Sequence[Population]:
        """Those decided on so far."""

    def undecided(self) -> int:
        """How many points are yet to be decided on."""

    def ask(self) -> bool:
        """Decides on more, if more are wanted; whether it did."""

    def settled(self, population: Population) -> bool:
        """Whether nothing is left to train, or to tell of it."""

    def hopeless(self, population: Population, reached: Reached) -> bool:
        """Takes note of what it has reached; whether to give it up."""

    def ended(self, population: Population, given_up: bool) -> None:
        """Takes note that it is at its end, wherever that was."""


class Running(NamedTuple):
    population: Population
    claim: FileLock
    child: Child
    cpus: list[int]


class Crew:
    """Trains a sweep's populations, some at a time.

    Each is claimed by a lock that goes with this process: so crews on several machines may share a
    folder, and one goes on with what another left. What cannot be trained is noted, and passed over
    from then on; what was killed is started again from its checkpoint.
    """

    def __init__(
        self,
        folder: Path,
        source: Source,
        command: Callable[[Population], list[str]],
        tail: Callable[[Population], Tail],
        jobs: int,
        processes: int,
    ):
        self._folder, self._source, self._command = folder, source, command
        self._tail, self._processes = tail, processes
        self._free = shares(jobs)
        self._killed: Counter[str] = Counter()
        self._settled: set[str] = set()
        self._ended: dict[str, Entry] = {}
        self._tails: dict[str, Tail] = {}
        self.running: dict[str, Running] = {}
        self.elsewhere: set[str] = set()  # what other crews have claimed
        self.reached: dict[str, Reached] = {}

    def work(self, asked: Sequence[int], show: Callable[[], None], join: bool = False) -> None:
        """Until every population has ended, or `asked` is not empty. What others have claimed is
        waited for, unless this crew has only joined them."""
        looked = shown = -math.inf
        try:
            while not asked:
                if self._free and time.monotonic() - looked > 1:
                    self._start()
                    looked = time.monotonic()
                    if not self.running and (join or not self.elsewhere):
                        break
                for running in list(self.running.values()):
                    if self._look(running):
                        looked = -math.inf  # somebody's place is free
                if time.monotonic() - shown > 0.5:
                    show()
                    shown = time.monotonic()
                time.sleep(0.02)
            show()
        finally:
            for running in list(self.running.values()):
                running.child.stop()
                self._leave(running)

    def watch(self) -> None:
        """Takes note of what other crews have reached."""
        for population in self._source.populations():
            name = population.name
            if not self._over(population) and status(self._folder / name) == "unfinished":
                self.elsewhere.add(name)
                self.reached[name] = self._tails.setdefault(name, self._tail(population)).read()

    def left(self) -> list[str]:
        """The populations that have not ended."""
        names = {p.name for p in self._source.populations() if not self._source.settled(p)}
        return sorted(names - set(failures(self._folder, names)))

    def entries(self, size: int) -> list[Entry]:
        """Where all populations stand, whose points have `size` runs each."""
        return [self._entry(population, size) for population in self._source.populations()]

    def _entry(self, population: Population, size: int) -> Entry:
        name, best = population.name, self.reached.get(population.name)
        if name in self._ended:
            return self._ended[name]
        entry = Entry(name, len(population.points) * size, "waiting", 0.0, best and best.top)
        if name not in self._settled:
            state = "elsewhere" if name in self.elsewhere else "waiting"
            state = "training" if name in self.running else state
            return entry._replace(state=state, share=best.share if best else 0.0)
        came = {"unfinished": "pruned"}.get(known := status(self._folder / name), known)
        came = "failed" if failures(self._folder, [name]) else came
        if came == "finished":
            entry = entry._replace(best=validation(gather(self._folder, [name])[0][1])["mean"])
        self._ended[name] = entry._replace(state=came, share=1.0)
        return self._ended[name]

    def _start(self) -> None:
        """Claims and starts as many populations as there are CPUs for."""
        self.elsewhere.clear()
        for population in self._source.populations():
            name = population.name
            if not self._free:
                return
            if name in self.running or self._over(population):
                continue
            if not (claim := self._claim(name)):
                self.elsewhere.add(name)
            elif self._source.settled(population):  # by another crew, a moment ago
                claim.release()
            else:
                cpus, log = self._free.pop(), self._folder / "logs" / f"{name}.log"
                child = Child(self._command(population), log, cpus, self._processes)
                self._tails[name] = self._tail(population)  # a new one: a resume cuts its rows
                self.running[name] = Running(population, claim, child, cpus)
        if self._free and self._source.ask():
            self._start()

    def _over(self, population: Population) -> bool:
        """Whether it has ended or failed, which it does once."""
        name = population.name
        if name not in self._settled:
            if failures(self._folder, [name]) or self._source.settled(population):
                self._settled.add(name)
        return name in self._settled

    def _claim(self, name: str) -> FileLock | None:
        """The right to train a population, unless somebody has it, or still holds its folder."""
        claim = FileLock(self._folder / "locks" / f"{name}.lock", blocking=False)
        try:
            claim.acquire()
        except Timeout:
            return None
        if self._held(name):
            claim.release()
            return None
        return claim

    def _held(self, name: str) -> bool:
        """Whether a process has the run folder open, such as a child whose crew was killed."""
        file = self._folder / name / LOCK
        try:
            if file.exists():
                FileLock(file, blocking=False).acquire().lock.release()
        except Timeout:
            return True
        return False

    def _look(self, running: Running) -> bool:
        """Takes note of what a child has reached; whether it has ended."""
        population, name = running.population, running.population.name
        code = running.child.poll()
        before = self.reached.get(name)
        if code is None and (before is None or time.monotonic() - before.at > 1):
            reached = self.reached[name] = self._tails[name].read()
            if self._source.hopeless(population, reached):
                running.child.stop()
                self._leave(running)
                self._source.ended(population, True)
                return True
        if code is None:
            return False
        self._killed[name] += code not in (0, 1, 2)
        restart = code not in (0, 1, 2) and self._killed[name] <= RESTARTS or self._held(name)
        if not restart and status(self._folder / name) not in ENDED:
            why = running.child.last_words()
            why = f"killed {self._killed[name]} times: {why}" if self._killed[name] else why
            (self._folder / "failed").mkdir(exist_ok=True)
            write_json(self._folder / "failed" / f"{name}.json", {"reason": why, "code": code})
        self._leave(running)
        if not restart:
            self._source.ended(population, False)
        return True

    def _leave(self, running: Running) -> None:
        del self.running[running.population.name]
        self._free.append(running.cpus)
        running.claim.release()


def failures(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The populations that could not be trained, and why."""
    found = {name: folder / "failed" / f"{name}.json" for name in names}
    return {n: read_json(file, ["reason"])["reason"] for n, file in found.items() if file.exists()}


def forget(folder: Path) -> None:
    """Has what failed in a folder, or has no run that stayed finite, tried again."""
    for file in (folder / "failed").glob("*.json"):
        file.unlink()
    for run in folder.glob("*/summary.json"):
        if status(run.parent) == "failed":
            shutil.rmtree(run.parent)
