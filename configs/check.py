"""What a setting may be: one table by name for every section of every config."""

import copy
import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ml_collections import ConfigDict

from configs import base


class SettingError(ValueError):
    """A setting that cannot be, in one line for the person who wrote it."""


Rule = tuple[Callable[[Any], bool], str]

LIMIT = 2**31
ANYTHING: Rule = (lambda v: True, "")
POSITIVE: Rule = (lambda v: v >= 1, "1 or more")
NATURAL: Rule = (lambda v: v >= 0, "0 or more")
SHARE: Rule = (lambda v: 0 <= v < 1, "0 or more and less than 1")
RULES: dict[str, Rule] = {
    **dict.fromkeys("width depth heads out_heads order kernels coordinates".split(), POSITIVE),
    **dict.fromkeys("dimensions splits batch_size accumulate steps every".split(), POSITIVE),
    "seeds": (lambda v: 1 <= v <= 100_000, "1 to 100,000"),
    **dict.fromkeys("evaluate patience warmup together save seed sample".split(), NATURAL),
    **dict.fromkeys("l2 clip clamp".split(), NATURAL),
    **dict.fromkeys("dropout attention_dropout value_dropout".split(), SHARE),
    "learning_rate": (lambda v: 0 < v < math.inf, "a positive number"),
    "drops": (lambda v: all(type(s) is int and 0 < s < LIMIT for s in v), "a tuple of steps"),
    "metrics": (lambda v: v and all(type(m) is str for m in v), "a tuple of names"),
    "select.split": (lambda v: v in ("validation", "test"), "'validation' or 'test'"),
    "keep": (lambda v: v in ("best", "last", "common"), "'best', 'last' or 'common'"),
}


def check(config: ConfigDict) -> None:
    """Raises SettingError naming the first setting that is out of range or contradicts another."""
    _check(config, base(), "")
    if config.seed + config.seeds > LIMIT:
        raise SettingError(f"seed = {config.seed} and seeds = {config.seeds} go beyond 2^31 - 1")
    for name, value in {"patience": config.patience, "select.keep": config.select.keep}.items():
        if value not in (0, "last") and not config.evaluate:
            raise SettingError(f"{name} = {value!r} needs validations, but evaluate = 0")
    if config.select.keep == "common":  # chosen among the rows, when all runs have ended
        for name, fits in {"patience": 0, "every": config.evaluate}.items():
            if config[name] != fits:
                raise SettingError(f"{name} = {config[name]}: select.keep = 'common' needs {fits}")
    part = "evaluate" if config.evaluate else "every"
    for name in ("steps", "every"):
        if config[name] % config[part]:
            raise SettingError(
                f"{name} = {config[name]}: expected a multiple of {part} = {config[part]}"
            )


def changed(config: ConfigDict, settings: Mapping[str, Any]) -> ConfigDict:
    """A copy of the config with other values of some settings, by name ("model.heads").

    Raises SettingError for a name that is not there and for a value of another type.
    """
    config = copy.deepcopy(config)
    known = flat(config)
    for name, value in settings.items():
        if name not in known:
            hint = nearest(name, known)
            raise SettingError(f"{name}: the config has no such setting; {hint}")
        check_type(name, value, type(known[name]))
        value = float(value) if isinstance(known[name], float) else value
        config.update_from_flattened_dict({name: value})
    return config


def flat(config: Any, path: str = "") -> dict[str, Any]:
    """{"model": {"heads": 8}} -> {"model.heads": 8}."""
    if not isinstance(config, Mapping | ConfigDict):
        return {path: config}
    parts = [flat(value, f"{path}.{key}".lstrip(".")) for key, value in config.items()]
    return {name: value for part in parts for name, value in part.items()}


def check_type(name: str, value: Any, kind: Any) -> None:
    """Raises SettingError unless a value is of a setting's type; a float may be a whole number."""
    plain = kind in (bool, int, float, str, tuple, ConfigDict)  # others are not ours to judge
    if plain and type(value) not in (kind, {float: int}.get(kind)):
        raise SettingError(f"{name} = {value!r}: expected {kind.__name__}")


def _check(section: ConfigDict, defaults: Mapping[str, Any], path: str) -> None:
    for key, default in defaults.items():
        if key not in section:
            raise SettingError(f"the config has no {path + key!r}: make it with configs.base()")
        check_type(path + key, section[key], type(default))
    for key, value in section.items():
        name = path + key
        fine, expected = RULES.get(name) or RULES.get(key) or ANYTHING
        if isinstance(value, ConfigDict):
            _check(value, defaults.get(key, {}), f"{name}.")
        elif not _holds(fine, value):
            raise SettingError(f"{name} = {value!r}: expected {expected}")
        elif isinstance(value, float) and not abs(value) < 3.4e38:
            raise SettingError(f"{name} = {value}: expected a finite number (of 32 bits)")
        elif isinstance(value, int) and not abs(value) < LIMIT:
            raise SettingError(f"{name} = {value}: expected a whole number of 32 bits")


def _holds(fine: Callable[[Any], bool], value: Any) -> bool:
    try:
        return bool(fine(value))
    except TypeError:  # a word where a number is expected
        return False


def nearest(word: str, there: Iterable[str]) -> str:
    """The end of an error's line: "did you mean 'heads'?", else what there is."""
    names = sorted(there)
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
