"""Which settings a sweep tries: spaces, the points in them, and the populations these make.

A space gives each setting its values, or for a search a range: {"model.heads": [1, 4, 8],
"optimizer.learning_rate": "1e-4:1e-1:log"}. A point is a choice of values. Points that differ in
nothing but what may differ between the runs of one program are one population.
"""

import ast
import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock
from ml_collections import ConfigDict

import configs
from configs import lower_is_better
from configs.check import SettingError, changed, check, leaves, nearest
from results import points
from results.files import ENDED, read_run, status
from results.live import Reached
from results.report import SAME

Point = dict[str, Any]
Space = dict[str, "list[Any] | Range"]
SAMPLERS = ("tpe", "random", "quasirandom")


class Range(NamedTuple):
    """low to high, both included; evenly in the logarithm if `log`; integers if `whole`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.low}:{self.high}{':log' * self.log}"


class Population(NamedTuple):
    """Runs that are one program: a folder's name, its settings, and the points of its runs."""

    name: str
    overrides: Point
    points: list[Point]
    trials: list[int]  # the number of each point in the sweep

    def given(self) -> Point:
        """Its settings on the command line: a single point's are among them."""
        return {**self.overrides, **(self.points[0] if len(self.points) == 1 else {})}


def from_words(words: Iterable[str], config: ConfigDict) -> Space:
    """The space of `--set NAME=1,4,8` and `--set NAME=LOW:HIGH[:log]`."""
    space: Space = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise SettingError(f"--set {word}: expected NAME=VALUE,VALUE... or NAME=LOW:HIGH[:log]")
        if name in space:
            raise SettingError(f"--set {name}: stands there twice")
        space[name] = values(name, text, config)
    return space


def values(name: str, text: Any, config: ConfigDict) -> "list[Any] | Range":
    """A setting's values, from words or as Python has them, of the setting's type."""
    known = leaves(config)
    if name not in known:
        raise SettingError(f"{name}: the config has no such setting; {nearest(name, known)}")
    if name in (*SAME, "evaluate", "every") or name.startswith(("expected.", "select.")):
        hint = "say --config.seeds=N" if name in ("seed", "seeds") else "nothing to compare"
        raise SettingError(f"{name}: is no setting to sweep over, {hint}")
    kind = type(known[name])
    if isinstance(text, str):
        if kind in (int, float) and ":" in text:
            return _range(name, text, kind)
        # A comma within brackets or quotes is part of a value.
        text = re.findall(r"""(?:\([^)]*\)|'[^']*'|"[^"]*"|[^,])+""", text)
    found = [_typed(name, value, kind) for value in text]
    if not found or len(set(map(str, found))) < len(found):
        raise SettingError(f"{name} = {text}: expected values, each once")
    return found


def _range(name: str, text: str, kind: type) -> Range:
    parts = re.fullmatch(r"([^:]*):([^:]*)(:log)?", text)
    if not parts:
        raise SettingError(f"{name} = {text}: expected LOW:HIGH or LOW:HIGH:log")
    low, high, log = parts.groups()
    found = Range(_typed(name, low, kind), _typed(name, high, kind), bool(log), kind is int)
    if not found.low < found.high or found.log and found.low <= 0:
        raise SettingError(f"{name} = {text}: expected LOW:HIGH[:log], LOW below HIGH")
    return found


def _typed(name: str, value: Any, kind: type) -> Any:
    try:
        if isinstance(value, str) and kind is not str:
            value = {"true": True, "false": False}.get(value.lower().strip(), value)
            value = value if isinstance(value, bool) else ast.literal_eval(value.strip())
        elif isinstance(value, str):
            value = value.strip().strip("'\"")
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or isinstance(value, float) and not math.isfinite(value):
            raise ValueError
    except (ValueError, SyntaxError):
        raise SettingError(f"{name} = {value!r}: expected {kind.__name__}") from None
    return value


def grid(space: Space, config: ConfigDict) -> list[Point]:
    """All points of a space without ranges."""
    for name, found in space.items():
        if isinstance(found, Range):
            raise SettingError(f"{name} = {found}: a range needs --search=tpe, random, quasirandom")
    return checked(configs.grid(space), config)  # type: ignore[arg-type]


def checked(wanted: Sequence[Mapping[str, Any]], config: ConfigDict) -> list[Point]:
    """The points, if the config can be so; else SettingError names the first that it cannot."""
    found = []
    for point in wanted:
        own = changed(config, point)
        check(own)
        found.append({name: leaves(own)[name] for name in point})
    if len({json.dumps(point, sort_keys=True) for point in found}) < len(found):
        raise SettingError("the sweep has one point twice")
    return found


def populations(config: ConfigDict, wanted: Sequence[Point]) -> list[Population]:
    """The points, by what needs a program of its own."""
    import optimizer  # here, since it imports JAX
    from commandline import slugged

    traced, groups = optimizer.traced(config), dict[str, Population]()
    for number, point in enumerate(wanted):
        own = {name: value for name, value in point.items() if name in traced}
        apart = {name: value for name, value in point.items() if name not in traced}
        again = sum(other == point for other in wanted[:number])  # a search may repeat itself
        key = json.dumps([apart, bool(own.get("optimizer.clip")), again], sort_keys=True)
        if key not in groups:  # whether gradients are clipped at all is part of the program
            clip = {name: own[name] for name in ("optimizer.clip",) if name in own}
            overrides = {**apart, **clip}
            groups[key] = Population(slugged(overrides) or "default", overrides, [], [])
        groups[key].points.append(own)
        groups[key].trials.append(number)
    return list(groups.values())


def missing() -> str | None:
    """What to do to have Optuna, if it is not there."""
    from importlib.util import find_spec

    return None if find_spec("optuna") else "--search needs Optuna: pip install 'lineage[sweep]'"


class Listed:
    """Populations that are known from the start. base: settings that all of them have."""

    def __init__(self, folder: Path, found: Sequence[Population], base: Point):
        self._folder, self._found, self._base = folder, found, base

    def populations(self) -> Sequence[Population]:
        return self._found

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
        self._asking = FileLock(folder / "claims" / "asking.lock")
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

    def ask(self) -> bool:
        with self._asking:
            known = self._trials()
            begun = [
                t for t in known if not (t.state.is_finished() or "population" in t.user_attrs)
            ]
            trials = [self._trial(t.number) for t in begun]  # whose crew died as it asked
            room = min(self._batch - len(trials), self._most - len(known))
            trials += [self._study.ask() for _ in range(room)]
            found = populations(self._config, [self._suggest(trial) for trial in trials])
            for population in found:
                name = f"trial-{trials[population.trials[0]].number:04d}"
                for i, point in zip(population.trials, population.points, strict=True):
                    trials[i].set_user_attr("population", [name, population.overrides, point])
        return bool(trials)

    def _suggest(self, trial: Any) -> Point:
        samplers, seed = self._optuna.samplers, self._config.seed
        make = {
            "tpe": lambda: samplers.TPESampler(seed=1000 * seed + trial.number),
            "random": lambda: samplers.RandomSampler(seed=1000 * seed + trial.number),
            "quasirandom": lambda: samplers.QMCSampler(seed=seed, scramble=True),
        }
        self._study.sampler = make[self._sampler]()
        found = {}
        for name, known in self._space.items():
            if isinstance(known, Range):
                suggest = trial.suggest_int if known.whole else trial.suggest_float
                found[name] = suggest(name, known.low, known.high, log=known.log)
            else:
                found[name] = trial.suggest_categorical(name, known)
        return found

    def settled(self, population: Population) -> bool:
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
        for number, mean in itertools.zip_longest(population.trials, means):
            how = state.PRUNED if given_up else state.FAIL if mean is None else state.COMPLETE
            if not self._trials()[number].state.is_finished():
                self._study.tell(number, mean if how == state.COMPLETE else None, state=how)
