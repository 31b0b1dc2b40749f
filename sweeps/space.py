"""Which settings a sweep tries: spaces, the points in them, and the populations these make.

A space gives each setting its values, or for a search a range: {"model.heads": [1, 4, 8],
"optimizer.learning_rate": "1e-4:1e-1:log"}. A point is a choice of values. Points that differ in
nothing but what may differ between the runs of one program are one population.
"""

import ast
import hashlib
import json
import math
import re
import runpy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

import configs
import optimizer
from commandline import slugged
from configs.check import SettingError, changed, check, flat, nearest

Point = dict[str, Any]
Space = dict[str, "list[Any] | Range"]


# Settings that are not tried: points that differ in them cannot be compared.
APART = r"(select|expected)\.|(seeds?|save|together|evaluate|every|task\.(dataset|splits?))$"


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

    def is_of(self, about: Mapping[str, Any], base: Point) -> bool:
        """Whether a run folder's config.json is of this population, all of it."""
        given = json.loads(json.dumps(base | self.given()))
        points = self.points if len(self.points) > 1 else [{}]
        return (about["overrides"], about["points"]) == (given, points)

    def given(self) -> Point:
        """Its settings on the command line: a single point's are among them."""
        return {**self.overrides, **(self.points[0] if len(self.points) == 1 else {})}


def from_words(words: Iterable[str], config: ConfigDict) -> Space:
    """The space of `--set NAME=1,4,8` and `--set NAME=LOW:HIGH[:log]`."""
    space: Space = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise SettingError(f"--set {word}: expected NAME=VALUE,VALUE... or NAME=LOW:HIGH[:log]")
        if name in space:
            raise SettingError(f"--set {name}: stands there twice")
        space[name] = values(name, text, config)
    return space


def from_file(file: Path, config: ConfigDict) -> Space | list[Point]:
    """What a config's get_sweep() returns: settings with their values, or a list of points."""
    found: Any = None
    try:
        make = runpy.run_path(str(file)).get("get_sweep")
        found = make and make()
    except Exception as e:
        raise ValueError(f"{file}: get_sweep(): {type(e).__name__}: {e}") from e
    if make is None:
        raise ValueError(f"{file} has no get_sweep(): say --set NAME=VALUE,VALUE,...")
    parts = found if isinstance(found, list) else [found]
    named = all(isinstance(p, dict) and all(type(name) is str for name in p) for p in parts)
    if not named or not any(parts):
        expected = "expected settings with their values, or a list of points"
        raise SettingError(f"{file}: get_sweep() returns {found!r:.60}; {expected}")
    if isinstance(found, list):
        return checked(found, config)
    return {name: values(name, of, config) for name, of in parts[0].items()}


def of_points(points: Sequence[Point]) -> Space:
    """The values that points have."""
    distinct = lambda name: {json.dumps(point[name]): point[name] for point in points}
    return {name: list(distinct(name).values()) for name in points[0]}


def values(name: str, text: Any, config: ConfigDict) -> "list[Any] | Range":
    """A setting's values, from words or as Python has them, of the setting's type."""
    known = flat(config)
    if name not in known:
        raise SettingError(f"{name}: the config has no such setting; {nearest(name, known)}")
    if re.match(APART, name):
        hint = "say --config.seeds=N" if name.startswith("seed") else "such points do not compare"
        raise SettingError(f"{name}: is no setting to sweep over, {hint}")
    kind = type(known[name])
    if not isinstance(text, str) and (isinstance(text, dict) or not isinstance(text, Iterable)):
        raise SettingError(f"{name} = {text!r:.60}: expected its values, or 'LOW:HIGH[:log]'")
    if isinstance(text, str):
        if kind in (int, float) and ":" in text:
            return _range(name, text, kind)
        # A comma within brackets or quotes is part of a value.
        text = re.findall(r"""(?:\([^)]*\)|'[^']*'|"[^"]*"|[^,])+""", text)
    found = [_typed(name, value, kind) for value in text]
    if not found or len(set(map(str, found))) < len(found):
        said = ",".join(map(str, found))
        raise SettingError(f"{name} = {said}: expected values, each once")
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
        value = value.item() if isinstance(value, np.generic) else value
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
    found, names = [], dict.fromkeys(name for point in wanted for name in point)
    for point in wanted:
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in point.items()}
        own = changed(config, plain)
        check(own)
        known = flat(own)
        found.append({name: known[name] for name in names})  # what one says, all say
    if len({json.dumps(point, sort_keys=True) for point in found}) < len(found):
        raise SettingError("the sweep has one point twice")
    return found


def corners(space: Space) -> list[Point]:
    """Points that between them have all values of a space, of a range its ends."""
    ends = [list(v[:2]) if isinstance(v, Range) else v for v in space.values()]
    return [
        {name: of[min(i, len(of) - 1)] for name, of in zip(space, ends, strict=True)}
        for i in range(max(map(len, ends)))
    ]


def populations(config: ConfigDict, wanted: Sequence[Point]) -> list[Population]:
    """The points, by what needs a program of its own."""
    traced, groups = optimizer.traced(config), dict[str, Population]()
    seen, names = Counter[str](), set[str]()
    for number, point in enumerate(wanted):
        own = {name: value for name, value in point.items() if name in traced}
        apart = {name: value for name, value in point.items() if name not in traced}
        same = json.dumps(point, sort_keys=True)
        key = json.dumps([apart, bool(own.get("optimizer.clip")), seen[same]], sort_keys=True)
        seen[same] += 1  # a search may repeat itself
        if key not in groups:  # whether gradients are clipped at all is part of the program
            clip = {name: own[name] for name in ("optimizer.clip",) if name in own}
            overrides = {**apart, **clip}
            name = slugged(overrides) or "default"
            if name in names:  # of other letters that a folder's name cannot have
                name += f"-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
            names.add(name)
            groups[key] = Population(name, overrides, [], [])
        groups[key].points.append(own)
        groups[key].trials.append(number)
    return list(groups.values())


def drawn(space: Space, sampler: str, number: int, seed: int) -> Point:
    """The number-th of the random, or of Halton's evenly spread, points of a space."""
    if sampler == "random":
        uniform = np.random.default_rng((seed, number)).random(len(space))
    else:
        from scipy.stats import qmc  # here: it takes most of a second, and few sweeps need it

        uniform = qmc.Halton(len(space), rng=seed).fast_forward(number).random()[0]
    point: Point = {}
    for u, (name, found) in zip(uniform.tolist(), space.items(), strict=True):
        if not isinstance(found, Range):
            point[name] = found[int(u * len(found))]
            continue
        low, high = found.low, found.high + found.whole  # an integer stands for what follows it
        value = low * (high / low) ** u if found.log else low + u * (high - low)
        point[name] = min(int(value), int(found.high)) if found.whole else min(value, found.high)
    return point
