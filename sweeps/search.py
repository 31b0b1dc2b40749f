"""Where a sweep's populations come from: a list, or a search by Optuna."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock
from ml_collections import ConfigDict

from configs import lower_is_better
from results import points
from results.files import ENDED, read_run, status
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
        given = json.loads(json.dumps(self._base | population.given()))
        points = population.points if len(population.points) > 1 else [{}]
        return (about["overrides"], about["points"]) == (given, points)  # else it is of other seeds

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
        lower = lower_is_better(config.expected.metric)
        self._study = optuna.create_study(
            study_name="sweep",
            storage=optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.log"))),
            direction="minimize" if lower else "maximize",
            pruner=optuna.pruners.MedianPruner(8, n_warmup_steps=config.steps // 10),
            load_if_exists=True,
        )

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
        return self._most - len(self._trials())

    def ask(self) -> bool:
        with self._asking:
            known = self._trials()
            begun = [
                t for t in known if not (t.state.is_finished() or "population" in t.user_attrs)
            ]
            trials = [self._trial(t.number) for t in begun]  # whose crew died as it asked
            for number in range(
                len(known), min(len(known) + self._batch - len(trials), self._most)
            ):
                if self._sampler != "tpe":
                    self._study.enqueue_trial(
                        drawn(self._space, self._sampler, number, self._config.seed)
                    )
                trials.append(self._study.ask())
            found = populations(self._config, [self._suggest(trial) for trial in trials])
            for population in found:
                name = f"trial-{trials[population.trials[0]].number:04d}"
                for i, point in zip(population.trials, population.points, strict=True):
                    trials[i].set_user_attr("population", [name, population.overrides, point])
        return bool(trials)

    def _suggest(self, trial: Any) -> Point:
        seed = 1000 * self._config.seed + trial.number
        self._study.sampler = self._optuna.samplers.TPESampler(seed=seed)
        found = {}
        for name, known in self._space.items():
            if isinstance(known, Range):
                suggest = trial.suggest_int if known.whole else trial.suggest_float
                found[name] = suggest(name, known.low, known.high, log=known.log)
            else:
                found[name] = trial.suggest_categorical(name, known)
        return found

    def settled(self, population: Population) -> bool:
        if status(self._folder / population.name) in ENDED:
            self.ended(population, False)  # in case that nobody lived to tell
        known = self._trials()
        return all(known[number].state.is_finished() for number in population.trials)

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
        state = self._optuna.trial.TrialState
        with self._asking:
            for number, mean in itertools.zip_longest(population.trials, means):
                how = state.PRUNED if given_up else state.FAIL if mean is None else state.COMPLETE
                if not self._trials()[number].state.is_finished():
                    self._study.tell(number, mean if how == state.COMPLETE else None, state=how)
