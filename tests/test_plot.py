"""The command that draws: what the files of a folder say, and what is left out and why."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_figures import LABELS, edges, rows
from test_table import DATA, folder

from results import plot
from results.files import PICTURES, json_lines, read_json, write_json
from results.outputs import Edges

DRAWN = [name for name in PICTURES if name != "ranking"]  # of a model of classes
BOTH = [f"{name}.{kind}" for name in DRAWN for kind in ("png", "pdf")]
NO_RANKING = "ranking (the outputs are no scores of yes-or-no questions)"


def complete(path, values=(0.80, 0.82, 0.84), **settings):
    """A run folder with everything a picture is made of: a model with attention, of two classes."""
    folder(path, list(values), **settings)
    summary = read_json(path / "summary.json")
    summary["splits"]["validation"] = summary["splits"]["test"]
    write_json(path / "summary.json", summary)
    steps = {10: dict.fromkeys(range(len(values)), 0.5), 20: dict(enumerate(values))}
    (path / "metrics.jsonl").write_text(json_lines([*rows(steps), *rows(steps, "train", "loss")]))
    save(path, len(values))
    return path


def save(path, runs, **changed):
    rng = np.random.default_rng(0)
    arrays = {
        "targets": np.tile(LABELS, (runs, 1)),
        "mask": np.tile([True, True, True, False], (runs, 1)),
        "outputs": rng.normal(size=(runs, 4, 2)),
        "best": np.array(0),
        "features/0": rng.normal(size=(4, 3)),
        **{f"Layer_0/attention/0/{k}": a for k, a in edges()._asdict().items()},
        **changed,
    }
    np.savez(path / "outputs.npz", **{k: a for k, a in arrays.items() if a is not None})


@pytest.fixture
def show(capsys):
    """Runs the command; its exit code, the names of the files it says it wrote, and its stderr."""

    def run(*words):
        code = plot.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, [Path(line).name for line in out.splitlines()], err

    return run


def files(path):
    return sorted(p.name for p in path.iterdir())


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_run_is_drawn_into_its_folder(tmp_path, show):  # PLATFORM-1
    path = complete(tmp_path / "Läufe, the first")
    before = files(path)
    assert show(path) == (0, BOTH, f"{path}: left out: {NO_RANKING}\n")
    assert files(path) == sorted(before + BOTH)
    for name in DRAWN:
        assert (path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        text = (path / f"{name}.pdf").read_bytes()
        assert b"/FontFile2" in text and b"/Type3" not in text and b"Date" not in text
    environment = os.environ | {"DISPLAY": ":99", "MPLBACKEND": "tkagg", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "results.plot", str(path), f"--output={tmp_path / 'a' / 'b'}"]
    root = Path(plot.__file__).parents[1]
    subprocess.run(command, check=True, cwd=root, env=environment, capture_output=True)
    for name in BOTH:  # needs no display, and gives the same bytes
        assert (tmp_path / "a" / "b" / name).read_bytes() == (path / name).read_bytes()


def test_one_format_and_another_folder(tmp_path, show):
    path = complete(tmp_path / "run")
    before = files(path)
    code, names, _ = show(path, f"--output={tmp_path / 'out'}", "--format=png")
    assert (code, names) == (0, [f"{name}.png" for name in DRAWN])
    assert files(tmp_path / "out") == sorted(names) and files(path) == before


def test_captions_say_what_is_drawn(tmp_path):
    run = complete(
        tmp_path / "run",
        [0.80, 0.10, 0.84],
        failed=[1],
        of={"data": DATA | {"classes": ["a_b", "c"]}},
    )
    found = plot.of_run(run)
    notes = {name: figure.get_supxlabel().replace("\n", " ") for name, figure in found.items()}
    for name in ("curves", "seeds", "confusion"):
        assert notes[name].endswith("Failed and left out: seed 1 at step 7.")
        assert notes[name].startswith("GCN on cora, public split") and "2 runs" in notes[name]
    assert "± sample standard deviation" in notes["curves"]
    assert "80.9 to 82.1 %" in notes["seeds"] and "best validation loss" in notes["features"]
    [ax] = found["confusion"].axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a b", "c"]
    assert [text.xy for text in found["seeds"].axes[0].texts if "81.5" in text.get_text()]
    other = plot.of_run(complete(tmp_path / "b", overrides={"steps": 9}))["seeds"].axes[0]
    assert not [text for text in texts(other) if "published" in text]  # of other settings


@pytest.mark.parametrize("values", [[0.8], [0.8] * 100])
def test_one_run_and_a_hundred(tmp_path, show, values):
    code, names, _ = show(complete(tmp_path / "run", values), "--format=png")
    assert (code, names) == (0, [f"{name}.png" for name in DRAWN])


def test_what_is_missing_is_named_in_a_line(tmp_path, show):
    path = complete(tmp_path / "run")
    (path / "outputs.npz").unlink()
    code, names, err = show(path, "--format=png")
    assert (code, names) == (0, ["curves.png", "seeds.png"])
    left = "confusion, features, attention, graph, ranking (there is no outputs.npz)"
    assert err == f"{path}: left out: {left}\n"
    save(
        path, 3, **{"features/0": None}, **{f"Layer_0/attention/0/{k}": None for k in Edges._fields}
    )
    (path / "metrics.jsonl").unlink()
    _, names, err = show(path, "--format=png")
    assert names == ["seeds.png", "confusion.png"]
    assert err == (
        f"{path}: left out: curves (metrics.jsonl has no rows); "
        "features (the model sows no features); attention (the model sows no attention); "
        f"graph (the model sows no attention over edges); {NO_RANKING}\n"
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"targets": np.zeros((3, 4))}, "the outputs are no scores of classes"),
        ({"outputs": np.zeros((3, 4, 25))}, "25 classes are too many to see"),
        ({"features/0": np.ones((4, 3))}, "the features are all the same, or not finite"),
        ({"features/0": np.ones((5, 3))}, "features [5, 3] are not those of examples, two or more"),
    ],
)
def test_other_outputs_have_no_such_picture(tmp_path, show, changed, why):
    path = complete(tmp_path / "run")
    save(path, 3, **changed)
    code, names, err = show(path, "--format=png")
    assert code == 0 and why in err and "features.png" not in names and "attention.png" in names


def test_yes_or_no_is_ranked(tmp_path, show):
    path = complete(tmp_path / "run")
    truth = np.tile([1.0, 0.0, 1.0, 0.0], (3, 1))
    scores = np.tile([0.9, 0.1, 0.4, 0.6], (3, 1))  # 3 of 4 pairs are in order
    save(path, 3, targets=truth, outputs=scores, mask=np.ones((3, 4), bool))
    _, names, _ = show(path, "--format=png")
    assert "ranking.png" in names
    left, right = plot.of_run(path)["ranking"].axes
    assert "AUC 0.750, AP 0.833" in left.get_legend_handles_labels()[1]
    several = [np.stack([a, a], -1) for a in (truth, scores)]
    mask = np.ones((3, 4, 2), bool)
    mask[..., 1] = [True, False, True, False]  # no negatives: no curve
    save(path, 3, targets=several[0], outputs=several[1], mask=mask)
    left, _ = plot.of_run(path)["ranking"].axes
    assert left.get_legend_handles_labels()[1] == ["0: AUC 0.750, AP 0.833"]


def test_a_graph_of_a_batch_is_drawn_with_its_own_numbers(tmp_path):  # GDATA-5
    """Two graphs in one: of 70 nodes, too many to see, and of three, which hear each other."""
    path = complete(tmp_path / "run")
    ring = np.arange(70)
    source, target = np.append(ring, [70, 71, 72]), np.append((ring + 1) % 70, [71, 72, 72])
    weight = np.append(np.ones(70), [0.25, 0.5, 1.0])[:, None]
    parts = {"source": source, "target": target, "weight": weight}
    save(path, 3, **{f"Layer_0/attention/0/{name}": array for name, array in parts.items()})
    [ax] = plot.of_run(path)["graph"].axes
    assert texts(ax)[:3] == ["0", "1", "2"]
    [lines] = ax.collections[:1]
    assert np.allclose(lines.get_linewidths(), [0.6, 1.2]) and len(lines.get_paths()) == 2


def test_attention_over_all_pairs_is_a_map(tmp_path, show):
    path, none = (
        complete(tmp_path / "run"),
        {f"Layer_0/attention/0/{k}": None for k in Edges._fields},
    )
    weights = np.random.default_rng(0).random((2, 5, 3, 4, 1))
    layers = {f"Block_{i}/Mixer/attention/0": weights + i for i in (10, 9)}
    save(path, 3, **none, **layers)
    axes = plot.of_run(path)["attention"].axes
    np.testing.assert_array_equal(axes[0].images[0].get_array(), weights[0, 0, ..., 0] + 9)
    assert [ax.get_ylabel() for ax in axes[:2]] == ["layer 1", "layer 2"]
    save(path, 3, **none, **{"attention/0": np.ones((2, 65, 3, 1))})
    assert "more than 64 positions are too many to see" in show(path, "--format=png")[2]


def test_an_unfinished_run_has_its_curves(tmp_path, show):
    path = complete(tmp_path / "run")
    (path / "summary.json").unlink()
    code, names, err = show(path, "--format=png")
    assert (code, names) == (0, ["curves.png"])
    assert err == f"{path}: left out: {', '.join(PICTURES[1:])} (the run is unfinished)\n"


def test_of_runs_that_all_failed_there_are_curves(tmp_path, show):
    path = complete(tmp_path / "run", [0.1, 0.2], failed=[0, 1])
    code, names, err = show(path, "--format=png")
    assert (code, names) == (0, ["curves.png"])
    assert err == f"{path}: left out: {', '.join(PICTURES[1:])} (every run failed)\n"
    other = complete(tmp_path / "other", overrides={"steps": 9})
    code, names, err = show(path, other, f"--output={tmp_path}", "--format=png")
    assert (code, names) == (0, ["parameters.png", "seconds.png"])
    assert err == "gcn_cora: every run failed: left out\n"


@pytest.mark.parametrize("file", ["config.json", "summary.json", "metrics.jsonl", "outputs.npz"])
def test_a_damaged_file_is_named_and_nothing_written(tmp_path, show, file):
    path = complete(tmp_path / "run")
    (path / file).write_bytes((path / file).read_bytes()[:99] + b"\n\n")
    before = files(path)
    code, names, err = show(path)
    assert (code, names, err.count("\n")) == (2, [], 1)
    assert err.startswith(f"error: {path / file}") and files(path) == before


def test_outputs_of_another_run_are_named(tmp_path, show):
    path = complete(tmp_path / "run")
    save(path, 2)
    code, names, err = show(path)
    assert (code, names) == (2, []) and "outputs.npz is damaged: it is not of 3 runs" in err


def test_what_is_no_run_is_said_in_a_line(tmp_path, show):
    path = complete(tmp_path / "runs" / "a")
    (tmp_path / "other").mkdir()
    for where in (tmp_path / "other", tmp_path / "none"):
        assert show(where) == (2, [], f"error: {where}: there is no run\n")
        assert show(path, where, "--output=x") == (2, [], f"error: {where}: there is no run\n")
    said = "error: say --output=FOLDER: where the pictures of many runs go\n"
    assert show(tmp_path / "runs") == (2, [], said)
    (tmp_path / "file").touch()
    code, names, err = show(path, f"--output={tmp_path / 'file'}", "--format=png")
    assert (code, names, err.count("\n")) == (2, [], 2)  # the first says what is left out


def test_a_disk_that_is_full_leaves_nothing_half_written(tmp_path, show, monkeypatch):
    path = complete(tmp_path / "run")
    before = files(path)

    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[:9])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    code, names, err = show(path, "--format=png")
    assert (code, names, err.count("\n")) == (2, [], 2) and "No space left" in err
    assert files(path) == before


def test_runs_are_compared_where_they_may_be(tmp_path, show):
    complete(tmp_path / "runs" / "a", [0.80, 0.82])
    complete(tmp_path / "runs" / "b" / "c", [0.84, 0.1], seed=2, failed=[1])
    complete(tmp_path / "runs" / "wide", [0.7], overrides={"model.width": 32})
    complete(tmp_path / "runs" / "d", [0.6], of={"data": DATA | {"split": "random (10)"}})
    (complete(tmp_path / "runs" / "e") / "summary.json").unlink()
    code, names, err = show(tmp_path / "runs", f"--output={tmp_path / 'out'}")
    assert code == 0 and names == [
        f"{n}.{k}" for n in ("parameters", "seconds") for k in ("png", "pdf")
    ]
    assert err == f"{tmp_path / 'runs' / 'e'} is unfinished: left out\n"
    found = plot.of_many([tmp_path / "runs"])
    public, random = found["seconds"].axes
    assert (public.get_title(), random.get_title()) == (
        "cora, public split",
        "cora, random (10) split",
    )
    # Three runs and one that failed took three seconds.
    np.testing.assert_allclose(public.lines[0].get_xydata(), [[0.75, 82], [1.5, 70]])
    assert sorted(texts(public)) == ["gcn_cora", "gcn_cora model.width=32"]
    assert texts(random) == ["GCN"]
    complete(tmp_path / "runs" / "new", of={"code": "n3w", "date": "2026-02-03"})
    names = texts(plot.of_many([tmp_path / "runs"])["seconds"].axes[0])
    assert {"gcn_cora, 2026-01-02", "gcn_cora, 2026-02-03"} < set(names)
    note = found["seconds"].get_supxlabel().replace("\n", " ")
    assert note.endswith("over 1 to 3 runs. Measured on: 2 x cpu, 2 CPUs.")


def test_only_pictures_need_matplotlib():
    code = "import sys, results.table, results.run; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(plot.__file__).parents[1])
