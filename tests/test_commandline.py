"""The command line: what it answers to mistakes, and runs that are killed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from toy import timeless

import commandline
from results.files import read_json, read_rows

ROOT = Path(__file__).parents[1]
TIMES = ("seconds", "peak_memory")


def command(*words, env=None):
    return subprocess.run(
        [sys.executable, str(ROOT / "train.py"), *map(str, words)],
        cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def refused(done, said):
    assert done.returncode == 2 and said in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


GAT, GCN = "--config=configs/gat_cora.py", "--config=configs/gcn_cora.py"
MLP = "--config=configs/mlp_cora.py"  # starts soonest
SHORT = ("--config.steps=20", "--config.seeds=2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config=configs/gcn_coraa.py"], "did you mean 'configs/gcn_cora.py'"),
        ([], "--config=FILE is required"),
        ([GCN, "--config.model.widht=4"], "did you mean 'model.width'"),  # CONFIG-1
        ([GCN, "--config.steps=ten"], "--config.steps=ten: invalid literal for int()"),  # CONFIG-4
        ([GCN, "--config.steps=2.5"], "--config.steps=2.5: invalid literal for int()"),
        ([GCN, "--config.model.depth=-1"], "model.depth = -1: expected 1 or more"),
        ([GCN, "--config.model.dropout=1.5"], "model.dropout = 1.5"),
        (
            [GCN, "--config.select.ties=maybe"],
            "--config.select.ties=maybe: ('Non-boolean argument",
        ),  # CONFIG-3
        ([GCN, "--config.model={'width': 4}"], "override single fields"),
        ([GCN, "--config.select.metrics=(loss,accuracy)"], "write a tuple of words"),
        ([GCN, "--config.select.metrics=('len (cm)','loss')"], "the task has no 'len (cm)'"),
        ([GCN, "--config.model.name=GCNN"], "did you mean 'GCN'"),
        ([GCN, "--config.task.name=Citatoin"], "did you mean 'Citation'"),
        ([GCN, "--config.task.dataset=coraa"], "expected citeseer or cora"),
        ([GCN, "--config.task.split=odd"], "expected 'public' or 'random'"),
        ([GCN, "--config.optimizer.name=adamm"], "did you mean 'adam'"),
        (
            [GCN, "--config.optimizer.l2_on=embedding"],
            "matches none of layer_0/linear/kernel, ",
        ),
        ([GCN, "--config.select.metrics=acuracy"], "did you mean 'accuracy'"),
        ([GCN, "--resume", "--overwrite"], "--resume and --overwrite"),  # CONFIG-6
        ([GCN, "--resume"], "there is no run in"),
        ([GCN, "steps=5"], "unexpected argument 'steps=5'"),
        ([GCN, "--evaluate=nowhere"], "--evaluate tests a run as it is and takes no --config"),
        ([*GCN.split("="), "--config.model.widht=4"], "did you mean 'model.width'"),
    ],
)
def test_bad_input_is_one_line(tmp_path, words, said):
    refused(command(*words, f"--workdir={tmp_path / 'run'}"), said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--config"], "Missing value for flag --config"),
        (["--evaluate=nowhere"], "nowhere: no finished run is there"),
        ([GCN, "--workdir", "--resume"], "--workdir=--resume: expected a folder"),
        ([GCN, "--workdir="], "--workdir=: expected a folder"),
    ],
)
def test_folders_are_named(words, said):
    refused(command(*words), said)


CONFIG = "from configs import gcn_cora\n\ndef get_config():\n    config = gcn_cora.get_config()\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def get_config():\n    pass", "get_config() returns None, expected a ConfigDict"),
        ("def get_config():\n    return {}", "get_config() returns {}, expected a ConfigDict"),
        ("width = 8", "KeyError: 'get_config'"),
        ("def get_config(:", "SyntaxError: invalid syntax"),
        ("import nowhere", "No module named 'nowhere'"),
        (CONFIG + "    config.steps = 'ten'", "ten is of original type <class 'str'>"),
        (CONFIG + "    config.model = dict(name='GCN', width='x')\n    return config",
         "model.width = 'x': expected 1 or more"),
        (CONFIG + "    config.model = dict(name='GCN', width=1.5)\n    return config",
         "model.width = 1.5: expected int"),
        (CONFIG + "    config.optimizer.b1 = 'x'\n    return config",
         "optimizer.name = 'adam' cannot"),
        (CONFIG + "    config.unlock()\n    del config.select.keep\n    return config",
         "the config has no 'select.keep'"),
    ],
)  # fmt: skip
def test_bad_files_are_one_line(tmp_path, text, said):  # CONFIG-4
    (tmp_path / "odd.py").write_text(text)
    refused(command(f"--config={tmp_path / 'odd.py'}", f"--workdir={tmp_path / 'run'}"), said)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("number", "boolean"),
    [
        ("1e-3", "--config.select.ties=False"),
        ("1E-3", "--config.select.ties=0"),
        (".001", "--noconfig.select.ties"),
    ],
)
def test_numbers_and_booleans_are_read_alike(tmp_path, number, boolean):  # CONFIG-2, CONFIG-3
    rate = f"--config.optimizer.learning_rate={number}"
    said = command(MLP, rate, boolean, f"--workdir={tmp_path / 'run'}", "--dry_run").stdout
    assert "optimizer.learning_rate  0.001\n" in said
    assert "select.ties              False\n" in said
    assert not list(tmp_path.iterdir()) and "parameters: 23,063" in said


def test_folders_with_spaces_and_accents(tmp_path):  # PLATFORM-2, RESUME-3, CKPT-7
    path = tmp_path / "résultats de l'été"
    done = command(MLP.replace("/", "\\"), *SHORT, f"--workdir={path}")
    assert done.returncode == 0 and "test accuracy" in done.stdout
    assert read_json(path / "config.json")["file"] == "configs/mlp_cora.py"
    again = command(MLP, *SHORT, f"--workdir={path}", "--resume")
    assert again.returncode == 0 and again.stdout == done.stdout
    assert again.stderr == f"{path}: nothing is left to do\n"
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in path.rglob("*") if p.is_file()}
    assert command(f"--evaluate={path}").stdout == done.stdout
    after = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in path.rglob("*") if p.is_file()}
    assert before == after
    refused(command(MLP, *SHORT, f"--workdir={path}"), "holds a run (finished)")
    shutil.rmtree(path / "checkpoints")
    refused(command(f"--evaluate={path}"), "no checkpoint can be read")


@pytest.mark.parametrize("streams", [">&- 2>&-", "2>&1 | true", ">/dev/full 2>/dev/full"])
def test_nobody_reads_the_output(tmp_path, streams):
    words = [sys.executable, "train.py", MLP, *SHORT, f"--workdir={tmp_path / 'run'}"]
    shell = f"set -o pipefail; {' '.join(map(str, words))} {streams}"
    assert subprocess.run(["bash", "-c", shell], cwd=ROOT).returncode == 0
    assert read_json(tmp_path / "run/summary.json")["status"] == "finished"


def test_terminals_without_the_letters(tmp_path):
    words = [MLP, *SHORT, f"--workdir={tmp_path / 'run'}"]
    done = command(*words, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and "% (mean ? sample std, n = 2)" in done.stdout


def test_the_readme_says_what_is_resumed():  # RESUME-7
    _, _, text = (ROOT / "README.md").read_text("utf-8").partition("`--resume` restores")
    restored = " ".join(text.partition("from the last")[0].split())
    for part in (
        "parameters",
        "optimizer",
        "schedule",
        "data position",
        "random state",
        "best-so-far",
    ):
        assert part in restored


def test_help_is_no_error():
    done = command("--help")
    assert done.returncode == 0 and "--workdir" in done.stdout and not done.stderr


def killed_often(path, moments, words):
    """Runs the command, stopped by the signals at the moments given, then to its end."""
    for sig, wait in moments:
        resume = ["--resume"] if (path / "config.json").exists() else []
        process = subprocess.Popen(
            [sys.executable, "train.py", *words, f"--workdir={path}", *resume],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        rows = len(read_rows(path))
        while len(read_rows(path)) <= rows and process.poll() is None:  # it has begun to train
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(wait)
        process.send_signal(sig)
        code = process.wait()
        assert code in (0, {"KILL": -9, "TERM": 143, "INT": 130}[sig.name[3:]])
    resume = ["--resume"] if (path / "config.json").exists() else []
    assert command(*words, f"--workdir={path}", *resume).returncode == 0


def assert_same_outcome(one, other):
    assert timeless(read_rows(one)) == timeless(read_rows(other))
    summaries = [read_json(path / "summary.json") for path in (one, other)]
    for summary in summaries:
        for name in TIMES:
            summary.pop(name)
    assert summaries[0] == summaries[1]
    arrays = [np.load(path / "outputs.npz") for path in (one, other)]
    assert set(arrays[0]) == set(arrays[1])
    for name in arrays[0]:
        np.testing.assert_array_equal(arrays[0][name], arrays[1][name])


def test_killed_runs_end_as_undisturbed_ones(tmp_path):  # CKPT-1
    words = [MLP, "--config.steps=300", "--config.seeds=2", "--config.save=0"]
    assert command(*words, f"--workdir={tmp_path / 'whole'}").returncode == 0
    rng = random.Random(0)
    signals = (signal.SIGKILL, signal.SIGTERM)
    killed_often(tmp_path / "killed", [(s, rng.uniform(0, 0.5)) for s in signals], words)
    assert_same_outcome(tmp_path / "whole", tmp_path / "killed")


def test_sigterm_twice_still_saves():
    """Slurm sends two at once; only a second Ctrl-C means not to save."""
    with commandline.interrupts() as asked:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        assert asked == [signal.SIGTERM] * 2
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_kills_of_gat(tmp_path):  # RESUME-1, CKPT-1
    words = [GAT, "--config.seeds=2", "--config.save=0"]
    assert command(*words, f"--workdir={tmp_path / 'whole'}").returncode == 0
    rng = random.Random(0)
    signals = [signal.SIGKILL, signal.SIGTERM] * 5
    killed_often(tmp_path / "killed", [(s, rng.uniform(0, 2)) for s in signals], words)
    assert_same_outcome(tmp_path / "whole", tmp_path / "killed")
