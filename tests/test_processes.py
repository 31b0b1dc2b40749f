"""Two processes of two devices each, on this machine: what one process does, they do together."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from test_devices import assert_close
from toy import Net, Points, timeless

import data
import experiment
import models
import population
from results.files import read_json, read_rows, status
from results.run import Folder
from sweeps.launch import free_port

ROOT = Path(__file__).parents[1]
# One run, whose batch of four examples is shared out to all devices. A process sends itself the
# signal that its environment names, when it is about to save the step named there.
CONFIG = """
import os

import data, models
from results.run import Folder
from toy import Net, Points, config

data.Points, models.Net = lambda: Points.make(examples=4), Net
save, said = Folder.save, []
step, number = map(int, os.environ["SIGNAL"].split())


def signalled(self, at, *rest, **more):
    if at == step and not said:
        said.append(at)
        os.kill(os.getpid(), number)
    save(self, at, *rest, **more)


if save.__name__ == "save":  # a config's file is read twice
    Folder.save = signalled


def get_config():
    model = dict(name="Net", dropout=0.5)
    return config(task=dict(name="Points"), model=model, save=0.0)
"""


def restored(path):
    """The last state of a folder, here on four devices of one process."""
    config = experiment.saved_config(read_json(path / "config.json"))
    program = population.plan(config, Net(2, dropout=0.5), Points.make(examples=4))
    with Folder(path, readonly=True) as folder:
        return folder.restore(program.shapes)


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains in a folder, by two processes or one; the exit code, stdout and stderr of each."""
    file = tmp_path_factory.mktemp("config") / "points.py"
    file.write_text(CONFIG)

    def command(path, *words, count=2, signals=("0 0", "0 0")):
        address = f"127.0.0.1:{free_port()}"
        started = []
        with contextlib.ExitStack() as ended:
            for index in range(count):
                env = os.environ | {"PYTHONPATH": str(ROOT / "tests"), "SIGNAL": signals[index]}
                env |= {"XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": "2"}
                if count > 1:
                    env |= {"JAX_COORDINATOR_ADDRESS": address}
                    env |= {"JAX_NUM_PROCESSES": str(count), "JAX_PROCESS_ID": str(index)}
                call = [sys.executable, "train.py", f"--config={file}", f"--workdir={path}", *words]
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
                process = ended.enter_context(subprocess.Popen(call, cwd=ROOT, env=env, **pipes))
                ended.callback(process.kill)  # if it is not over, the test has failed
                started.append(process)
            said = [process.communicate(timeout=200) for process in started]
        return [(p.returncode, *texts) for p, texts in zip(started, said, strict=True)]

    return command


@pytest.fixture(scope="module")
def whole(tmp_path_factory, train):
    """An undisturbed run of two processes."""
    path = tmp_path_factory.mktemp("processes") / "whole"
    (code, out, err), (other_code, _, other_err) = train(path)
    assert code == other_code == 0, err + other_err
    assert "test accuracy" in out and "up to 20 steps" in err and not other_err
    return path


def test_one_process_reads_what_two_wrote(monkeypatch, whole):
    monkeypatch.setattr(data, "Points", lambda: Points.make(examples=4), raising=False)
    monkeypatch.setattr(models, "Net", Net, raising=False)
    model, variables, task, run = experiment.load(whole)
    batch = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), task.split("test", run))
    accuracy = task.score(model.apply(variables, *batch.inputs), batch)["accuracy"].value
    assert [accuracy] == read_json(whole / "summary.json")["splits"]["test"]["accuracy"]["values"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory, train):
    """A run whose second process was killed when the first had written the rows of step 12."""
    path = tmp_path_factory.mktemp("processes") / "killed"
    (code, _, err), (other_code, _, _) = train(path, signals=("0 0", "12 9"))
    assert code == 1 and other_code == -signal.SIGKILL
    assert err.splitlines()[-1].startswith("error: another process has ended; go on with --resume")
    assert status(path) == "unfinished" and read_rows(path)[-1]["step"] == 12
    assert sorted(p.name for p in (path / "checkpoints").glob("?")) == ["4", "8"]
    return path


def test_one_process_goes_on_where_two_ended(tmp_path, train, whole, killed):  # RESUME-6
    path = shutil.copytree(killed, tmp_path / "run")
    [(code, _, err)] = train(path, "--resume", count=1)
    assert code == 0 and "device changed since the run began" in err
    assert_close(timeless(read_rows(path)), timeless(read_rows(whole)))


@pytest.mark.slow
def test_two_go_on_as_if_undisturbed_and_stop_together(tmp_path, train, whole, killed):
    """All rows are the same, bit for bit; a signal to one process, at the last step, ends both."""
    path = shutil.copytree(killed, tmp_path / "run")
    (code, _, err), (other_code, _, other_err) = train(path, "--resume", signals=("0 0", "20 15"))
    assert code == other_code == 128 + signal.SIGTERM
    assert "saved; go on with: " in err and not other_err
    assert timeless(read_rows(path)) == timeless(read_rows(whole))
    states = [restored(folder) for folder in (path, whole)]
    jax.tree.map(np.testing.assert_array_equal, *states)


def test_what_one_process_cannot_do_ends_both(tmp_path, train):
    (tmp_path / "thesis.tex").write_text("years of work")
    (code, _, err), (other_code, _, other_err) = train(tmp_path)
    assert code == other_code == 2 and not other_err
    assert err.startswith("error: ") and "holds files that are no run's" in err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
