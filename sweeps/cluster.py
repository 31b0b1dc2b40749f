"""A sweep's workers as jobs of a Slurm cluster, which may take its machines back at any time.

Before a time-out, and before a preemption where it is set so, Slurm sends the signal that submitit
asks for, upon which submitit calls `checkpoint` and requeues the job. All else is SIGTERM, with
SIGKILL to follow: a preemption, requeued by Slurm itself, or a scancel, not to be requeued at all.
"""

import contextlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

SAVE = 60  # seconds a command has to save and exit
NOTICE = 90  # seconds before a time-out at which it is announced: to save, then to requeue
SITTINGS = 1000  # how often a job goes on after a time-out; submitit's default is 3


class Worker:
    """One worker of a sweep as a Slurm job: runs a command as a child process, in the folder `cwd`.

    On preemption or time-out the child is sent SIGTERM, upon which it saves its run's checkpoint
    and exits with 143; the job is requeued, and the same command goes on from the checkpoint.
    """

    def __init__(self, command: list[str], cwd: str):
        self.command, self.cwd = command, cwd
        self._child: subprocess.Popen | None = None
        self._told = False

    def __call__(self) -> int:
        """Runs the command in the job. Returns its exit code."""
        signal.signal(signal.SIGTERM, lambda *_: self._tell())  # submitit would pass it over
        # Its own signal may reach all processes of the job. What is blocked, a child inherits.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
        self._child = subprocess.Popen(self.command, cwd=self.cwd, stdin=subprocess.DEVNULL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Popen.wait would hold a lock that `checkpoint`, interrupting it, needs.
        os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        code = self._child.wait()
        while code in (-signal.SIGTERM, 128 + signal.SIGTERM):
            signal.pause()  # until Slurm kills: a job that ends first is not started again
        return code

    def checkpoint(self, *args: object) -> object:
        """submitit's hook, upon its signal: what is to run when the job is started again."""
        import submitit

        self._tell()
        if self._child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(SAVE)
        return submitit.helpers.DelayedSubmission(Worker(self.command, self.cwd), *args)

    def _tell(self) -> None:
        if self._child and not self._told:  # once: submitit's signal may follow a SIGTERM
            self._told = True
            self._child.terminate()


def submit(
    folder: Path,
    workers: list[Worker],
    *,
    partition: str | None,
    minutes: int,
    gpus: int,
    cpus: int,
    parallel: int,
) -> list[str]:
    """Submits the workers as one array, at most `parallel` to run at once; returns their ids."""
    if importlib.util.find_spec("submitit") is None:
        raise ValueError("--launcher=slurm: there is no submitit; pip install 'lineage[slurm]'")
    if shutil.which("sbatch") is None:
        raise ValueError("--launcher=slurm: there is no sbatch here")
    import submitit

    jobs = folder.resolve() / "jobs"
    executor = submitit.AutoExecutor(jobs, cluster="slurm", slurm_max_num_timeout=SITTINGS)
    executor.update_parameters(
        name=jobs.parent.name,
        timeout_min=minutes,
        cpus_per_task=cpus,
        slurm_partition=partition,
        slurm_array_parallelism=parallel,
        slurm_signal_delay_s=min(NOTICE, 60 * minutes // 3),
        slurm_setup=[f"cd {shlex.quote(str(Path(__file__).parents[1]))}"],  # to find this module
        slurm_srun_args=[f"--cpus-per-task={cpus}"],  # not passed on by itself since Slurm 22.05
        slurm_additional_parameters={"requeue": True},  # whatever the cluster's default
        **({"gpus_per_node": gpus} if gpus else {}),
    )
    try:  # submitit prints what sbatch says, too
        with contextlib.redirect_stderr(io.StringIO()), executor.batch():
            submitted = [executor.submit(worker) for worker in workers]
    except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as e:
        raise ValueError(f"--launcher=slurm: {' '.join(str(e).split())}") from e
    ids = [job.job_id for job in submitted]
    (folder / "jobs.json").write_text(json.dumps(ids))
    return ids


def alive(folder: Path) -> list[str]:
    """The jobs submitted from a folder that have not ended: pending, running, requeued, ending."""
    try:
        ids = json.loads((folder / "jobs.json").read_text())
    except FileNotFoundError:
        return []
    # All of the user's: to ask for one that Slurm has forgotten, after minutes, is an error.
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as e:
        raise ValueError(f"squeue: {' '.join(str(getattr(e, 'stderr', e)).split())}") from e
    return [name for name in ids if name in said]
