"""What the command line asks for, checked before anything is written.

Bad input ends in one line and exit code 2. An interrupt (Ctrl-C) or SIGTERM is noted and left to
the loop, which saves; the exit code then is 130 or 143.
"""

import ctypes
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

import devices
from configs.check import flat, nearest
from results.files import ENDED, status

CONFIG = config_flags.DEFINE_config_file(
    "config", help_string="The experiment: a file in configs/."
)
MODES = (
    "config",
    "workdir",
    "points",
    "resume",
    "overwrite",
    "dry_run",
    "evaluate",
)  # train.py's flags
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy")


class Heedless:
    """A stream whose reader may have gone, or may not know every letter: no run ends for that."""

    def __init__(self, stream: Any):
        self._stream = stream or open(os.devnull, "w")
        self._stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        with suppress(OSError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def stop(why: object) -> NoReturn:
    print("error:", " ".join(str(why).split()), file=sys.stderr)
    sys.exit(2)


@contextmanager
def complaints(*kinds: type[Exception]) -> Iterator[None]:
    """Exceptions of these kinds are the user's to mend: one line, no traceback."""
    try:
        yield
    except devices.Elsewhere:
        sys.exit(2)
    except kinds as e:
        stop(e)


def parse(argv: list[str]) -> list[str]:
    """absl's flags_parser: every mistake on the command line is one line."""
    sys.stdout, sys.stderr = Heedless(sys.stdout), Heedless(sys.stderr)
    words: list[str] = []
    for word in argv:
        if words and re.fullmatch("--?config", words[-1]):  # its file is a word of its own
            words[-1] += f"={word}"
        else:
            words.append(word)
    if {"-h", "--help"} & set(words):
        app.usage(shorthelp=True, writeto_stdout=True, exitcode=0)
    settings: dict[str, Any] = {}
    for i, word in enumerate(words):
        if re.match("--?config=", word):
            words[i] = word.replace("\\", "/")
            settings = _settings(words[i].partition("=")[2])
    asked = [re.match(r"--?(?:no)?config\.([\w.]+)", word) for word in words]
    for name in [match[1] for match in asked if match] if settings else ():
        if any(setting.startswith(f"{name}.") for setting in settings):
            stop(f"--config.{name}: override single fields, not a whole section")
        if name not in settings:
            stop(f"--config.{name}: the file has no such setting; {nearest(name, settings)}")
    try:
        rest = flags.FLAGS(words)
    except Exception as e:  # absl has one kind for its own, ml_collections several
        names = [name for name in re.findall(r"config\.([\w.]+)", str(e)) if name in settings]
        expected = f": expected {type(settings[names[0]]).__name__}" if names else ""
        stop(f"{e}{expected}")
    if rest[1:]:
        stop(f"unexpected argument {rest[1]!r}: settings are written --config.NAME=VALUE")
    for name, value in overrides().items():
        if isinstance(value, tuple) and len(value) == 1 and re.match(r"\(|.*,", str(value[0])):
            stop(f"--config.{name}: write a tuple of words as \"('a','b')\", or repeat the flag")
    there = [name for name in MODES if name in flags.FLAGS and flags.FLAGS[name].present]
    _check_modes({name: flags.FLAGS[name].value for name in there})
    logging.set_verbosity(logging.ERROR)  # JAX tells of every accelerator that is not there
    return rest


def _settings(file: str) -> dict[str, Any]:
    """All settings of a config's file, flat; stops with what is wrong with the file."""
    if not Path(file).is_file():
        there = [p for p in Path("configs").glob("*.py") if "get_config" in p.read_text("utf-8")]
        hint = nearest(file, map(str, there)) if there else "run it from the folder of train.py"
        stop(f"--config={file}: no such file; {hint}")
    try:
        config = runpy.run_path(file)["get_config"]()
        if not isinstance(config, ConfigDict):
            raise TypeError(f"get_config() returns {config!r:.40}, expected a ConfigDict")
        return flat(config.to_dict())
    except Exception as e:
        why = re.sub(r" Other fields present.*?(?=Did you|$)", " ", str(e).replace("\\n", " "))
        stop(f"--config={file}: {type(e).__name__}: {why}")


def _check_modes(given: Mapping[str, Any]) -> None:
    for name, kind in {"workdir": "folder", "evaluate": "folder", "points": "file"}.items():
        if name in given and (not given[name] or given[name].startswith("-")):
            stop(f"--{name}={given[name]}: expected a {kind}")
    if "evaluate" in given and len(given) > 1:
        stop(f"--evaluate tests a run as it is and takes no --{min(set(given) - {'evaluate'})}")
    if not {"evaluate", "config"} & set(given):
        stop("--config=FILE is required, such as --config=configs/gat_cora.py")
    if given.get("resume") and given.get("overwrite"):
        stop("--resume and --overwrite contradict each other")


def overrides() -> dict[str, Any]:
    """The settings given on the command line, flat: {"model.heads": 4}."""
    return config_flags.get_override_values(flags.FLAGS["config"]) if CONFIG.present else {}


def config_file() -> Path:
    return Path(os.path.relpath(config_flags.get_config_filename(flags.FLAGS["config"])))


def workdir(root: Path = Path("results")) -> Path:
    """--workdir, or results/EXPERIMENT/OVERRIDES, with -2, -3 ... where a run has ended."""
    if flags.FLAGS.workdir:
        return Path(flags.FLAGS.workdir)
    points = flags.FLAGS.points
    slug = slugged(overrides() | ({"points": Path(points).stem} if points else {})) or "default"
    folders = [root / config_file().stem / slug]
    while status(folders[-1]) != "absent":
        folders.append(folders[0].with_name(f"{slug}-{len(folders) + 1}"))
    there = folders[:-1]
    if there and (flags.FLAGS.resume or flags.FLAGS.overwrite or status(there[-1]) not in ENDED):
        return there[-1]
    return folders[-1]


def slugged(settings: Mapping[str, Any]) -> str:
    """ "model.heads=4,seeds=2": a folder's name, one for each choice of settings."""
    words = ",".join(f"{name}={value}" for name, value in settings.items())
    slug = re.sub(r"[^\w=.,+-]", "_", words)
    if len(slug.encode()) > 120:  # as long as a file system's names may be, and still one for each
        start = slug.encode()[:100].decode(errors="ignore")
        slug = f"{start}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return slug


def points(config: ConfigDict) -> tuple[dict[str, Any], ...]:
    """The points of the file --points, [{"optimizer.l2": 0.1}, ...]; else one, the config's own.

    Raises ValueError for what is none, and for settings that need a population of their own.
    """
    file = flags.FLAGS.points
    if not file:
        return ({},)
    try:
        found = json.loads(Path(file).read_bytes())
        assert found and all(isinstance(point, dict) for point in found)
    except OSError as e:
        raise ValueError(f"--points={file}: {e.strerror}") from None
    except (ValueError, AssertionError, TypeError, RecursionError):
        raise ValueError(f"--points={file}: expected a JSON list of settings") from None
    import population

    return population.check(config, found)


def about(
    config: ConfigDict, task: Any, points: Sequence[Mapping[str, Any]] = ({},)
) -> dict[str, Any]:
    """All that tells where a number came from: config.json."""
    import jax

    import population

    file = config_file().as_posix()
    changed = [f"--config.{name}={value}" for name, value in overrides().items()]
    changed += [f"--points={flags.FLAGS.points}"] if flags.FLAGS.points else []
    several = f" of each of {jax.process_count()} processes" if jax.process_count() > 1 else ""
    where = f"{cpus()} CPUs{several}"
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "experiment": config_file().stem,
        "file": file,
        "overrides": overrides(),
        "points": list(points),
        "command": shlex.join(["python", "train.py", f"--config={file}", *changed]),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "code": population.code(),
        "data": task.about,
        "device": f"{jax.device_count()} {jax.devices()[0].device_kind} devices on {where}",
        "versions": {"python": sys.version.split()[0], **versions},
        "config": json.loads(json.dumps(config.to_dict())),
    }


def configure_jax() -> None:
    """Two defaults, unless the environment says otherwise.

    Compiled programs are kept, small ones too. Each CPU is a device, so that runs are shared out
    to them: one small run cannot keep two cores busy, two runs can.
    """
    # glibc keeps what is freed, the more the larger it was, unless told a limit
    # (-3: M_MMAP_THRESHOLD): a tenth of a run's memory.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(-3, 2**17)
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
    """The CPUs that this process may use, of which Slurm does not always take the others away."""
    affine = hasattr(os, "sched_getaffinity")
    here = len(os.sched_getaffinity(0)) if affine else os.cpu_count() or 1
    return min(here, int(os.environ.get("SLURM_CPUS_PER_TASK", here)))


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that receives the signal asking to stop; a second Ctrl-C ends the process at once.

    A second SIGTERM does not: Slurm sends two at once when it preempts a job.
    """
    asked: list[int] = []

    def ask(number: int, _: Any) -> None:
        asked.append(number)
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        if len(asked) == 1:
            again = "; again to stop without saving" if number == signal.SIGINT else ""
            devices.say(f"\nsaving, then stopping{again}")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
