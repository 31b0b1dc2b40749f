"""Where a sweep's populations come from: a list, or a search by Optuna."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock
from ml_collections import ConfigDict

from configs import lower_is_better
from results import points
from results.files import ENDED, FolderError, read_run, status
from results.live import Reached
from sweeps.space import Point, Population, Range, Space, drawn, populations

SAMPLERS = ("tpe", "random", "quasirandom")


class Listed:
    """Populations that are known from the start. base: settings that all of them have."""

    def __init__(self, folder: Path, found: Sequence[Population], base: Point):
        self._folder, self._found, self._base = folder, found, base

    def populations(self) -> Sequence[Population]:
        return self._found

    def undecided(self) -> int:
        return 0

    def ask(self) -> bool:
        return False

    def settled(self, population: Population) -> bool:
        if status(self._folder / population.name) not in ENDED:
            return False
        about, _ = read_run(self._folder / population.name)
        return population.is_of(about, self._base)  # else it is of other seeds

    def hopeless(self, population: Population, reached: Reached) -> bool:
        return False

    def ended(self, population: Population, given_up: bool) -> None:
        pass


class Study:
    """A search whose trials, each a point, are kept in a file that any number of crews may share.

    What is tried as the n-th depends on the seed, n and the trials that have ended, on nothing of
    the crew that asks. A trial's population is noted before it is trained, so that another crew
    can go on with it.
    """

    def __init__(
        self, folder: Path, config: ConfigDict, space: Space, sampler: str, trials: int, batch: int
    ):
        import optuna
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna, self._folder, self._config, self._space = optuna, folder, config, space
        self._sampler, self._most, self._batch = sampler, trials, batch
        self._asking = FileLock(folder / "locks" / "asking.lock")
        self._told: dict[str, int] = {}
        self._state = optuna.trial.TrialState
        lower, file = lower_is_better(config.expected.metric), folder / "study.log"
        # Optuna's own lock outlives a crew that is killed.
        backend = JournalFileBackend(str(file), FileLock(folder / "locks" / "study.lock"))  # type: ignore[arg-type]
        try:
            with self._asking:
                mend(file)
                self._study = optuna.create_study(
                    study_name="sweep",
                    storage=optuna.storages.JournalStorage(backend),
                    direction="minimize" if lower else "maximize",
                    pruner=optuna.pruners.MedianPruner(8, n_warmup_steps=config.steps // 10),
                    load_if_exists=True,
                )
        except OSError:
            raise
        except Exception as e:  # of a damaged file, any
            raise FolderError(f"{file} is damaged: {type(e).__name__}: {e}") from e

    def _trials(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False)

    def _trial(self, number: int) -> Any:
        return self._optuna.trial.Trial(self._study, self._trials()[number]._trial_id)

    def populations(self) -> list[Population]:
        found: dict[str, Population] = {}
        for trial in self._trials():
            if "population" in trial.user_attrs:
                name, overrides, point = trial.user_attrs["population"]
                known = found.setdefault(name, Population(name, overrides, [], []))
                known.points.append(point)
                known.trials.append(trial.number)
        return list(found.values())

    def undecided(self) -> int:
        return self._most - sum("population" in trial.user_attrs for trial in self._trials())

    def ask(self) -> bool:
        with self._asking:
            for trial in self._trials():
                if not (trial.state.is_finished() or "population" in trial.user_attrs):
                    self._study.tell(trial.number, state=self._state.FAIL)  # its crew has died
            first = len(self._trials())
            numbers = range(first, first + min(self._batch, self.undecided()))
            points = [self._draw(number) for number in numbers]
            notes: dict[int, list[Any]] = {}
            for name, overrides, own, places in populations(self._config, points):
                name = f"trial-{numbers[places[0]]:04d}"
                notes |= {i: [name, overrides, p] for i, p in zip(places, own, strict=True)}
            for i, number in enumerate(numbers):
                self._note(number, points[i], notes[i])
        return bool(numbers)

    def _draw(self, number: int) -> Point:
        """The settings of a trial."""
        seed = self._config.seed
        if self._sampler != "tpe":
            return drawn(self._space, self._sampler, number, seed)
        self._study.sampler = self._optuna.samplers.TPESampler(seed=1000 * seed + number)
        asked = self._study.ask(self._kinds).params
        return {name: self._value(found, asked[name]) for name, found in self._space.items()}

    def _note(self, number: int, point: Point, population: list[Any]) -> None:
        """Keeps what was decided on; what TPE was asked for is known already, but for its name."""
        if number < len(self._trials()):
            self._trial(number).set_user_attr("population", population)
            return
        trial = self._optuna.trial.create_trial(
            state=self._state.RUNNING,
            params={name: plain(value) for name, value in point.items()},
            distributions=self._kinds,
            user_attrs={"population": population},
        )
        self._study.add_trial(trial)

    @functools.cached_property
    def _kinds(self) -> dict[str, Any]:
        """The space in Optuna's words."""
        return {name: self._kind(found) for name, found in self._space.items()}

    def _kind(self, found: "list[Any] | Range") -> Any:
        kinds = self._optuna.distributions
        if not isinstance(found, Range):
            return kinds.CategoricalDistribution([plain(value) for value in found])
        kind = kinds.IntDistribution if found.whole else kinds.FloatDistribution
        return kind(found.low, found.high, log=found.log)

    @staticmethod
    def _value(found: "list[Any] | Range", choice: Any) -> Any:
        if isinstance(found, Range):
            return choice
        return next(value for value in found if plain(value) == choice)

    def settled(self, population: Population) -> bool:
        if status(self._folder / population.name) in ENDED:
            self.ended(population, False)  # in case that nobody lived to tell
        known = [self._trials()[number].state for number in population.trials]
        lost = self._state.COMPLETE in known  # by hand, if the run is not there
        there = status(self._folder / population.name) in ENDED
        return all(state.is_finished() for state in known) and (there or not lost)

    def hopeless(self, population: Population, reached: Reached) -> bool:
        """Whether all its points are below the median of the trials before, at the same step."""
        if reached.step - self._told.get(population.name, 0) < self._config.steps / 20:
            return False
        self._told[population.name] = reached.step
        verdicts = []
        for number, best in zip(population.trials, reached.best, strict=True):
            trial = self._trial(number)
            if best is not None:
                trial.report(best, reached.step)
            verdicts.append(trial.should_prune())
        return all(verdicts)

    def ended(self, population: Population, given_up: bool) -> None:
        about, summary = read_run(self._folder / population.name)
        parts = [came for _, came in points.split(about, summary)] if summary else []
        means = [points.validation(came)["mean"] for came in parts]
        state = self._state
        with self._asking:
            for number, mean in itertools.zip_longest(population.trials, means):
                how = state.PRUNED if given_up else state.FAIL if mean is None else state.COMPLETE
                if not self._trials()[number].state.is_finished():
                    self._study.tell(number, mean if how == state.COMPLETE else None, state=how)


def plain(value: Any) -> Any:
    """A value as Optuna can keep it: a tuple, as words."""
    return value if isinstance(value, bool | int | float | str) else repr(value)


def mend(file: Path) -> None:
    """Cuts a last line that was half written when its crew was killed."""
    text = file.read_bytes() if file.exists() else b""
    if text and not text.endswith(b"\n"):
        with open(file, "r+b") as opened:
            opened.truncate(text.rfind(b"\n") + 1)
