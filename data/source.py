"""Where data comes from: published files found or fetched, prepared once by TFDS, read as numpy.

    LINEAGE_DATA    a folder of published files already on this machine; only ever read
    LINEAGE_CACHE   the folder for what is downloaded and prepared (default: the user's cache)

TensorFlow is never imported: everything is stored as array records.
"""

import collections
import contextlib
import functools
import hashlib
import http.client
import io
import os
import pickle
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import platformdirs
from scipy.sparse import csr_matrix


def cache() -> Path:
    """The folder for downloaded and prepared data; it need not exist yet."""
    folder = os.environ.get("LINEAGE_CACHE") or platformdirs.user_cache_path("lineage")
    return Path(folder).expanduser().absolute()


def sha256(path: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def locate(folder: str, url: str, digest: str, every: str = "") -> Path:
    """The path of a published file: in that folder of LINEAGE_DATA, or else downloaded, once.

    OSError if it cannot be had, ValueError if its bytes are not what was published. `every` is the
    address of all files of its kind, {a,b,c}, for who has to save them by hand.
    """
    data, file = os.environ.get("LINEAGE_DATA"), Path(folder, url.rpartition("/")[2])
    path = Path(data or "", file).expanduser()
    if not (data and path.is_file()):
        path = cache() / "downloads" / file
        if not (path.is_file() and sha256(path) == digest):
            try:  # not with TFDS, which goes on trying for minutes when there is no network
                content = urllib.request.urlopen(url, timeout=5).read()
            except (OSError, http.client.HTTPException) as error:
                raise OSError(
                    f"{file} is not in LINEAGE_DATA ({data or 'not set'}) and cannot be downloaded "
                    f"({error}): save {every or url} in FOLDER/{folder} and set LINEAGE_DATA=FOLDER"
                ) from error
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    if (found := sha256(path)) != digest:
        raise ValueError(f"{path} has SHA-256 {found}, but {url} was published with {digest}")
    return path


# A pickle may name any function to call. These are plain data: today's objects, by the modules
# that held them when Planetoid's files were written, with Python 2.
PLAIN = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): collections.defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    # An array itself says what rebuilds it: no private module of numpy need be named.
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): csr_matrix,
}


def restricted_load(path: Path) -> Any:
    """Reads a pickle of numpy arrays, CSR matrices, lists, dicts; ValueError if it names more."""

    class Restricted(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) not in PLAIN:
                raise ValueError(f"{path} names {module}.{name}, which is not plain data: refused")
            return PLAIN[module, name]

    with open(path, "rb") as f:
        return Restricted(f, encoding="latin1").load()


def load(builder_class: Any, split: str) -> list[dict[str, Any]]:
    """A split of a TFDS builder, whose `checksum()` tells the files that it is made from.

    It is prepared on first use, and again where the cache is damaged. Errors are those of `locate`,
    and OSError if the cache cannot be written.
    """
    # TFDS adds the version to the path: neither new code nor a new source meets old data.
    folder = cache() / f"{builder_class.name}-{builder_class.checksum()[:16]}"
    build = functools.partial(builder_class, data_dir=folder, file_format="array_record")
    try:
        lock = filelock.FileLock(f"{folder}.lock").acquire()
    except OSError as error:
        raise OSError(f"{error}: set LINEAGE_CACHE to a folder that can be written") from error
    quiet = io.StringIO()  # for TFDS, which prints and draws bars
    with lock, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        # TFDS meets absent, unfinished and damaged data with a dozen types of error. Whichever
        # it is, preparing is the answer, and what is truly wrong shows there.
        with contextlib.suppress(Exception):
            return list(build().as_data_source(split))
        shutil.rmtree(folder, ignore_errors=True)
        builder = build()
        builder.download_and_prepare()
        return list(builder.as_data_source(split))
