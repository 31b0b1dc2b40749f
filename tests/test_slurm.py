"""Workers as jobs of a Slurm cluster, which is started here for the tests: tests/slurm.sh."""

import os
import signal
import subprocess
import sys
import time

import pytest
import submitit
from test_commandline import ROOT, assert_same_outcome, command

from results.files import read_json, read_rows
from sweeps import cluster
from sweeps.cluster import Worker

SCRIPT = str(ROOT / "tests/slurm.sh")
ONE_CPU = {"minutes": 10, "gpus": 0, "cpus": 1, "parallel": 4}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster of this machine, with the partitions `main` and, giving way to it, `preempt`."""
    if os.geteuid() != 0:
        pytest.skip("a Slurm cluster is started by root only")
    folder = tmp_path_factory.mktemp("slurm")
    start = subprocess.run([SCRIPT, "start", folder], stderr=subprocess.PIPE, text=True)
    if start.returncode == 3:
        pytest.skip(start.stderr.strip())
    try:
        assert start.returncode == 0, start.stderr
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
            yield
    finally:
        subprocess.run([SCRIPT, "stop", folder], check=True)


def say(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def wait(condition):
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def python(*words):
    return Worker([sys.executable, *map(str, words)], str(ROOT))


def code(folder, job):
    return submitit.SlurmJob(folder / "jobs", job).result()


def log(folder, job):
    return "".join(p.read_text() for p in sorted((folder / "jobs").glob(f"{job}_0_log.*")))


# Without a cluster


def test_refusals_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"^--launcher=slurm: there is no sbatch here$"):
        cluster.submit(tmp_path, [python("-c", "")], partition=None, **ONE_CPU)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'lineage\[slurm\]'$"):
        cluster.submit(tmp_path, [python("-c", "")], partition=None, **ONE_CPU)
    assert cluster.alive(tmp_path) == [] and not list(tmp_path.iterdir())
    (tmp_path / "jobs.json").write_text('["1"]')
    with pytest.raises(ValueError, match="squeue"):  # whether one still works is not known
        cluster.alive(tmp_path)


SAVES = """
import pathlib, signal, sys, time
def save(*_):
    time.sleep(0.5)
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
pathlib.Path(sys.argv[1]).write_text("begun")
time.sleep(60)
"""


def test_a_checkpoint_waits_for_the_child_to_save(tmp_path, monkeypatch):
    """As in a job: submitit calls it in the handler of a signal, while the worker waits."""
    worker, file = python("-c", SAVES, tmp_path / "file"), tmp_path / "file"
    again = []

    def preempted(*_):
        wait(lambda: file.exists() and file.read_text() == "begun")
        again.append(worker.checkpoint().function)
        raise InterruptedError

    before = [signal.signal(signal.SIGALRM, preempted), signal.getsignal(signal.SIGTERM)]
    signal.alarm(1)
    try:
        with pytest.raises(InterruptedError):
            worker()
    finally:
        for number, handler in zip((signal.SIGALRM, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert file.read_text() == "saved"
    assert again[0].command == worker.command and again[0].cwd == worker.cwd


# In a cluster


@pytest.mark.slurm
def test_exit_codes(slurm, tmp_path):
    workers = [python("-c", f"raise SystemExit({code})") for code in (0, 3)]
    jobs = cluster.submit(tmp_path, workers, partition="main", **ONE_CPU | {"gpus": 1})
    assert len({job.split("_")[0] for job in jobs}) == 1  # one array
    assert cluster.alive(tmp_path) == jobs
    wait(lambda: not cluster.alive(tmp_path))
    assert [code(tmp_path, job) for job in jobs] == [0, 3]


@pytest.mark.slurm
def test_slurm_refuses(slurm, tmp_path, capfd):
    with pytest.raises(ValueError, match="--launcher=slurm: .*invalid partition") as e:
        cluster.submit(tmp_path, [python("-c", "")] * 2, partition="nowhere", **ONE_CPU)
    assert "\n" not in str(e.value) and capfd.readouterr().err == ""


@pytest.mark.slurm
def test_tasks_of_one_job_train_together(slurm, tmp_path, monkeypatch):
    """Each with one device, and a run on each."""
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    monkeypatch.setenv("XLA_FLAGS", "")
    words = ["--config=configs/mlp_cora.py", "--config.steps=20", "--config.seeds=2"]
    train = [sys.executable, str(ROOT / "train.py"), *words, f"--workdir={tmp_path / 'run'}"]
    assert "test accuracy" in say("srun", "-n", "2", "--cpus-per-task=1", *train)
    assert read_json(tmp_path / "run/config.json")["device"].startswith("2 cpu devices")
    assert command(*words, f"--workdir={tmp_path / 'alone'}").returncode == 0
    runs = [read_json(tmp_path / name / "summary.json")["splits"] for name in ("run", "alone")]
    ours, alone = (of["test"]["loss"]["values"] for of in runs)
    assert ours == pytest.approx(alone, rel=1e-4)


@pytest.mark.slurm
def test_what_is_cancelled_stays_so(slurm, tmp_path):
    file = tmp_path / "file"
    [job] = cluster.submit(tmp_path, [python("-c", SAVES, file)], partition=None, **ONE_CPU)
    wait(file.exists)
    say("scancel", job)
    wait(lambda: not cluster.alive(tmp_path))
    assert file.read_text() == "saved" and log(tmp_path, job).count("Starting with") == 1
    time.sleep(10)  # longer than a requeued job waits
    assert not cluster.alive(tmp_path)


DISTURBANCES = {
    "preempted": lambda job: say("sbatch", "--gpus=2", "--output=/dev/null", "--wrap=true"),
    "requeued": lambda job: say("scontrol", "requeue", job),
    "timed_out": lambda job: say("scancel", "--signal=USR2", job),  # as Slurm says it
}


@pytest.mark.slurm
@pytest.mark.timeout(900)
def test_disturbed_runs_end_as_undisturbed_ones(slurm, tmp_path):
    words = ["train.py", "--config=configs/gcn_cora.py", "--config.steps=4000"]
    words += ["--config.seeds=2", "--config.save=1e9"]  # it saves only when told to stop
    again = 'exec "$@" --workdir="$0" $(test -e "$0/config.json" && echo --resume)'
    jobs = {}
    for name, disturb in DISTURBANCES.items():
        folder, run = tmp_path / name, tmp_path / name / "run"
        worker = Worker(["sh", "-c", again, str(run), sys.executable, *words], str(ROOT))
        needs = ONE_CPU | {"gpus": int(name == "preempted")}
        [jobs[name]] = cluster.submit(folder, [worker], partition="preempt", **needs)
        wait(lambda run=run: len(read_rows(run)) > 20)
        disturb(jobs[name])
    for name, job in jobs.items():
        wait(lambda name=name: not cluster.alive(tmp_path / name))
        assert code(tmp_path / name, job) == 0
        said = log(tmp_path / name, job)
        assert said.count("Starting with") == 2 and said.count("saved; go on with") == 1
    assert command(*words[1:], f"--workdir={tmp_path / 'whole'}").returncode == 0
    for name in jobs:
        assert_same_outcome(tmp_path / "whole", tmp_path / name / "run")


@pytest.mark.slurm
@pytest.mark.timeout(900)
def test_a_sweep_on_the_cluster(slurm, tmp_path):
    words = [sys.executable, "sweep.py", "--config=configs/mlp_cora.py", "--config.seeds=2"]
    words += ["--config.steps=2000", "--config.save=1e9", "--set=model.width=4,8", "--confirm=1"]
    words += ["--confirm_seeds=2"]
    slurm = ["--launcher=slurm", "--partition=preempt", "--jobs=2", "--cpus=1", "--minutes=10"]
    folder = tmp_path / "sweep"
    first = subprocess.Popen([*words, *slurm, f"--workdir={folder}"], cwd=ROOT)
    runs = [folder / f"model.width={width}" for width in (4, 8)]
    wait(lambda: all(len(read_rows(run)) > 20 for run in runs))
    first.send_signal(signal.SIGINT)  # the jobs go on without it
    assert first.wait() == 130
    jobs = cluster.alive(folder)
    assert len(jobs) == 2
    say("scontrol", "requeue", jobs[0])
    assert subprocess.run([*words, *slurm, f"--workdir={folder}"], cwd=ROOT).returncode == 0
    assert "saved; go on with" in "".join(p.read_text() for p in folder.glob("logs/*.log"))
    alone = tmp_path / "alone"
    local = subprocess.run([*words, "--jobs=2", f"--workdir={alone}"], cwd=ROOT)
    assert local.returncode == 0
    chosen = [read_json(place / "outcome.json")["chosen"] for place in (folder, alone)]
    assert chosen[0] | {"seconds": 0} == chosen[1] | {"seconds": 0}
    for run in runs:
        assert_same_outcome(run, alone / run.name)
