"""Citation graphs are the published ones, and their preparation withstands what machines do."""

import functools
import hashlib
import http.server
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow_datasets as tfds

from data import planetoid, source

LOCAL = pathlib.Path(os.environ.get("LINEAGE_DATA", "nowhere"), "planetoid").absolute()
needs_files = pytest.mark.skipif(
    not LOCAL.is_dir(), reason="LINEAGE_DATA names no folder that holds planetoid/"
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LINEAGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def digest(*arrays):
    return hashlib.sha256(b"".join(a.astype("<i4").tobytes() for a in arrays)).hexdigest()


def check(graph, nodes, features, nonzero, edges, split):
    assert graph.edges.shape == (edges, 2) and graph.edges.dtype == np.int32
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(np.unique(graph.edges, axis=0)) == edges
    assert len(graph.rows) == len(graph.columns) == len(graph.values) == nonzero
    assert graph.rows.dtype == graph.columns.dtype == graph.labels.dtype == np.int32
    assert (np.diff(graph.rows.astype(np.int64) * features + graph.columns) > 0).all()
    assert (graph.values == 1).all() and graph.values.dtype == np.float32
    assert graph.features == features and graph.columns.max() < features
    masks = np.stack([graph.train, graph.validation, graph.test])
    assert masks.shape == (3, nodes) and masks.dtype == bool
    assert masks.sum(1).tolist() == list(split) and masks.sum(0).max() == 1


def test_cora(capfd):  # GDATA-2
    graph = planetoid.read("cora")
    assert capfd.readouterr() == ("", "")
    check(graph, 2708, 1433, 49216, 5278, (140, 500, 1000))
    assert np.bincount(graph.labels).tolist() == [351, 217, 418, 818, 426, 298, 180]
    assert graph.classes == 7
    # Planetoid's node order, which is what makes splits and results comparable.
    assert graph.labels[:10].tolist() == [3, 4, 4, 0, 3, 2, 0, 3, 3, 2]
    assert graph.edges[:3].tolist() == [[0, 633], [0, 1862], [0, 2582]]
    assert graph.train[:140].all() and graph.validation[140:640].all() and graph.test[1708:].all()
    order = "da1de8db26a4fdc1d01d37d224ae035e5013db97537e6761c1a8f1e9b28e774f"
    assert digest(graph.edges, graph.labels) == order


@needs_files
def test_cora_ships_as_planetoid_published_it():
    files = {part: LOCAL / f"ind.cora.{part}" for part in planetoid.PARTS}
    edges, words, labels, split = planetoid.parse(files)
    graph = planetoid.read("cora")
    np.testing.assert_array_equal(graph.edges, edges)
    np.testing.assert_array_equal((graph.rows, graph.columns), words.nonzero())
    np.testing.assert_array_equal(graph.values, words.data)
    np.testing.assert_array_equal(graph.labels, labels)
    for part, mask in split.items():
        np.testing.assert_array_equal(getattr(graph, part), mask)
    assert (graph.features, graph.classes) == (words.shape[1], labels.max() + 1)


def test_cora_citations_have_directions_and_the_papers_their_ids():
    with np.load(planetoid.CORA) as cora:
        cited, citing = cora["citations"].T
        assert len(cited) == 5429 and len(np.unique(cora["paper_ids"])) == 2708
        assert cora["paper_id_ambiguous"].sum() == 25
        # The first line of the original cora.cites: paper 1033 cites paper 35.
        links = zip(cora["paper_ids"][cited], cora["paper_ids"][citing], strict=True)
        assert (35, 1033) in links
        assert cora["class_names"][3] == "Neural_Networks"


@needs_files
def test_citeseer():  # GDATA-1, GDATA-2
    graph = planetoid.read("citeseer")
    check(graph, 3327, 3703, 105165, 4552, (120, 500, 1000))
    assert np.bincount(graph.labels + 1).tolist() == [15, 249, 590, 668, 701, 596, 508]
    assert graph.classes == 6
    absent = graph.labels < 0
    assert not np.isin(graph.rows, np.flatnonzero(absent)).any()
    assert not (absent & (graph.train | graph.validation | graph.test)).any()
    assert np.ptp(np.flatnonzero(graph.test)) + 1 == 1015
    assert 3327 - len(np.unique(graph.edges)) == 48
    order = "01a8a57cdbe7cc49e4658238cd14130069dfb2880fb0eb382b8958b57ddd5e09"
    assert digest(graph.edges, graph.labels) == order


@needs_files
def test_pubmed_graph():  # GDATA-2
    graph = source.restricted_load(LOCAL / "ind.pubmed.graph")
    links = {(min(i, j), max(i, j)) for i, heard in graph.items() for j in heard if i != j}
    assert len(graph) == 19717 and len(links) == 44324


def test_unknown_dataset():
    with pytest.raises(ValueError, match="task.dataset = 'Cora': expected citeseer or cora"):
        planetoid.read("Cora")


def test_tfds_finds_cora(tmp_path):
    builder = tfds.builder("cora", data_dir=tmp_path, file_format="array_record")
    builder.download_and_prepare()
    [graph] = builder.as_data_source(split="full")
    assert graph["edges"].shape == (5278, 2) and graph["classes"] == 7
    assert "Sen et al. 2008" in builder.info.citation and builder.info.homepage
    assert len(tfds.data_source("cora", split="full", data_dir=tmp_path)) == 1


def test_two_processes_at_once_without_tensorflow():
    code = (
        "import sys; from data import planetoid; g = planetoid.read('cora');"
        "assert 'tensorflow' not in sys.modules; print(g.checksum, g.edges.sum())"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate(timeout=60)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert first == second and first.startswith(planetoid.Cora.checksum())


@pytest.mark.parametrize("damage", ["truncate", "garble", "no info", "no records"])
def test_damaged_cache_is_prepared_again(cache, damage):
    whole = planetoid.read("cora")
    [records] = cache.rglob("*.array_record*")
    info = records.with_name("dataset_info.json")
    content = records.read_bytes()
    if damage == "truncate":
        records.write_bytes(content[: len(content) // 2])
    elif damage == "garble":
        records.write_bytes(content[:5000] + b"garble" + content[5006:])
    else:
        (info if damage == "no info" else records).unlink()
    for array, again in zip(whole, planetoid.read("cora"), strict=True):
        np.testing.assert_array_equal(array, again)


def test_unwritable_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LINEAGE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match="file.*set LINEAGE_CACHE to a folder that can be written"):
        planetoid.read("cora")


class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


def test_restricted_load_refuses_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bomb"
    path.write_bytes(pickle.dumps(Bomb(), protocol=2))
    with pytest.raises(ValueError, match=f"bomb names {os.system.__module__}.system"):
        source.restricted_load(path)
    assert not (tmp_path / "exploded").exists()


class Number(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """One number from a file of ours, which is published nowhere."""

    VERSION = tfds.core.Version("1.0.0")
    URL = "http://lineage.invalid/seven"
    SHA256 = hashlib.sha256(b"7").hexdigest()

    @classmethod
    def checksum(cls):
        return cls.SHA256

    def _info(self):
        features = tfds.features.FeaturesDict({"number": np.int64})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {"full": self._generate_examples()}

    def _generate_examples(self):
        path = source.locate("numbers", self.URL, self.SHA256)
        yield 0, {"number": int(path.read_text()) * self.VERSION.major}


def number():
    [example] = source.load(Number, "full")
    return example["number"]


def prepare_anew(monkeypatch, version):
    monkeypatch.setattr(Number, "VERSION", tfds.core.Version(version))


@pytest.fixture
def seven(tmp_path, monkeypatch):
    """The file that Number reads, in a data folder."""
    (tmp_path / "data" / "numbers").mkdir(parents=True)
    (tmp_path / "data" / "numbers" / "seven").write_text("7")
    monkeypatch.setenv("LINEAGE_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "numbers" / "seven"


def test_nothing_stale_is_served(seven, monkeypatch):
    assert number() == 7
    prepare_anew(monkeypatch, "2.0.0")
    assert number() == 14
    prepare_anew(monkeypatch, "1.0.0")
    assert number() == 7
    seven.write_text("8")
    assert number() == 7  # what was prepared is still what was published
    monkeypatch.setattr(Number, "SHA256", hashlib.sha256(b"8").hexdigest())
    assert number() == 8


def test_wrong_file_in_the_data_folder_prepares_nothing(seven, cache):
    seven.write_text("8")
    found, published = (hashlib.sha256(b).hexdigest() for b in (b"8", b"7"))
    for _ in range(2):
        with pytest.raises(ValueError) as error:
            number()
        message = f"{seven} has SHA-256 {found}, but {Number.URL} was published with {published}"
        assert str(error.value) == message
    assert not list(cache.rglob("*.array_record*"))


@pytest.mark.parametrize("folder", ["not set", "elsewhere"])
def test_missing_file_without_network(seven, tmp_path, monkeypatch, folder):
    monkeypatch.delenv("LINEAGE_DATA")
    if folder == "elsewhere":
        monkeypatch.setenv("LINEAGE_DATA", folder := str(tmp_path))
    start = time.monotonic()
    with pytest.raises(OSError) as error:
        number()
    assert time.monotonic() - start < 10
    message = str(error.value)
    assert "\n" not in message and message.startswith("numbers/seven is not in LINEAGE_DATA")
    assert f"LINEAGE_DATA ({folder})" in message and Number.URL in message


@pytest.fixture
def served(seven, monkeypatch):
    """The data folder published by a server on this machine, and nowhere else."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=seven.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(Number, "URL", f"http://127.0.0.1:{server.server_port}/seven")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("LINEAGE_DATA")
        yield server
        server.shutdown()


def test_download_once(served, cache, monkeypatch):
    assert number() == 7
    served.shutdown()
    served.server_close()
    prepare_anew(monkeypatch, "2.0.0")
    assert number() == 14
    (cache / "downloads" / "numbers" / "seven").write_text("8")
    assert number() == 14
    prepare_anew(monkeypatch, "3.0.0")
    with pytest.raises(OSError, match="seven is not in LINEAGE_DATA"):  # rather than the 8
        number()


def test_wrong_download_prepares_nothing(served, seven, cache):
    seven.write_text("8")
    with pytest.raises(ValueError, match="downloads/numbers/seven has SHA-256"):
        number()
    seven.unlink()
    with pytest.raises(OSError, match="not in LINEAGE_DATA .not set.*404") as error:
        number()
    assert "\n" not in str(error.value)
    assert not list(cache.rglob("*.array_record*"))
    seven.write_text("7")
    assert number() == 7
