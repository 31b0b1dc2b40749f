"""What the command line asks for, checked before anything is written.

Bad input ends in one line on stderr and exit code 2. An interrupt (Ctrl-C) or SIGTERM is noted and
left to the loop, which saves; the exit code then is 130 or 143.
"""

import importlib.metadata
import json
import os
import re
import runpy
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from configs.check import nearest
from results.run import flat, status

CONFIG = config_flags.DEFINE_config_file(
    "config", help_string="The experiment: a file in configs/."
)
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")
KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}


def stop(why: object) -> NoReturn:
    print("error:", " ".join(str(why).split()), file=sys.stderr)
    sys.exit(2)


def parse(argv: list[str]) -> list[str]:
    """absl's flags_parser: every mistake on the command line is one line."""
    argv = [_slashes(word) for word in argv]
    for path in (word.partition("=")[2] for word in argv if re.match("--?config=", word)):
        if not Path(path.partition(":")[0]).is_file():
            there = sorted(
                str(p) for p in Path("configs").glob("*.py") if "def get_config" in p.read_text()
            )
            stop(f"--config={path}: no such file; {nearest(path, there)}")
    try:
        rest = flags.FLAGS(argv)
        if CONFIG.value is not None:
            CONFIG.value.to_dict()  # what is wrong with the file shows only when it is read
    except flags.UnrecognizedFlagError as e:
        stop(f"{e}; --help lists the flags")
    except (flags.Error, AttributeError) as e:
        stop(_explain(argv) or e)
    except Exception as e:
        stop(f"--config: {type(e).__name__}: {e}")
    if rest[1:]:
        stop(f"unexpected argument {rest[1]!r}: settings are written --config.NAME=VALUE")
    for name, value in overrides().items():
        if isinstance(value, dict | ConfigDict):
            stop(f"--config.{name}: override single fields, not a whole section")
        if isinstance(value, tuple) and any(re.search("[,(]", v) for v in value if type(v) is str):
            stop(f"--config.{name}: write a tuple of words as \"('a','b')\", or repeat the flag")
    logging.set_verbosity(logging.ERROR)  # Orbax has forty lines to say of every checkpoint
    return rest


def _explain(argv: list[str]) -> str | None:
    """The first override that the config does not take, and what it would."""
    files = [word.partition("=")[2] for word in argv if re.match("--?config=", word)]
    if not files:
        return None
    try:
        settings = flat(runpy.run_path(files[-1])["get_config"]().to_dict())
    except Exception as e:
        return f"--config={files[-1]}: {type(e).__name__}: {e}"
    for word in argv:
        if not (found := re.match(r"--?(?:no)?config\.([^=]+)=?(.*)", word)):
            continue
        name, value = found.groups()
        section = name.rpartition(".")[0]
        if name in settings:
            kind = type(settings[name]).__name__
            if kind in KINDS and not _is(kind, value):
                return f"--config.{name}={value}: expected {KINDS[kind]}"
        elif not any(other.startswith(f"{name}.") for other in settings):
            beside = [other for other in settings if other.rpartition(".")[0] == section]
            return f"--config.{name}: there is no such setting; {nearest(name, beside or settings)}"
    return None


def _is(kind: str, value: str) -> bool:
    if kind == "bool":
        return value.lower() in ("true", "false", "t", "f", "1", "0", "")
    try:
        int(value) if kind == "int" else float(value)
    except ValueError:
        return False
    return True


def overrides() -> dict[str, Any]:
    """The settings given on the command line, flat: {"model.heads": 4}."""
    return config_flags.get_override_values(flags.FLAGS["config"]) if CONFIG.present else {}


def config_file() -> Path:
    return Path(config_flags.get_config_filename(flags.FLAGS["config"]))


def workdir(root: Path = Path("results")) -> Path:
    """--workdir, or results/EXPERIMENT/OVERRIDES, with -2, -3 ... where a run is finished."""
    if flags.FLAGS.workdir:
        return Path(flags.FLAGS.workdir)
    words = [f"{name}={value}" for name, value in overrides().items()]
    slug = "".join(c if c.isalnum() or c in "=.,-_+" else "_" for c in ",".join(words))
    first = root / config_file().stem / (slug[:120] or "default")
    path, count = first, 1
    while status(path) == "finished" and not (flags.FLAGS.resume or flags.FLAGS.overwrite):
        count += 1
        path = first.with_name(f"{first.name}-{count}")
    return path


def about(config: ConfigDict, task: Any) -> dict[str, Any]:
    """All that tells where a number came from: config.json."""
    import jax

    device = jax.devices()[0]
    file = os.path.relpath(config_file()).replace(os.sep, "/")
    changed = [f"--config.{name}={value}" for name, value in overrides().items()]
    return {
        "config": json.loads(json.dumps(config.to_dict())),
        "experiment": config_file().stem,
        "file": file,
        "overrides": overrides(),
        "command": shlex.join(["python", "train.py", f"--config={file}", *changed]),
        "data": task.about,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "device": f"{len(jax.devices())} x {device.device_kind}, {cpus()} CPUs",
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
    }


def cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def complaints(*kinds: type[Exception]) -> Iterator[None]:
    """What is wrong with the input, as one line and exit code 2."""
    try:
        yield
    except kinds as e:
        stop(e)


def configure_jax() -> None:
    """Two defaults, unless the environment says otherwise.

    Compiled programs are kept, small ones too. Each CPU is a device, so that runs are shared out
    to them: one small run cannot keep two cores busy, two runs can.
    """
    import jax

    from data.source import cache

    for name, value in {
        "jax_compilation_cache_dir": str(cache() / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_num_cpu_devices": cpus(),
    }.items():
        forced = "cpu" in name and "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
        if name.upper() not in os.environ and not forced:
            jax.config.update(name, value)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that receives the signals asking to stop; a second Ctrl-C stops at once."""
    asked: list[int] = []

    def ask(number: int, _: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)
        print("\nstopping after this chunk of steps; again to stop at once", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _slashes(word: str) -> str:
    """A config's path may be written with backslashes."""
    flag, _, path = word.partition("=")
    known = flag not in ("--config", "-config") or Path(path).exists()
    return word if known else f"{flag}={path.replace(chr(92), '/')}"
