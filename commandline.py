"""What the command line asks for, checked before anything is written.

Bad input ends in one line and exit code 2. An interrupt (Ctrl-C) or SIGTERM is noted and left to
the loop, which saves; the exit code then is 130 or 143.
"""

import hashlib
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
from results.run import ENDED, flat, status

CONFIG = config_flags.DEFINE_config_file(
    "config", help_string="The experiment: a file in configs/."
)
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


def stop(why: object) -> NoReturn:
    print("error:", " ".join(str(why).split()), file=sys.stderr)
    sys.exit(2)


@contextmanager
def complaints(*kinds: type[Exception]) -> Iterator[None]:
    """Exceptions of these kinds are the user's to mend: one line, no traceback."""
    try:
        yield
    except kinds as e:
        stop(e)


def parse(argv: list[str]) -> list[str]:
    """absl's flags_parser: every mistake on the command line is one line."""
    argv = [re.sub(r"^--?config=.*", lambda m: m[0].replace("\\", "/"), word) for word in argv]
    for path in (word.partition("=")[2] for word in argv if re.match("--?config=", word)):
        if not Path(path).is_file():
            there = [str(p) for p in Path("configs").glob("*.py") if "get_config" in p.read_text()]
            stop(f"--config={path}: no such file; {nearest(path, there)}")
    try:
        rest = flags.FLAGS(argv)
        if CONFIG.value is not None:
            CONFIG.value.to_dict()  # what is wrong with the file shows only when it is read
    except flags.Error as e:
        stop(e)
    except AttributeError as e:
        stop(_unknown_setting(argv) or e)
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


def _unknown_setting(argv: list[str]) -> str | None:
    """ml_collections names only the last part of a setting that is not there."""
    file = next(word.partition("=")[2] for word in argv if re.match("--?config=", word))
    try:
        there = flat(runpy.run_path(file)["get_config"]().to_dict())
    except Exception as e:
        return f"--config={file}: {type(e).__name__}: {e}"
    for name in re.findall(r"--?(?:no)?config\.([\w.]+)", " ".join(argv)):
        if not any(f"{other}.".startswith(f"{name}.") for other in there):
            return f"--config.{name}: there is no such setting; {nearest(name, there)}"
    return None


def overrides() -> dict[str, Any]:
    """The settings given on the command line, flat: {"model.heads": 4}."""
    return config_flags.get_override_values(flags.FLAGS["config"]) if CONFIG.present else {}


def config_file() -> Path:
    return Path(os.path.relpath(config_flags.get_config_filename(flags.FLAGS["config"])))


def workdir(root: Path = Path("results")) -> Path:
    """--workdir, or results/EXPERIMENT/OVERRIDES, with -2, -3 ... where a run has ended."""
    if flags.FLAGS.workdir:
        return Path(flags.FLAGS.workdir)
    words = ",".join(f"{name}={value}" for name, value in overrides().items())
    slug = re.sub(r"[^\w=.,+-]", "_", words) or "default"
    if len(slug) > 120:  # as long as a file system's names may be, and still one for each
        slug = f"{slug[:100]}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    folders = [root / config_file().stem / slug]
    while status(folders[-1]) != "absent":
        folders.append(folders[0].with_name(f"{slug}-{len(folders) + 1}"))
    there = folders[:-1]
    if there and (flags.FLAGS.resume or flags.FLAGS.overwrite or status(there[-1]) not in ENDED):
        return there[-1]
    return folders[-1]


def about(config: ConfigDict, task: Any) -> dict[str, Any]:
    """All that tells where a number came from: config.json."""
    import jax

    file = config_file().as_posix()
    changed = [f"--config.{name}={value}" for name, value in overrides().items()]
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "experiment": config_file().stem,
        "file": file,
        "overrides": overrides(),
        "command": shlex.join(["python", "train.py", f"--config={file}", *changed]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "data": task.about,
        "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}, {cpus()} CPUs",
        "versions": {"python": sys.version.split()[0], **versions},
        "config": json.loads(json.dumps(config.to_dict())),
    }


def configure_jax() -> None:
    """Two defaults, unless the environment says otherwise.

    Compiled programs are kept, small ones too. Each CPU is a device, so that runs are shared out
    to them: one small run cannot keep two cores busy, two runs can.
    """
    import jax

    from data.source import cache

    defaults = {
        "jax_compilation_cache_dir": str(cache() / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    if "host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        defaults["jax_num_cpu_devices"] = cpus()
    for name, value in defaults.items():
        if name.upper() not in os.environ:
            jax.config.update(name, value)


def cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that receives the signal asking to stop; a second one ends the process at once."""
    asked: list[int] = []

    def ask(number: int, _: Any) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)
        print("\nsaving, then stopping; again to stop without saving", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
