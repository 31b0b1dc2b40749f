"""Where data comes from: published files found or fetched, prepared once by TFDS, read as numpy.

Two environment variables say where:

    LINEAGE_DATA    a folder of published files already on this machine; only ever read
    LINEAGE_CACHE   the folder for what is downloaded and prepared (default: the user's cache)

TensorFlow is never imported: everything is stored as array records.
"""

import collections
import contextlib
import dataclasses
import hashlib
import io
import os
import pathlib
import pickle
import shutil
import threading
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import filelock
import numpy as np
import platformdirs
from absl import logging


class File(NamedTuple):
    """A published file.

    Attributes:
        name: where LINEAGE_DATA keeps it, such as "planetoid/ind.citeseer.x".
        url: where it is published.
        sha256: the digest its bytes must have, in hexadecimal.
        size: its length in bytes.
    """

    name: str
    url: str
    sha256: str
    size: int


def url_infos(files: Iterable[File]) -> dict[str, Any]:
    """The files' checksums in TFDS's own words, for a builder's `url_infos`."""
    from tensorflow_datasets.core.download.checksums import UrlInfo

    return {
        f.url: UrlInfo(size=f.size, checksum=f.sha256, filename=pathlib.Path(f.name).name)
        for f in files
    }


def cache() -> pathlib.Path:
    """The folder for downloaded and prepared data; it need not exist yet."""
    folder = os.environ.get("LINEAGE_CACHE")
    path = pathlib.Path(folder) if folder else platformdirs.user_cache_path("lineage")
    return path.expanduser().absolute()


def sha256(path: pathlib.Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def locate(file: File, manager: Any) -> pathlib.Path:
    """A local copy of a published file, its checksum verified: from LINEAGE_DATA, else downloaded.

    Args:
        file: what to find.
        manager: the TFDS download manager, which must know the file's checksum (`url_infos`).

    Raises:
        ValueError: the local copy has the wrong checksum.
        OSError: the file is not on this machine and cannot be downloaded.
    """
    folder = os.environ.get("LINEAGE_DATA")
    path = pathlib.Path(folder or "", file.name).expanduser()
    if not (folder and path.is_file()):
        path = _download(file, manager)
    # Downloads too: what TFDS has kept from an earlier one it does not check again.
    if (found := sha256(path)) != file.sha256:
        raise ValueError(f"{path} has SHA-256 {found}, but {file.sha256} was published")
    return path


def _download(file: File, manager: Any) -> pathlib.Path:
    from tensorflow_datasets.core.download.resource import get_dl_fname

    kept = get_dl_fname(file.url, file.sha256)
    downloads = pathlib.Path(manager.download_dir)
    if not (any(downloads.glob(f"*/{kept}")) or _reachable(file.url)):
        raise FileNotFoundError(
            f"{file.name} is missing: "
            f"LINEAGE_DATA ({os.environ.get('LINEAGE_DATA') or 'not set'}) has no such file and "
            f"{urllib.parse.urlsplit(file.url).netloc} cannot be reached; save {file.url} as "
            f"{file.name} in a folder and set LINEAGE_DATA to that folder"
        )
    try:
        return pathlib.Path(manager.download(file.url))
    except Exception as error:  # TFDS has a type of its own for each way a download fails
        why = " ".join(str(error).split())
        raise OSError(f"{file.name} cannot be downloaded from {file.url}: {why}") from error


def _reachable(url: str, seconds: float = 5) -> bool:
    """Whether anybody answers at a URL, whatever the answer.

    TFDS retries an unresolvable host for minutes, hence a look beforehand. It is taken by the
    client TFDS uses, so that the same proxies and certificates count, and in a thread because no
    time-out covers the host name's resolution.
    """
    import requests

    answered = threading.Event()

    def ask() -> None:
        with contextlib.suppress(requests.RequestException):
            requests.head(url, timeout=seconds)
            answered.set()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()


def restricted_load(path: pathlib.Path) -> Any:
    """A pickle of Python 2 that holds numpy arrays, CSR matrices, lists and dicts; nothing else.

    A pickle may name any function to call. Here a name stands for one of six known objects,
    whichever module held them when the file was written.

    Raises:
        ValueError: the file names anything else.
    """
    from scipy.sparse import csr_matrix

    admitted = {
        ("__builtin__", "list"): list,
        ("collections", "defaultdict"): collections.defaultdict,
        ("numpy", "dtype"): np.dtype,
        ("numpy", "ndarray"): np.ndarray,
        # An array itself says what rebuilds it: no private module of numpy need be named.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): csr_matrix,
    }

    class Restricted(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) not in admitted:
                raise ValueError(f"{path} names {module}.{name}, which is not plain data: refused")
            return admitted[module, name]

    with open(path, "rb") as f:
        return Restricted(f, encoding="latin1").load()


def load(builder_class: Any, config: Any = None) -> dict[str, list[dict[str, Any]]]:
    """All splits of a data set, each a list of examples in numpy; prepared first if need be.

    What is prepared lies in a folder named by everything it depends on, so that another version,
    option or source is another folder and never mistaken for this one. Damage is mended by
    preparing again.

    Args:
        builder_class: a TFDS builder with a `checksum()` of what it reads.
        config: its `BuilderConfig`, a dataclass, if it has options.

    Raises:
        OSError: the cache cannot be written, or a file is missing (see `locate`).
        ValueError: a file has the wrong checksum.
    """
    options = dataclasses.asdict(config) if config else None
    recipe = f"{builder_class.VERSION} {options} {builder_class.checksum()}"
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    folder = cache() / f"{builder_class.name}-{digest}"

    def build() -> Any:
        return builder_class(data_dir=folder, config=config, file_format="array_record")

    def read() -> dict[str, list[dict[str, Any]]]:
        splits = build().as_data_source()
        if not splits:
            raise FileNotFoundError(f"nothing is prepared in {folder}")
        return {split: list(examples) for split, examples in splits.items()}

    with _quiet():
        # TFDS meets absent, unfinished and damaged data with a dozen types of error. Whichever
        # it is, preparing is the answer, and what is truly wrong shows there.
        with contextlib.suppress(Exception):
            return read()
        with _lock(folder):
            with contextlib.suppress(Exception):
                return read()  # another process made it while this one waited
            shutil.rmtree(folder, ignore_errors=True)
            build().download_and_prepare(download_dir=cache() / "downloads")
            return read()


@contextlib.contextmanager
def _lock(folder: pathlib.Path) -> Iterator[None]:
    lock = filelock.FileLock(f"{folder}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written ({error.strerror or error}): "
            "set LINEAGE_CACHE to a folder that can be"
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence for TFDS, which prints, draws bars and warns of what is no news here."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(verbosity)
