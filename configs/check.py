"""What a setting may be: one table by name for every section of every config."""

import difflib
import math
from collections.abc import Callable, Iterable
from typing import Any

from ml_collections import ConfigDict

from configs import base


class SettingError(ValueError):
    """A setting that cannot be, in one line for the person who wrote it."""


Rule = tuple[Callable[[Any], bool], str]


LIMIT = 2**31
POSITIVE: Rule = (lambda v: v >= 1, "1 or more")
NATURAL: Rule = (lambda v: v >= 0, "0 or more")
SHARE: Rule = (lambda v: 0 <= v < 1, "0 or more and less than 1")
RULES: dict[str, Rule] = {
    **dict.fromkeys("width depth heads out_heads splits accumulate".split(), POSITIVE),
    **dict.fromkeys("steps every seeds".split(), POSITIVE),
    **dict.fromkeys("evaluate patience warmup together save seed l2 clip".split(), NATURAL),
    **dict.fromkeys("dropout attention_dropout value_dropout".split(), SHARE),
    "learning_rate": (lambda v: 0 < v < math.inf, "a positive number"),
    "drops": (lambda v: all(type(s) is int and 0 < s < LIMIT for s in v), "a tuple of steps"),
    "metrics": (lambda v: v and all(type(m) is str for m in v), "a tuple of names"),
    "select.split": (lambda v: v in ("train", "validation", "test"), "train, validation or test"),
    "keep": (lambda v: v in ("best", "last"), "'best' or 'last'"),
}


def check(config: ConfigDict) -> None:
    """Raises SettingError naming the first setting that is out of range or contradicts another."""
    _check_ranges(config, "")
    for name in base():
        if name not in config:
            raise SettingError(f"the config has no {name!r}: make it with configs.base()")
    if config.seed + config.seeds > LIMIT:
        raise SettingError(f"seed = {config.seed} and seeds = {config.seeds} go beyond 2^31 - 1")
    if config.evaluate == 0 and config.patience:
        raise SettingError(f"patience = {config.patience} needs validations, but evaluate = 0")
    if config.evaluate == 0 and config.select.keep == "best":
        raise SettingError("select.keep = 'best' needs validations, but evaluate = 0")
    part = "evaluate" if config.evaluate else "every"
    for name in ("steps", "every"):
        if config[name] % config[part] and not name == part == "every":
            raise SettingError(
                f"{name} = {config[name]}: expected a multiple of {part} = {config[part]}"
            )


def _check_ranges(section: ConfigDict, path: str) -> None:
    for key, value in section.items():
        fine, expected = RULES.get(path + key) or RULES.get(key) or (lambda v: True, "")
        if isinstance(value, ConfigDict):
            _check_ranges(value, f"{path}{key}.")
        elif not fine(value):
            raise SettingError(f"{path}{key} = {value!r}: expected {expected}")
        elif isinstance(value, float) and not abs(value) < 3.4e38:
            raise SettingError(f"{path}{key} = {value}: expected a finite number (of 32 bits)")
        elif isinstance(value, int) and not abs(value) < LIMIT:
            raise SettingError(f"{path}{key} = {value}: expected a whole number of 32 bits")


def nearest(word: str, there: Iterable[str]) -> str:
    """The end of an error's line: "did you mean 'heads'?", else what there is."""
    names = sorted(there)
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
