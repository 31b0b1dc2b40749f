"""Tables say what runs came to: pooled by configuration, failures named, splits never mixed."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from results import report, table
from results.files import write_json

COMMAND = "python train.py --config=configs/gcn_cora.py --config.seed="
DATA = {"dataset": "cora", "split": "public", "checksum": "ab05"}
TITLE = "## cora, public split: accuracy, mean ± sample standard deviation"


def folder(path, values, *, seed=0, failed=(), ids=(), overrides=(), of=(), rows=(), **changed):
    """A run folder as train.py leaves it. values: test accuracies; failed: which runs did.

    ids: the runs' own numbers beside their seeds; overrides: of settings, on the command line;
    of: other facts of config.json; rows: of metrics.jsonl; changed: settings that are others in the
    config's file.
    """
    settings = {
        "model": {"name": "GCN"},
        "select": {"split": "validation", "metrics": ["loss"], "keep": "last"},
        "expected": {"metric": "accuracy", "value": 0.815, "std": 0.0, "low": 0.809, "high": 0.821}
        | {"source": "table 2"},
        **{"steps": 200, "every": 10, "seed": seed, "seeds": len(values)},
        **{"save": 60.0, "together": 0},
    }
    overrides = {"seed": seed, "seeds": len(values), **dict(overrides)}
    about = {
        "config": settings | changed | overrides,
        "experiment": "gcn_cora",
        "overrides": overrides,
        "points": [{}],
        "command": f"{COMMAND}{seed}",
        "data": DATA,
        "date": "2026-01-02",
        "code": "c0de",
        "device": "2 x cpu, 2 CPUs",
        "versions": {"python": "3.11.7", "jax": "0.10.2"},
        **dict(of),
    }
    runs = np.arange(len(values))
    ids = {"seed": seed + runs, **dict(ids)}
    ends = {"best_step": runs, "stopped_at": runs, "failed_at": 7 * np.isin(runs, failed)}
    part = {"examples": runs, "metrics": {"accuracy": np.array(values)}}
    splits = {"test": part, "validation": part}
    cost = {
        "tested": "at the last step",
        "parameters": 23040,
        "flops_per_step": 1e7,
        "peak_memory": 1,
    }
    cost["seconds"] = {"compile": 9.0, "train": 1.5}
    path.mkdir(parents=True)
    write_json(path / "config.json", about)
    write_json(path / "summary.json", report.summarize(about, ids, ends, splits, cost, rows))
    return path


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "published"
    path.mkdir()
    return path


@pytest.fixture
def show(home, capsys):
    """Runs the command and gives its exit code and what it wrote to stdout and stderr."""
    return lambda *words: (table.main(list(map(str, words)), home), *capsys.readouterr())


def lines(home):
    return [json.loads(text) for text in (home / "published.jsonl").read_text().splitlines()]


def rows(out):
    """A Markdown table's rows, by column."""
    found = [text[2:-2].split(" | ") for text in out.splitlines() if text.startswith("|")]
    return [dict(zip(found[0], row, strict=True)) for row in found[2:]]


def test_one_configuration(tmp_path, show):  # SELECT-6
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    code, out, err = show(tmp_path)
    assert (code, err) == (0, "")
    title, _, head, rule, row, *_ = out.splitlines()
    columns = "experiment system test n published expected tested parameters seconds"
    assert head == f"| {columns.replace(' ', ' | ')} |"
    assert (title, rule) == (TITLE, "|" + " --- |" * 9)
    assert " ".join(row.split()) == (
        "| gcn_cora | GCN | 82.0 ± 2.0 % | 3 | 81.5 % (table 2) | 80.9 to 82.1 %: met "
        "| at the last step | 23,040 | 1.5 |"
    )


def test_one_step_for_all_runs_is_chosen_by_their_mean(tmp_path, show, home):
    """Of three epochs the second has the best mean; each run by itself would take another."""
    values = [[0.5, 0.9, 0.6], [0.7, 0.6, 0.9], [0.7, 0.9, 0.8]]
    found = [
        {"step": 50 * epoch + 50, "run": run, "split": "validation", "seed": 0, "fold": run}
        | {"accuracy": values[run][epoch], "loss": 0.1 * epoch, "seconds": 1.0}
        for epoch in range(3)
        for run in range(3)
    ]
    found.append({"step": 50, "run": 0, "split": "train", "accuracy": 1.0})
    select = {"split": "validation", "metrics": ["accuracy"], "keep": "common"}
    ids = {"seed": [0, 0, 0], "fold": [0, 1, 2]}
    folder(tmp_path / "run", [0.1, 0.2, 0.3], ids=ids, select=select, rows=found)
    code, out, err = show("--record", tmp_path)
    assert (code, err) == (0, "")
    assert "validation accuracy, at one step for all runs, mean ± sample" in out
    [row] = rows(out)
    assert row["validation"] == "80.0 ± 17.3 %" and "NOT met" in row["expected"]
    [line] = lines(home)
    assert [run["value"] for run in line["values"]] == [0.9, 0.6, 0.9]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["splits"]["common"]["loss"]["mean"] == pytest.approx(0.1)
    block = report.final_block(summary, "DIR")
    assert "validation accuracy, at one step for all runs  80.0 ± 17.3 %" in block


def test_no_step_that_all_runs_reached(tmp_path, show):
    select = {"split": "validation", "metrics": ["accuracy"], "keep": "common"}
    found = [{"step": 50, "run": 0, "split": "validation", "accuracy": 0.9}]
    folder(tmp_path / "run", [0.1, 0.2], select=select, rows=found)
    code, out, _ = show(tmp_path)
    assert code == 0 and rows(out)[0]["validation"] == "none"


def test_folders_of_one_configuration_are_pooled(tmp_path, show, home):
    expected = {"metric": "accuracy", "value": 0.0, "std": 0.0, "low": 0.0, "high": 0.0}
    folder(tmp_path / "a", [0.80, 0.82], expected=expected | {"source": ""}, save=1.0)
    folder(tmp_path / "b" / "c", [0.84], seed=2)
    code, out, _ = show("--record", tmp_path / "a", tmp_path / "b")
    [row] = rows(out)
    assert code == 0
    assert (row["test"], row["n"], row["seconds"]) == ("82.0 ± 2.0 %", "3", "3.0")
    [one] = lines(home)
    assert (one["mean"], one["std"], one["n"]) == (0.82, 0.02, 3)
    assert one["command"] == f"{COMMAND}0; {COMMAND}2"
    assert one["range"] == [0.809, 0.821]  # what is expected is no setting: the last word counts


def test_a_run_that_stands_twice_counts_once_as_in_the_newer_folder(tmp_path, show):
    folder(tmp_path / "d", [0.80, 0.50], ids={"split_seed": [7, 7]}, of={"date": "2026-01-01"})
    folder(tmp_path / "b", [0.82, 0.84], ids={"split_seed": [7, 8]}, seed=1)
    folder(tmp_path / "c", [0.82], ids={"split_seed": [8]}, seed=1)
    [row] = rows(show(tmp_path, tmp_path / "d")[1])
    assert (row["test"], row["n"], row["seconds"]) == ("82.0 ± 1.6 %", "4", "3.8")


def test_columns_can_be_chosen(tmp_path, show):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    _, out, _ = show(tmp_path, "--columns=n,test", "--format=latex")
    assert "\nn & test \\\\\n" in out and "\n3 & 82.0 $\\pm$ 2.0 \\% \\\\\n" in out
    code, out, err = show(tmp_path, "--columns=tset")
    assert (code, out) == (2, "")
    assert err == "error: --columns: there is no 'tset'; did you mean 'test'?\n"


def test_a_changed_configuration_is_another_row(tmp_path, show, home):  # SELECT-7
    folder(tmp_path / "a", [0.80, 0.82, 0.84])
    folder(tmp_path / "b", [0.70, 0.74], overrides={"steps": 100})
    _, out, _ = show("--record", tmp_path)
    assert [[row[k] for k in ("settings", "test", "n", "expected")] for row in rows(out)] == [
        ["", "**82.0 ± 2.0 %**", "3", "80.9 to 82.1 %: met"],
        ["steps=100", "72.0 ± 2.8 %", "2", ""],
    ]
    own, other = lines(home)  # the paper's number and the range are of the config's own settings
    assert own["paper"] and own["range"] and not own["changed"]
    assert (other["paper"], other["range"], other["changed"]) == (None, None, "steps=100")


def test_one_of_three_seeds_fails(tmp_path, show):  # SELECT-8
    folder(tmp_path / "a", [0.80, 0.10, 0.84], failed=[1])
    [row] = rows(show(tmp_path)[1])
    assert (row["test"], row["n"], row["failed"]) == ("82.0 ± 2.8 %", "2", "seed 1")


def test_failed_runs_are_named_and_not_in_the_mean(tmp_path, show, home):
    folder(tmp_path / "a", [0.80, 0.10], failed=[1])
    folder(tmp_path / "b", [0.10], seed=2, failed=[0])
    folder(tmp_path / "c", [0.84], seed=3)
    code, out, _ = show("--record", tmp_path)
    [row] = rows(out)
    assert code == 0
    assert (row["test"], row["n"], row["failed"]) == ("82.0 ± 2.8 %", "2", "seed 1, seed 2")
    [one] = lines(home)
    assert (one["n"], one["failed"], one["mean"]) == (2, "seed 1, seed 2", 0.82)


def test_splits_never_share_a_table(tmp_path, show):  # GDATA-7
    folder(tmp_path / "a", [0.80, 0.82, 0.84])
    folder(tmp_path / "b", [0.70, 0.72], of={"data": DATA | {"split": "random (10)"}})
    _, out, _ = show(tmp_path)
    titles = [text for text in out.splitlines() if text.startswith("#")]
    assert titles == [TITLE, TITLE.replace("public", "random (10)")]
    assert [part.count("gcn_cora") for part in out.split("##")] == [0, 1, 1]


def test_runs_without_a_result_are_left_out(tmp_path, show, home):
    folder(tmp_path / "a", [0.80])
    for name in "bc":
        (folder(tmp_path / name, [0.1]) / "summary.json").unlink()
    code, out, err = show(tmp_path)
    assert (code, rows(out)[0]["n"]) == (0, "1")
    assert err.splitlines() == [f"{tmp_path / name} is unfinished: left out" for name in "bc"]
    code, out, err = show("--record", tmp_path)
    assert (code, out) == (2, "") and err.startswith(f"error: {tmp_path / 'b'} is unfinished:")
    assert not list(home.iterdir())
    code, out, err = show(tmp_path / "no")
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'no'} is absent: left out\nerror: there is no finished run\n"


def test_csv_is_for_programs(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.10, 0.84], failed=[1], overrides={"drops": [1, 2]})
    head, row = csv.reader(io.StringIO(show(tmp_path, "--format=csv")[1]))
    found = dict(zip(head, row, strict=True))
    assert float(found.pop("std")) == pytest.approx(0.02 * 2**0.5)
    words = ["cora", "public", "gcn_cora", "GCN", "drops=[1, 2]", "accuracy", "0.82", "2"]
    words += ["seed 1", "23040", "1.5", "at the last step", "2026-01-02"]
    assert list(found.values()) == words


def test_special_characters_are_escaped(tmp_path, show):
    folder(tmp_path / "a", [0.80, 0.82, 0.84], overrides={"l2_on": "^a|b"})
    assert r"| GCN | l2_on=^a\|b |" in show(tmp_path)[1]
    _, out, _ = show(tmp_path, "--format=latex")
    start = r"gcn\_cora & GCN & l2\_on=\^{}a|b & 82.0 $\pm$ 2.0 \% & 3 & "
    assert out.startswith(
        f"%{TITLE[2:]}; needs booktabs\n\\begin{{tabular}}{{llllllll}}\n\\toprule\n"
    )
    assert any(row.startswith(start) and row.endswith(r" \\") for row in out.splitlines())


def test_runs_of_other_code_are_not_mixed(tmp_path, show):
    folder(tmp_path / "a", [0.30, 0.32], of={"date": "2026-01-01T10:00:00Z", "code": "0ld"})
    folder(tmp_path / "b", [0.80, 0.82], of={"date": "2026-01-01T11:00:00Z"})
    out = show(tmp_path)[1]
    assert "| 31.0 ± 1.4 % | 2 |" in out and "| 2026-01-01T10:00:00Z |" in out
    assert "| **81.0 ± 1.4 %** | 2 |" in out and "| 2026-01-01T11:00:00Z |" in out


def test_recorded_line(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    show("--record", tmp_path)
    assert lines(home) == [
        {
            **{"experiment": "gcn_cora", "system": "GCN", "task": "cora", "split": "public"},
            **{"changed": "", "metric": "accuracy", "mean": 0.82, "std": 0.02, "n": 3},
            "paper": {"value": 0.815, "std": 0.0, "source": "table 2"},
            **{"range": [0.809, 0.821], "failed": "", "tested": "at the last step"},
            **{"parameters": 23040, "seconds": 1.5, "command": f"{COMMAND}0", "checksum": "ab05"},
            **{"device": "2 x cpu, 2 CPUs", "date": "2026-01-02", "code": "c0de"},
            "versions": {"python": "3.11.7", "jax": "0.10.2"},
            "values": [{"seed": i, "value": v} for i, v in enumerate((0.8, 0.82, 0.84))],
        }
    ]


def test_recording_again_replaces(tmp_path, show, home):
    folder(tmp_path / "old", [0.70, 0.72, 0.74])
    folder(tmp_path / "new", [0.80, 0.82, 0.84], steps=400)
    folder(tmp_path / "wide", [0.50], overrides={"width": 32})
    for name in ("wide", "old", "new"):
        assert show("--record", tmp_path / name)[0] == 0
    found = [(one["changed"], one["mean"]) for one in lines(home)]
    assert found == [("", 0.82), ("width=32", 0.5)]
    code, _, err = show("--record", tmp_path / "old", tmp_path / "new")  # which of the two is it?
    assert code == 2 and err.startswith("error: code or a config changed") and err.count("\n") == 1
    assert found == [(one["changed"], one["mean"]) for one in lines(home)]


def test_page(tmp_path, show, home):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "wide", [0.60], overrides={"width": 32})
    _, out, _ = show("--record", tmp_path)
    page = (home / "README.md").read_text()
    assert page.startswith(f"{table.PAGE}\n{out}## Commands\n\n")
    assert [row["test"] for row in rows(page)] == [
        "**82.0 ± 2.0 %**",
        "60.0 %",
    ]  # of one, no deviation
    assert page.splitlines()[-2:] == [
        f"- gcn_cora, 2026-01-02: `{COMMAND}0`",
        f"- gcn_cora width=32, 2026-01-02: `{COMMAND}0`",
    ]
    (home / "README.md").unlink()
    assert show() == (0, out, "")
    assert (home / "README.md").read_text() == page
    assert sorted(path.name for path in home.iterdir()) == ["README.md", "published.jsonl"]


def test_check(tmp_path, show, capsys):  # SELECT-9
    table.main(["--check"])  # what ships; a gap is named here too
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["gae_cora"]
    assert show("--check") == (0, "", "")
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "wide", [0.10, 0.12], overrides={"width": 32})
    show("--record", tmp_path)
    assert show("--check") == (0, "", "")
    show("--record", folder(tmp_path / "low", [0.70, 0.72, 0.74], steps=100))
    found = "gcn_cora: 72.0 ± 2.0 %, expected 80.9 to 82.1 %: NOT met\n"
    assert show("--check") == (1, found, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda line: None,
        lambda line: line[:-9],
        lambda line: "[1, 2]",
        lambda line: line.replace('"mean"', '"middle"'),
    ],
)
def test_a_damaged_line_is_named(tmp_path, show, home, change):
    folder(tmp_path / "run", [0.80, 0.82, 0.84])
    folder(tmp_path / "wide", [0.60], overrides={"width": 32})
    show("--record", tmp_path)
    first, second = (home / "published.jsonl").read_text().splitlines()
    damaged = f"{second}\n{change(first)}\n"
    (home / "published.jsonl").write_text(damaged)
    for words in [(), ("--check",), ("--record", tmp_path)]:
        code, out, err = show(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"error: {home / 'published.jsonl'}, line 2")
    assert (home / "published.jsonl").read_text() == damaged


def command(path, **changes):
    return subprocess.Popen(
        [sys.executable, "-m", "results.table", str(path)], cwd=Path(table.__file__).parents[1],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | changes,
    )  # fmt: skip


def test_a_terminal_may_lack_letters(tmp_path):
    out, err = command(
        folder(tmp_path / "run", [0.80, 0.82]), PYTHONIOENCODING="ascii"
    ).communicate()
    assert "| 81.0 ? 1.4 % |" in out and not err


def test_a_reader_may_go(tmp_path):
    process = command(folder(tmp_path / "run", [0.80, 0.82]))
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait() == -signal.SIGPIPE
    process.stderr.close()


def test_the_page_that_ships_is_generated_and_needs_no_jax(tmp_path):
    shipped = Path(table.__file__).parent
    if (shipped / "published.jsonl").exists():
        table.publish(table.recorded(shipped), tmp_path)
        for name in ("README.md", "published.jsonl"):
            assert (shipped / name).read_text() == (tmp_path / name).read_text()
    code = "import sys, results.table; sys.exit('jax' in sys.modules or 'flax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=shipped.parent)


def test_data_sets_of_one_name_are_told_apart(tmp_path, capsys):
    for name, checksum in (("a", "aaaaaaaa1"), ("b", "bbbbbbbb2")):
        folder(tmp_path / name, [0.8], of={"data": {**DATA, "checksum": checksum}})
    assert table.main([str(tmp_path)]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("##")]
    assert titles == [TITLE.replace("cora,", f"cora {name * 8},") for name in "ab"]
