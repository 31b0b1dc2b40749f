"""Pictures of a sweep: what its folders say, never its test split; what is left out and why."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.style
import numpy as np
import pytest
from test_sweeps import TEST, grid, model, runs, tiny_sweep
from test_table import DATA, folder

from results import figures, grids, plot, sweep_pictures
from results.files import PICTURES, SWEEP_PICTURES, read_json, write_json
from results.run import Folder
from results.sweeps import NoSweep, Sweep

ROOT = Path(plot.__file__).parents[1]
ONE = ["curves", "setting"]
SEVERAL = ["curves", "heatmap", "parallel", "importance"]
COSTS = ["parameters", "seconds"]


@pytest.fixture(autouse=True)
def style():
    with matplotlib.style.context(figures.STYLE, after_reset=True):
        yield


@pytest.fixture
def tiny(tmp_path):
    return tiny_sweep(tmp_path / "sweep")


@pytest.fixture
def show(capsys):
    """Runs the command; its exit code, the pictures it says it drew, and its stderr."""

    def run(*words):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code = plot.main([*map(str, words), "--format=png"])
        out, err = capsys.readouterr()
        return code, [Path(line).stem for line in out.splitlines()], err

    return run


def note(figure):
    return figure.get_supxlabel().replace("\n", " ")


def texts(ax):
    return [text.get_text() for text in ax.texts]


# ---- What is a sweep


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, "the runs differ in no setting"),
        ({"of": {"experiment": "gat_cora"}}, "of one experiment, these runs of gat_cora, gcn_cora"),
        ({"of": {"data": DATA | {"split": "own"}}}, "of one data set or split, these runs of"),
        ({"overrides": model(width=8), "failed": [0]}, "fewer than two points came to something"),
    ],
)
def test_what_is_no_sweep(tmp_path, show, changed, why):
    runs(tmp_path / "a", [0.5])
    runs(tmp_path / "b", [0.5], **changed)
    with pytest.raises(NoSweep, match=why):
        Sweep([tmp_path])
    _, drawn, _ = show(tmp_path, f"--output={tmp_path / 'out'}")
    assert drawn == COSTS  # they are compared as other runs are
    for words in (["--settings=width,l2"], []):
        code, drawn, err = show(tmp_path, *words)
        assert (code, drawn, err.count("\n")) == (2, [], 1) and why in err
        write_json(tmp_path / "sweep.json", {"space": {}})


def test_no_validation_no_sweep(tmp_path, show):
    for width in (8, 16):
        path = folder(tmp_path / str(width), [0.5], overrides=model(width=width))
        summary = read_json(path / "summary.json")
        del summary["splits"]["validation"]
        write_json(path / "summary.json", summary)
    write_json(tmp_path / "sweep.json", {})
    code, _, err = show(tmp_path)
    assert code == 2 and err.endswith("16 has no validation accuracy\n") and err.count("\n") == 1


def test_a_few_bad_values_do_not_take_all_colours():
    values = np.array([0.1, 0.8, 0.81, 0.82, 0.83])
    assert grids.limits(values, False) == (pytest.approx(0.77), 0.83, "min")
    assert grids.limits(1 - values, True) == (pytest.approx(0.17), pytest.approx(0.23), "max")
    assert grids.limits(np.array([1.0, 1.0]), False) == (0.5, 1.5, "neither")


# ---- The pictures


def study(top, *pair):
    sweep = Sweep([top])
    return sweep_pictures.Study(sweep, sweep.chosen(pair) if pair else ())


def test_cells_are_the_best_over_other_settings(tiny):
    figure = sweep_pictures.heatmap(study(tiny, "learning_rate", "width"))
    ax = figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("learning rate", "width")
    names = [
        [t.get_text() for t in labels] for labels in (ax.get_xticklabels(), ax.get_yticklabels())
    ]
    assert names == [["1e-3", "1e-2"], ["32", "16", "8"]]  # as the manifest has them
    found = {text.xy: text.get_text() for text in ax.texts if "±" not in text.get_text()}
    assert found == {(0, 1): "80.0", (1, 1): "40.0", (0, 2): "60.0", (1, 2): "70.0"}
    assert [t for t in texts(ax) if "±" in t] == ["±1.4"] * 4
    hatched = [p.get_xy() for p in ax.patches if p.get_hatch()]
    assert hatched == [(-0.5, -0.5), (0.5, -0.5)]  # width 32 is not there
    edged = [p.get_xy() for p in ax.patches if not p.get_fill()]
    assert edged == [(-0.5, 0.5)]
    said = note(figure)
    assert (
        "best by it over l2" in said and "width 16, learning rate 1e-3, l2 0: 80.0 ± 1.4 %" in said
    )
    assert "1 point failed: width 16, learning rate 1e-2, l2 5e-4." in said
    assert "1 folder without a result" in said


def test_a_failed_cell_is_crossed(tiny):
    write_json(tiny / "sweep.json", {})
    for file in (tiny / "model.width=8").iterdir():
        file.unlink()
    ax = sweep_pictures.heatmap(study(tiny)).axes[0]
    assert {t.xy: t.get_text() for t in ax.texts if "±" not in t.get_text()} == {
        (0, 0): "80.0",
        (1, 0): "40.0",
        (0, 1): "70.0",
        (1, 1): "×",
    }


def test_importance_of_a_full_grid(tmp_path):
    values = [0.55, 0.65, 0.85, 1.15]  # rates explain 16, decays 4, both 1 of 21
    runs(tmp_path / "a", values, grid([0.001, 0.01], [0.0, 0.1]))
    figure = sweep_pictures.importance(study(tmp_path))
    [ax] = figure.axes
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.array([1600, 400, 100]) / 21, rtol=1e-5)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["learning rate", "l2", "interactions"] and texts(ax) == ["76 %", "19 %", "5 %"]
    assert "exact on this full grid" in note(figure)


def test_importance_without_optuna_says_what_to_install(tmp_path, show, monkeypatch):
    points = grid(np.geomspace(1e-4, 1e-1, 9).tolist(), [0.0, 0.1])[:-1]
    values = np.linspace(0.5, 0.8, 17).tolist()
    top = runs(tmp_path / "a", values, points)
    assert "fANOVA" in note(sweep_pictures.importance(study(top)))
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, drawn, err = show(top)
    assert code == 0 and "importance" not in drawn
    assert 'importance (the points are no full grid: pip install "lineage[sweep]")' in err


def test_curves_are_of_all_runs_with_a_value(tmp_path):
    points = [{"optimizer.learning_rate": r} for r in (0.1, 0.001)]
    stops = [10, 30, 30, 30]
    top = runs(tmp_path / "a", [0.2, 0.4, 0.6, 0.8], points, stops=stops)
    figure = sweep_pictures.curves(study(top))
    loss, accuracy = figure.axes
    assert (loss.get_title("left"), accuracy.get_title("left")) == ("loss", "accuracy (%)")
    low, high = (line.get_ydata() for line in accuracy.lines)  # ascending rates
    np.testing.assert_allclose(high, [30] * 3)  # the run that stopped is still in it
    np.testing.assert_allclose(low, [70] * 3)
    assert sorted(texts(accuracy)) == ["0.001", "0.1"] or sorted(texts(accuracy)) == [
        "1e-1",
        "1e-3",
    ]
    assert "A run that has stopped counts on" in note(figure)
    assert accuracy.lines[0].get_color() != accuracy.lines[1].get_color()


def test_many_values_share_a_line(tmp_path):
    rates = np.geomspace(1e-4, 1e-1, 20).tolist()
    points = [{"optimizer.learning_rate": rate} for rate in rates]
    figure = sweep_pictures.curves(study(runs(tmp_path / "a", [0.5] * 20, points)))
    assert len(figure.axes[1].lines) == 4 and "taken together in equal parts" in note(figure)


def test_one_setting_is_a_line(tmp_path, show):
    points = [{"optimizer.learning_rate": r} for r in (0.1, 0.001, 0.01)]
    top = runs(tmp_path / "a", [0.2, 0.4, 0.6, 0.8, 0.5, 0.5], points)
    figure = sweep_pictures.setting(study(top))
    [ax] = figure.axes
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[-3, 70], [-2, 50], [-1, 30]], atol=1e-9)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1e-3", "1e-2", "1e-1"]
    code, drawn, err = show(top)
    assert (code, drawn) == (0, ONE)
    left = "parameters (every point has 23,040 parameters); seconds (every point took 0.25 s)"
    assert err == f"{top}: left out: {left}\n"


def test_lines_of_a_parallel_picture_end_at_their_metric(tiny):
    ax = sweep_pictures.parallel(study(tiny)).axes[0]
    bold = [p for p in ax.patches if p.get_linewidth() == 2]
    assert len(ax.patches) == 8 and len(bold) == 1  # seven points; the best has an edge
    assert bold[0].get_path().vertices[-1].tolist() == [3, 1]
    ends = sorted(p.get_path().vertices[-1][1] for p in ax.patches)
    np.testing.assert_allclose(np.unique(np.round(ends, 6)), [0, 0.25, 0.5, 0.75, 1], atol=1e-6)


def test_costs_have_the_front_by_validation(tiny):
    figure = sweep_pictures.parameters(study(tiny))
    [ax] = figure.axes
    np.testing.assert_allclose(
        ax.lines[0].get_xydata(), [[8000, 70], [16000, 80], [16000, 80]], atol=1e-6
    )
    assert texts(ax) == ["1", "2"]
    lines = figure.get_supxlabel().splitlines()
    assert "2: width 16, learning rate 1e-3, l2 0: 80.0 ± 1.4 %" in lines


def test_the_test_split_is_nowhere(tiny):
    for figure in plot.of_sweep(Sweep([tiny]), (), "").values():
        said = [note(figure), *(t for ax in figure.axes for t in texts(ax))]
        assert not any("98." in t or "99." in t or "test accuracy" in t for t in said)
        for ax in figure.axes:
            data = [line.get_ydata() for line in ax.lines] + [np.empty(0)]
            assert not np.isclose(np.concatenate(data), 100 * TEST).any()


# ---- The command


def test_a_sweep_is_drawn_into_its_folder(tiny, show, tmp_path):
    said = f"{tiny / 'model.width=32'} is unfinished: left out\n"
    left = f"{tiny}: left out: importance (7 points: a full grid is needed, or 8 points)\n"
    drawn = [name for name in SEVERAL + COSTS if name != "importance"]
    assert show(tiny) == (0, drawn, said + left)
    assert sorted(p.stem for p in tiny.glob("*.png")) == sorted(drawn)
    environment = os.environ | {"DISPLAY": ":99", "MPLBACKEND": "tkagg", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "results.plot", str(tiny), f"--output={tmp_path / 'out'}"]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
    for name in drawn:  # the same bytes, and as PDF with its letters
        file = f"{name}.png"
        assert (tmp_path / "out" / file).read_bytes() == (tiny / file).read_bytes()
        text = (tmp_path / "out" / f"{name}.pdf").read_bytes()
        assert b"/FontFile2" in text and b"/Type3" not in text and b"Date" not in text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("learning_rat,l2", "'learning_rat' is none that varies; did you mean 'optimizer.learning"),
        ("rate,l2", "'rate' is none that varies"),
        ("l2", "expected two settings"),
        ("l2,optimizer.l2", "expected two settings"),
    ],
)
def test_settings_that_are_none_are_named(tiny, show, words, why):
    code, drawn, err = show(tiny, f"--settings={words}")
    assert (code, drawn, err.count("\n")) == (2, [], 1)
    assert err.startswith("error: --settings") and why in err
    assert not list(tiny.glob("*.png"))


def test_settings_of_a_single_run_are_an_error(tmp_path, show):
    path = runs(tmp_path / "a", [0.5])
    said = f"error: {path}: the runs differ in no setting\n"
    assert show(path, "--settings=width,l2") == (2, [], said)


def test_several_folders_need_an_output(tiny, show):
    parts = [tiny / f"model.width={width}" for width in (8, 16)]
    said = "error: say --output=FOLDER: where the pictures of many runs go\n"
    assert show(*parts) == (2, [], said)


def test_an_unfinished_population_has_its_curves(tmp_path, show):
    points = [{"optimizer.learning_rate": r} for r in (0.1, 0.001)]
    path = runs(tmp_path / "a", [0.5, 0.6], points)
    (path / "summary.json").unlink()
    assert show(path)[:2] == (0, ["curves"])


def rate(*values):
    return [{"optimizer.learning_rate": v} for v in values]


CASES = {
    "one number": lambda top: runs(top, [0.5, 0.6, 0.55], rate(0.1, 0.01, 0.001)),
    "one word, one seed": lambda top: [
        runs(top / name, [v], overrides=model(act=name), parameters=int(100 * v))
        for name, v in {"relu": 0.5, "a_long_word_for_a_function": 0.6}.items()
    ],
    "one switch": lambda top: [
        runs(top / str(on), [0.5, 0.6 + 0.1 * on], overrides=model(residual=on), seconds=1 + on)
        for on in (False, True)
    ],
    "two": lambda top: runs(top, [0.5, 0.6, 0.7, 0.9], grid([0.1, 0.01], [0.0, 0.1])),
    "two of one outcome": lambda top: runs(top, [0.5] * 4, grid([0.1, 0.01], [0.0, 0.1])),
    "three with a failed point": lambda top: [
        runs(
            top / f"{on}{w}",
            [0.5, np.nan if on and w == 16 else 0.6, 0.7, 0.4 + w / 100],
            grid([0.1, 0.01], [0.0, 0.1]),
            overrides=model(residual=on, width=w),
            parameters=w,
            seconds=w,
        )
        for on in (False, True)
        for w in (8, 16)
    ],
    "many": lambda top: runs(
        top,
        np.linspace(0.1, 0.8, 400).tolist(),
        grid(np.geomspace(1e-4, 1, 20).tolist(), range(20)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_sweep_is_drawn(tmp_path, show, case):
    CASES[case](tmp_path / "sweep")
    code, drawn, err = show(tmp_path / "sweep")
    several = not case.startswith("one")
    assert code == 0 and "error" not in err
    wanted = SEVERAL if several else ONE
    assert [name for name in wanted if name not in drawn and f"{name} (" not in err] == []
    assert "setting" not in drawn or not several


def test_nothing_is_clipped_or_on_top_of_another(tiny):
    """Words of a picture stay inside it, and those of one axis apart."""
    known = study(tiny)
    for name in ("curves", "heatmap", "parallel", "parameters"):
        figure = getattr(sweep_pictures, name)(known)
        figure.set_dpi(100)
        figure.draw_without_rendering()
        for ax in figure.axes:
            boxes = [t.get_window_extent() for t in ax.texts if t.get_text()]
            for box in boxes:
                assert box.x0 > -1 and box.x1 < figure.bbox.x1 + 1, name
                assert box.y0 > -1 and box.y1 < figure.bbox.y1 + 1, name
            if name == "heatmap":
                assert not any(
                    a.overlaps(b) and a.shrunk(0.8, 0.8).overlaps(b.shrunk(0.8, 0.8))
                    for i, a in enumerate(boxes)
                    for b in boxes[:i]
                )


def test_overwriting_a_run_takes_its_pictures(tmp_path):
    path = runs(tmp_path / "a", [0.5, 0.6], rate(0.1, 0.01))
    files = [
        path / f"{name}.{kind}" for name in {*PICTURES, *SWEEP_PICTURES} for kind in ("png", "pdf")
    ]
    for file in [*files, path / "mine.png"]:
        file.touch()
    about = read_json(path / "config.json")
    Folder.open(path, about, overwrite=True).close()
    assert sorted(p.name for p in path.iterdir() if p.suffix in (".png", ".pdf")) == ["mine.png"]


@pytest.mark.slow
def test_what_train_leaves_is_drawn(tmp_path, show):
    """A real population of points, from the command to its pictures."""
    points = tmp_path / "points.json"
    points.write_text(json.dumps(grid([0.003, 0.03], [0.0, 5e-4])))
    path = tmp_path / "run"
    command = [sys.executable, "train.py", "--config=configs/mlp_cora.py", f"--points={points}"]
    command += ["--config.steps=4", "--config.every=2", "--config.seeds=2", f"--workdir={path}"]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    code, drawn, err = show(path)
    assert (code, drawn) == (0, SEVERAL)
    assert "parameters (every point has 23,063 parameters)" in err
    summary = read_json(path / "summary.json")["splits"]["validation"]["accuracy"]["values"]
    means = np.reshape(summary, (4, 2)).mean(1)
    np.testing.assert_allclose([p.mean for p in Sweep([path]).points], means)
