"""Tables say what runs came to: pooled by configuration, failures named, splits never mixed."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from results import report, table, view
from results.run import write_json

NOON = 1767355200  # 2026-01-02 12:00 UTC


def folder(
    path, values, *, seed=0, failed=(), split="public", widened=False, edits=(), ids=(), **changed
):
    """A run folder as train.py leaves it. values: test accuracies; failed: which of them are not.

    widened: with the override model.width=32; edits: settings changed in the config's file;
    ids: the runs' own numbers beside their seeds; changed: of config.json.
    """
    overrides = {"seeds": len(values)} | ({"model.width": 32} if widened else {})
    config = {
        "model": {"name": "GCN", "width": 32 if widened else 16},
        "select": {"split": "validation", "metrics": ["loss"], "keep": "last", "ties": False},
        "expected": {"metric": "accuracy", "value": 0.815, "std": 0.0, "low": 0.809, "high": 0.821}
        | {"source": "table 2"},
        **{"steps": 200, "seed": seed, "seeds": len(values), "save": 60.0, "together": 0},
        **dict(edits),
    }
    about = {
        "config": config,
        "experiment": "gcn_cora",
        "file": "configs/gcn_cora.py",
        "overrides": overrides,
        "command": f"python train.py --config=configs/gcn_cora.py --config.seed={seed}",
        "data": {"dataset": "cora", "split": split, "checksum": "ab05"},
        "device": "2 x cpu, 2 CPUs",
        "versions": {"python": "3.11.7", "jax": "0.10.2"},
    } | changed
    runs = len(values)
    broken = np.isin(np.arange(runs), failed)
    best = {"step": [200] * runs, "stopped_at": [0] * runs, "failed_at": np.where(broken, 7, 0)}
    metrics = {"accuracy": np.array(values), "loss": 1 - np.array(values)}
    halves = {name: value / 2 for name, value in metrics.items()}
    splits = {
        "test": {"examples": [1000] * runs, "metrics": metrics},
        "validation": {"examples": [500] * runs, "metrics": halves},
    }
    seconds = {"compile": 9.0, "train": 1.5}
    ids = {"seed": np.arange(seed, seed + runs)} | dict(ids)
    cost = {"parameters": 23040, "flops_per_step": 1e7, "peak_memory": 1, "seconds": seconds}
    path.mkdir(parents=True)
    write_json(path / "config.json", about)
    write_json(path / "summary.json", report.summarize(about, ids, best, splits, cost))
    os.utime(path / "summary.json", (NOON, NOON))
    return path


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "published"
    path.mkdir()
    return path


@pytest.fixture
def show(home, capsys):
    """Runs the command and gives its exit code and what it wrote to stdout and stderr."""

    def show(*words):
        code = table.main([str(word) for word in words], home)
        return code, *capsys.readouterr()

    return show


def lines(home):
    return [json.loads(text) for text in (home / "published.jsonl").read_text().splitlines()]


def test_one_configuration(tmp_path, show):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    assert show(tmp_path) == (
        0,
        """\
### cora, public split (mean ± sample standard deviation over n runs)

| experiment | system | test accuracy |  n | validation accuracy | parameters | seconds |
| ---------- | ------ | ------------: | -: | ------------------: | ---------: | ------: |
| gcn_cora   | GCN    |  82.0 ± 2.0 % |  3 |        41.0 ± 1.0 % |     23,040 |     1.5 |
""",
        "",
    )


def test_one_run_has_no_deviation(tmp_path, show):
    folder(tmp_path / "run", [0.80])
    _, out, _ = show(tmp_path)
    assert "|        80.0 % |  1 |" in out and "nan" not in out.lower()
    _, out, _ = show(tmp_path, "--format=csv")
    assert ",accuracy,0.8,,1,," in out


def test_another_metric(tmp_path, show):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    _, out, _ = show(tmp_path, "--metric=loss")
    assert "test loss" in out and "0.1800 ± 0.0200" in out and "validation loss" in out
    code, out, err = show(tmp_path, "--metric=auc")
    assert (code, out) == (2, "")
    assert err == f"error: {tmp_path / 'run'} has no metric 'auc': there are accuracy, loss\n"


def test_folders_of_one_configuration_are_pooled(tmp_path, show, home):
    folder(tmp_path / "a", [0.80, 0.82])
    folder(tmp_path / "b" / "c", [0.84], seed=2)
    code, out, err = show("--record", tmp_path / "a", tmp_path / "b")
    assert code == 0 and out.count("gcn_cora") == 1
    assert "82.0 ± 2.0 % |  3 |" in out and "|     3.0 |" in out
    [one] = lines(home)
    assert (one["mean"], one["std"], one["n"]) == (0.82, 0.02, 3)
    command = "python train.py --config=configs/gcn_cora.py --config.seed="
    assert one["command"] == f"{command}0 && {command}2"


def test_seeds_and_folders_count_once(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82])
    folder(tmp_path / "b", [0.50, 0.84], seed=1)
    _, out, err = show(tmp_path, tmp_path / "a", tmp_path / "b")
    assert "82.0 ± 2.0 % |  3 |" in out
    assert err == f"{tmp_path / 'b'}: not counted, being in another folder too: seed 1\n"


def test_a_seed_on_another_split_is_another_run(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82], ids={"seed": [4, 4], "split_seed": [0, 1]})
    folder(tmp_path / "b", [0.10, 0.84], ids={"seed": [4, 5], "split_seed": [1, 1]})
    _, out, err = show(tmp_path)
    assert "82.0 ± 2.0 % |  3 |" in out
    assert err.endswith("b: not counted, being in another folder too: seed 4 split_seed 1\n")


def test_a_changed_configuration_is_another_row(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82, 0.84])
    folder(tmp_path / "b", [0.70, 0.74], edits={"steps": 100})
    folder(tmp_path / "c", [0.90, 0.92], widened=True)
    _, out, _ = show(tmp_path)
    rows = [[cell.strip() for cell in row.split("|")[3:6]] for row in out.splitlines()[4:]]
    assert sorted(rows) == [
        ["model.width=16, steps=100", "72.0 ± 2.8 %", "2"],
        ["model.width=16, steps=200", "82.0 ± 2.0 %", "3"],
        ["model.width=32, steps=200", "91.0 ± 1.4 %", "2"],
    ]


def test_failed_runs_are_named_and_not_in_the_mean(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.10, 0.84], failed=[1])
    _, out, _ = show("--record", tmp_path)
    assert "82.0 ± 2.8 % | 2 (failed: seed 1) |" in out
    [one] = lines(home)
    assert (one["n"], one["failed"], one["mean"]) == (2, ["seed 1"], 0.82)
    assert "| 2 (failed: seed 1) |" in (home / "README.md").read_text()


def test_a_failed_folder_is_named_beside_its_fellows(tmp_path, show, home):
    folder(tmp_path / "a", [0.80])
    folder(tmp_path / "b", [0.10], seed=1, failed=[0])
    folder(tmp_path / "c", [0.84], seed=2)
    code, out, _ = show("--record", tmp_path)
    assert code == 0 and "82.0 ± 2.8 % | 2 (failed: seed 1) |" in out


def test_splits_and_data_sets_never_share_a_table(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82, 0.84])
    folder(tmp_path / "b", [0.70, 0.72], split="random (10)")
    folder(tmp_path / "c", [0.60], data={"dataset": "pubmed", "split": "public", "checksum": "c0"})
    _, out, _ = show(tmp_path)
    titles = [row.partition(" (mean")[0] for row in out.splitlines() if row.startswith("###")]
    assert titles == [
        "### cora, public split",
        "### cora, random (10) split",
        "### pubmed, public split",
    ]
    assert [part.count("gcn_cora") for part in out.split("###")] == [0, 1, 1, 1]
    assert "settings" not in out  # a split is no reason to tell apart what has a table of its own
    _, out, _ = show(tmp_path, "--format=latex")
    assert out.count(r"\begin{table}") == 3
    _, out, _ = show(tmp_path, "--format=csv")
    assert [(row["task"], row["split"]) for row in csv.DictReader(io.StringIO(out))] == [
        ("cora", "public"),
        ("cora", "random (10)"),
        ("pubmed", "public"),
    ]


def test_runs_without_a_result_are_left_out(tmp_path, show):
    folder(tmp_path / "a", [0.80])
    write_json(folder(tmp_path / "b", [0.1]) / "summary.json", {"status": "interrupted", "step": 9})
    (folder(tmp_path / "c", [0.1]) / "summary.json").unlink()
    code, out, err = show(tmp_path)
    assert code == 0 and out.count("gcn_cora") == 1 and "80.0 % |  1 |" in out
    assert err.splitlines() == [f"{tmp_path / name} is unfinished: left out" for name in "bc"]


def test_no_finished_run_is_an_error(tmp_path, show):
    assert show(tmp_path / "no") == (2, "", f"error: there is no run in {tmp_path / 'no'}\n")
    (folder(tmp_path / "a", [0.80]) / "summary.json").unlink()
    code, out, err = show(tmp_path)
    assert (code, out) == (2, "")
    assert err.splitlines()[1:] == [f"error: there is no finished run in {tmp_path}"]


def test_csv_is_for_programs(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.10, 0.84], failed=[1], widened=True)
    _, out, _ = show(tmp_path, "--format=csv")
    head, row = csv.reader(io.StringIO(out))
    assert tuple(head) == view.CSV
    found = dict(zip(head, row, strict=True))
    assert float(found.pop("std")) == pytest.approx(0.02 * 2**0.5)
    assert float(found.pop("validation_std")) == pytest.approx(0.01 * 2**0.5)
    words = ["cora", "public", "gcn_cora", "GCN", "model.width=32", "accuracy", "0.82", "2"]
    words += ["seed 1", "0.41", "23040", "1.5", "at the last step", "2026-01-02"]
    assert list(found.values()) == words


def test_latex_and_output(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82, 0.84])
    file = tmp_path / "table.tex"
    assert show(tmp_path, "--format=latex", f"--output={file}") == (0, "", "")
    row = r"gcn\_cora & GCN & 82.0 $\pm$ 2.0 \% & 3 & 41.0 $\pm$ 1.0 \% & 23,040 & 1.5 \\"
    text = file.read_text()
    assert row in text.splitlines() and r"\begin{tabular}{llrrrrr}" in text
    assert r"\caption{cora, public split (mean $\pm$ sample" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "published", "table.tex"]
    code, _, err = show(tmp_path, f"--output={tmp_path / 'no' / 'table.tex'}")
    assert code == 2 and err.startswith("error: ") and err.count("\n") == 1


def test_recorded_line(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    show("--record", tmp_path)
    [found] = lines(home)
    assert found == {
        **{"experiment": "gcn_cora", "system": "GCN", "task": "cora", "split": "public"},
        **{"changed": {}, "metric": "accuracy", "mean": 0.82, "std": 0.02, "n": 3, "failed": []},
        "paper": {"value": 0.815, "std": None, "source": "table 2"},
        "range": [0.809, 0.821],
        "validation": {"mean": 0.41, "std": 0.01, "n": 3},
        **{"tested": "at the last step", "parameters": 23040, "seconds": 1.5},
        "command": "python train.py --config=configs/gcn_cora.py --config.seed=0",
        **{"checksum": "ab05", "device": "2 x cpu, 2 CPUs", "date": "2026-01-02"},
        "versions": {"python": "3.11.7", "jax": "0.10.2"},
    }


def test_paper_and_range_are_of_the_configs_own_number(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "wide", [0.80, 0.82, 0.84], widened=True)
    show("--record", tmp_path)
    show("--record", "--metric=loss", tmp_path / "run")
    kept = [(one["metric"], one["changed"], one["paper"], one["range"]) for one in lines(home)]
    paper = {"value": 0.815, "std": None, "source": "table 2"}
    assert kept == [
        ("accuracy", {}, paper, [0.809, 0.821]),
        ("accuracy", {"model.width": 32}, None, None),
        ("loss", {}, None, None),
    ]


def test_recording_again_replaces(tmp_path, show, home):
    folder(tmp_path / "old", [0.70, 0.72, 0.74])
    folder(tmp_path / "random", [0.60], split="random (10)")
    folder(tmp_path / "wide", [0.50], widened=True)
    for name in ("random", "old", "wide"):
        assert show("--record", tmp_path / name)[0] == 0
    folder(tmp_path / "new", [0.80, 0.82, 0.84], edits={"steps": 400})
    show("--record", tmp_path / "new")
    assert [(one["split"], one["changed"], one["mean"]) for one in lines(home)] == [
        ("public", {}, 0.82),
        ("public", {"model.width": 32}, 0.5),
        ("random (10)", {}, 0.6),
    ]
    assert sorted(path.name for path in home.iterdir()) == ["README.md", "published.jsonl"]


def test_page(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "random", [0.60], split="random (10)", widened=True)
    show("--record", tmp_path)
    page = (home / "README.md").read_text()
    public, random, versions = page.removeprefix(table.INTRODUCTION).split("\n## ")[1:]
    command = "`python train.py --config=configs/gcn_cora.py --config.seed=0`"
    title, _, head, _, row, _, *commands = public.splitlines()
    assert title == "cora, public split"
    columns = "experiment system test accuracy n published expected parameters seconds"
    assert head.replace("|", "").split() == columns.split()
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        *("gcn_cora", "GCN", "82.0 ± 2.0 %", "3"),
        *("81.5 % table 2", "80.9 to 82.1 %: met", "23,040", "1.5"),
    ]
    where = "tested at the last step, 2026-01-02:\\"
    assert commands == [f"- gcn_cora, {where}", f"  {command}"]
    assert (
        random
        == f"""\
cora, random (10) split

| experiment | system | settings       | test accuracy |  n | parameters | seconds |
| ---------- | ------ | -------------- | ------------: | -: | ---------: | ------: |
| gcn_cora   | GCN    | model.width=32 |        60.0 % |  1 |     23,040 |     1.5 |

- gcn_cora model.width=32, {where}
  {command}
"""
    )
    assert versions.splitlines()[2:] == [
        "- gcn_cora; gcn_cora model.width=32: 2 x cpu, 2 CPUs, python 3.11.7, jax 0.10.2"
    ]
    (home / "README.md").unlink()
    assert show()[:2] == (0, "")
    assert (home / "README.md").read_text() == page


def test_only_finished_runs_are_recorded(tmp_path, show, home):
    folder(tmp_path / "good", [0.80])
    (folder(tmp_path / "half", [0.1]) / "summary.json").unlink()
    folder(tmp_path / "bad", [0.1, 0.2], failed=[0, 1], widened=True)
    code, out, err = show("--record", tmp_path / "good", tmp_path / "half")
    assert (code, out) == (2, "") and err.startswith(f"error: {tmp_path / 'half'} is unfinished:")
    code, out, err = show("--record", tmp_path / "good", tmp_path / "bad")
    assert (code, out) == (2, "") and err.startswith(
        "error: gcn_cora model.width=32: all runs fail"
    )
    folder(tmp_path / "edited", [0.80], edits={"steps": 100})
    code, out, err = show("--record", tmp_path / "good", tmp_path / "edited")
    assert (code, out) == (2, "") and err.startswith("error: gcn_cora: its config was edited")
    assert not list(home.iterdir())


def test_check(tmp_path, show, home):
    assert show("--check")[:2] == (0, "")
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "wide", [0.10, 0.12], widened=True)
    show("--record", tmp_path)
    assert show("--check")[:2] == (0, "")
    folder(tmp_path / "low", [0.70, 0.72, 0.74], edits={"steps": 100})
    show("--record", tmp_path / "low")
    assert "| 80.9 to 82.1 %: NOT met |" in (home / "README.md").read_text()
    assert show("--check") == (
        1,
        "gcn_cora on cora, public split: test accuracy 72.0 ± 2.0 % (n = 3), "
        "expected 80.9 to 82.1 %: NOT met\n",
        "1 of 2 numbers are outside their expected range\n",
    )


def test_damaged_record(show, home):
    (home / "published.jsonl").write_text('{"experiment": "gcn_cora"}\n<<<<<<< HEAD\n')
    path = home / "published.jsonl"
    for words in ([], ["--check"]):
        assert show(*words) == (2, "", f"error: {path}, line 2: not JSON\n")


@pytest.mark.parametrize("words", [["--record"], ["--check", "DIR"], ["--format=html", "DIR"]])
def test_contradictions_on_the_command_line(show, words, capsys):
    with pytest.raises(SystemExit) as error:
        show(*words)
    assert error.value.code == 2 and "error:" in capsys.readouterr().err


def test_it_needs_no_jax():
    code = "import sys, results.table; sys.exit('jax' in sys.modules or 'flax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


def test_the_page_that_ships_is_generated():
    shipped = Path(table.__file__).parent
    if not (shipped / "README.md").exists():
        pytest.skip("nothing is published yet")
    assert (shipped / "README.md").read_text() == table.page(table.published(shipped))
