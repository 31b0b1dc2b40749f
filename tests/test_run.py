"""Run folders: what is damaged is named, what is resumed goes on, what is shown is true."""

import io
import json
import types

import numpy as np
import pytest
from test_table import folder

from results import report, table
from results.files import FolderError, read_json, read_rows, read_run, status, write_json
from results.run import Folder

STATE = {"a": np.arange(2.0)}


def row(step, run=0, seconds=0.0, **metrics):
    return {"step": step, "run": run, "split": "train", "seconds": seconds, **metrics}


def unfinished(path):
    """A folder in which nothing was trained yet, and what it says of its run."""
    (folder(path, [0.8, 0.9]) / "summary.json").unlink()
    return read_run(path)[0]


def without(name):
    return lambda found: {key: value for key, value in found.items() if key != name}


# ---- Damage


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{}", b'{"status": ', b"\xff\xfe\xfa"])
@pytest.mark.parametrize("file", ["config.json", "summary.json"])
def test_a_damaged_file_is_named(tmp_path, capsys, file, text):
    path = folder(tmp_path / "run", [0.8])
    about = read_json(path / "config.json")
    (path / file).write_bytes(text)
    assert status(path) == "damaged"
    with pytest.raises(FolderError, match=f"run/{file}"):
        read_run(path)
    for resumed in (Folder.is_done, lambda *run: Folder.open(*run, resume=True)):
        with pytest.raises(FolderError, match=f"run/{file}"):
            resumed(path, about)
    with pytest.raises(ValueError, match=r"holds a run \(damaged\)"):
        Folder.open(path, about)
    assert table.main([str(path)]) == 2
    out, err = capsys.readouterr()
    first, last = err.splitlines()
    assert not out and first.startswith(f"{path / file} is damaged: ")
    assert last == "error: there is no finished run"
    with Folder.open(path, about, overwrite=True):
        assert status(path) == "unfinished"


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("config.json", without("data"), "KeyError: 'data'"),
        ("config.json", lambda found: found | {"config": {}}, "KeyError: 'steps'"),
        ("config.json", lambda found: found | {"config": None}, "TypeError: 'NoneType'"),
        ("summary.json", without("seconds"), "KeyError: 'seconds'"),
        ("summary.json", lambda found: found | {"expected": {"metric": "loss"}}, "'value'"),
        ("summary.json", lambda found: found | {"splits": {"test": {}}}, "'accuracy'"),
    ],
)
def test_what_is_missing_is_named(tmp_path, file, change, said):
    path = folder(tmp_path / "run", [0.8])
    (path / file).write_text(json.dumps(change(read_json(path / file))))
    with pytest.raises(FolderError, match=f"run/{file} is damaged: .*{said}"):
        read_run(path)


@pytest.mark.parametrize("line", ["", "null", "[1]", "{", '{"split": "train", "seconds": 1.0}'])
def test_a_damaged_row_is_named(tmp_path, line):
    texts = [json.dumps(row(4)), line, json.dumps(row(8)), '{"step": 12, "ru']
    (tmp_path / "metrics.jsonl").write_text("\n".join(texts))
    with pytest.raises(FolderError, match="metrics.jsonl, line 2"):
        read_rows(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("\n".join([texts[0], *texts[2:]]))
    assert read_rows(tmp_path) == [row(4), row(8)]  # a half-written end is no damage


def test_a_damaged_record_is_not_resumed(tmp_path):
    path = folder(tmp_path / "run", [0.8])
    (path / "metrics.jsonl").write_text("null\n")
    with pytest.raises(FolderError, match="metrics.jsonl, line 1"):
        Folder.open(path, read_run(path)[0], resume=True)
    assert status(path) == "finished"


def test_a_schedule_over_all_steps_is_not_prolonged(tmp_path):
    about = unfinished(tmp_path / "run")
    about["config"]["optimizer"] = {"schedule": "cosine"}
    write_json(tmp_path / "run/config.json", about)
    longer = about | {"config": about["config"] | {"steps": 400}}
    with pytest.raises(ValueError, match="steps = 400, but the run has 200"):
        Folder.open(tmp_path / "run", longer, resume=True)


def test_runs_of_two_codes_say_so(tmp_path):
    about = unfinished(tmp_path / "run")
    for code, known in [("new", "c0de+new"), ("new", "c0de+new"), ("last", "c0de+new+last")]:
        with Folder.open(tmp_path / "run", about | {"code": code}, resume=True) as folder:
            folder.restore(STATE)
        assert read_run(tmp_path / "run")[0]["code"] == known


def test_a_run_killed_as_it_began_is_no_run(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".config.json.7.partial").touch()
    assert status(tmp_path) == "absent"


# ---- Resuming


def test_seconds_go_on_from_the_last_row_kept(tmp_path):
    about = unfinished(tmp_path / "run")
    with Folder.open(tmp_path / "run", about, overwrite=True) as new:
        assert new.restore(STATE) is None and new.seconds == 0.0
        new.append([row(10, seconds=1.25)])
        new.save(10, STATE)
        new.append([row(20, seconds=2.5)])
    with Folder.open(tmp_path / "run", about, resume=True) as again:
        np.testing.assert_array_equal(again.restore(STATE)["a"], STATE["a"])
        assert again.seconds == 1.25
    assert read_rows(tmp_path / "run") == [row(10, seconds=1.25)]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "the rows from step 1 to 30 are missing"),
        ([10, 20], "the rows from step 21 to 30 are missing"),
        ([10, 20, 27], ""),  # where the last run stopped
        ([10, 20, 30, 40], ""),
    ],
)
def test_missing_rows_are_mentioned(tmp_path, capsys, steps, said):
    about = unfinished(tmp_path / "run")
    with Folder.open(tmp_path / "run", about, overwrite=True) as new:
        new.append([row(step) for step in steps])
        new.save(30, STATE)
    with Folder.open(tmp_path / "run", about, resume=True) as again:
        again.restore(STATE)
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == bool(said)


def test_tensorboard_shows_means_of_all_that_are_live(tmp_path, monkeypatch):
    shown = {}

    class Writer(io.StringIO):
        def add_scalar(self, tag, value, step):
            shown[tag, step] = value

    monkeypatch.setattr("tensorboardX.SummaryWriter", lambda path: Writer())
    with Folder.open(tmp_path / "run", unfinished(tmp_path / "run"), overwrite=True) as new:
        new.append([row(10, 0, loss=1.0), row(10, 1, loss=3.0)])
        new.append([row(13, 1, loss=9.0), row(20, 0, loss=0.5)])  # the second run stops at 13
        new.append([row(30, 0, loss=None)])
        new.append([row(200, 0, loss=0.25)])
    assert shown == {("train/loss", 10): 2.0, ("train/loss", 20): 0.5, ("train/loss", 200): 0.25}


# ---- What is said of a run


def test_rows_of_a_chunk():
    measured = {
        "live": np.array([True, False, True]),
        "step": np.array([10, 4, 7]),
        "learning_rate": np.float32([0.1, 0.1, 0.1]),
        "metrics": {"train": {"loss": np.array([0.5, 0.5, np.nan])}, "validation": {}},
    }
    assert report.rows({"seed": np.array([5, 6, 7])}, measured, 1.23456) == [
        {"step": 7, "run": 2, "split": "train", "seed": 7, "seconds": 1.23}
        | {"learning_rate": 0.1, "loss": None},
        {"step": 10, "run": 0, "split": "train", "seed": 5, "seconds": 1.23}
        | {"learning_rate": 0.1, "loss": 0.5},
    ]


def test_what_was_changed_is_said_with_its_value(tmp_path):
    path = folder(tmp_path / "run", [0.8], overrides={"model.heads": 4, "drops": [1, 2]})
    _, summary = read_run(path)
    assert summary["changed"] == ["drops=[1, 2]", "model.heads=4"]
    assert "  changed        drops=[1, 2], model.heads=4\n" in report.final_block(summary, path)
    config = {"model": {"heads": 4}, "expected": {"low": 0.1}, "seeds": 3, "save": 1.0}
    assert report.settings(config) == {"model.heads": 4}  # the rest does not change the runs


def test_progress(monkeypatch):
    now, out = [100.0], io.StringIO()
    monkeypatch.setattr(report, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    progress = report.Progress(200, {"split": "test", "metrics": ["accuracy"]}, out)
    for step, later in [(110, 1.0), (120, 9.0), (130, 0.0), (140, 10.0)]:
        found = row(step, loss=0.5, accuracy=None)
        progress.show([found, row(step, 1, loss=1.0), found | {"split": "test", "accuracy": 0.25}])
        now[0] += later
    progress.close()
    assert out.getvalue().splitlines() == [
        "step 110/200  train loss 0.7500  test accuracy 0.2500  still training 2",
        "step 130/200  35 s left  2.0 steps/s  "
        "train loss 0.7500  test accuracy 0.2500  still training 2",
    ]


def test_progress_on_a_terminal_is_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    out.isatty = lambda: True
    progress = report.Progress(200, {"split": "validation", "metrics": []}, out)
    progress.show([row(110, loss=0.5)])
    progress.close()
    assert out.getvalue() == "\r\x1b[Kstep 110/200  train\r\x1b[K"
