"""sweep.py as a person calls it: real runs, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toy import timeless

from results import points, report, table
from results.files import read_json, read_rows, read_run

HOME = Path(__file__).parents[1]
WORDS = [
    sys.executable, "sweep.py", "--config=configs/mlp_cora.py", "--config.seeds=2",
    "--config.steps=100", "--config.save=0", "--set=model.width=4,8",
    "--set=optimizer.learning_rate=1e-3,1e-2",
]  # fmt: skip


def environment():
    """Two CPUs, each a device, as without the tests' four."""
    return {**os.environ, "XLA_FLAGS": ""}


def start(folder, *more):
    words = [*WORDS, f"--workdir={folder}", "--jobs=1", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, cwd=HOME, env=environment(), **pipes)


def wait_for_step(step, run, process):
    file, deadline = run / "metrics.jsonl", time.monotonic() + 240
    while f'"step": {step}' not in (file.read_text() if file.exists() else ""):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep that nothing has disturbed, and what it printed."""
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    process = start(folder)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return folder, out, err


def record(folder):
    """All that was measured, without times."""
    found = {}
    for path in sorted(folder.glob("model.*")):
        about, summary = read_run(path)
        came = {name: summary[name] for name in ("splits", "runs", "changed", "n")}
        found[path.name] = (about["points"], came, timeless(read_rows(path)))
    return found


def test_a_grid_in_two_programs(whole):  # SWEEP-1
    folder, out, err = whole
    found = [points.split(*read_run(folder / name)) for name in ("model.width=4", "model.width=8")]
    parts = [part for two in found for part in two]
    tried = {
        (o["config"]["model"]["width"], o["config"]["optimizer"]["learning_rate"]) for o, _ in parts
    }
    assert tried == {(4, 1e-3), (4, 1e-2), (8, 1e-3), (8, 1e-2)}
    assert all(came["n"] == 2 and came["status"] == "finished" for _, came in parts)
    chosen = read_json(folder / "outcome.json")["chosen"]
    assert chosen["settings"]["optimizer.learning_rate"] == 1e-2
    best = max(points.validation(came)["mean"] for _, came in parts)
    assert chosen["validation"]["mean"] == best
    assert report.in_words("accuracy", chosen["test"]["mean"], chosen["test"]["std"]) in out
    assert "model.width=4: training (4 runs)" in err and "Traceback" not in out + err
    lines = table.read([folder], strict=False)
    assert len(lines) == 4 and {line["n"] for line in lines} == {2}
    assert {line["metric"] for line in lines} == {"validation accuracy"}
    assert max(line["mean"] for line in lines) == best
    with pytest.raises(ValueError, match="is of a sweep"):
        table.read([folder], strict=True)


@pytest.mark.slow
def test_killed_twice_it_goes_on_with_what_is_missing(whole, tmp_path):  # SWEEP-3
    folder = tmp_path / "killed"
    for name, step in (("model.width=4", 20), ("model.width=8", 40)):
        process = start(folder)
        wait_for_step(step, folder / name, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    first = (folder / "model.width=4/summary.json").stat().st_mtime_ns
    process = start(folder)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert (folder / "model.width=4/summary.json").stat().st_mtime_ns == first
    assert record(folder) == record(whole[0])
    strip = lambda text: [line.split()[:5] for line in text.splitlines() if "model.width" in line]
    assert len(strip(out)) == len(strip(whole[1]))


@pytest.mark.slow
def test_dry_run_trains_nothing(tmp_path):
    folder = tmp_path / "none"
    process = start(folder, "--dry_run")
    out, err = process.communicate()
    assert process.returncode == 0 and not folder.exists(), err
    assert "4 points, 2 populations, 8 runs" in out and "at most" in out


def test_another_sweep_does_not_fit_into_the_folder(whole):
    before = json.dumps(record(whole[0]))
    process = start(whole[0], "--set=optimizer.l2=0,1")
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "") and err.count("\n") == 1
    assert "holds a sweep with other space" in err and json.dumps(record(whole[0])) == before


@pytest.mark.slow
def test_a_run_of_two_processes_whose_peer_is_killed_goes_on(tmp_path):
    """Each of two populations in two processes; one of the first's is killed."""
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    process = start(whole, "--processes=2")
    out, err = process.communicate()
    assert process.returncode == 0, err
    process = start(folder, "--processes=2")
    wait_for_step(20, folder / "model.width=4", process)
    peers = subprocess.run(["pgrep", "-f", f"train.py.*{folder}"], capture_output=True, text=True)
    first, second = map(int, peers.stdout.split())
    os.kill(second, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert record(folder) == record(whole)
    log = (folder / "logs/model.width=4.log").read_text()
    assert log.count("compiling, then") == 2  # started again, once
