"""The training of populations in processes of this machine: pinned, logged, started again.

A child is a command, `python train.py ...`, or several of them that work together through
jax.distributed. It ends as its processes do; when one of several dies, the others are ended too,
since they would wait for it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PATIENCE = 30.0  # seconds that a process may take to save its run and end, before it is killed
ASKED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # exit codes of a run that saved and ended


class Child:
    """A command that runs in `count` processes on some of this machine's CPUs."""

    def __init__(self, words: Sequence[str], log: Path, cpus: Sequence[int], count: int = 1):
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._start = log, log.stat().st_size if log.exists() else 0
        place = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}"} if count > 1 else {}
        # Where it is there, setpriv has a child told to save and end if this process is killed.
        words = [*(["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []), *words]
        self._processes = []
        with open(log, "ab") as out, pinned(cpus):
            for i in range(count):
                own = {"JAX_NUM_PROCESSES": str(count), "JAX_PROCESS_ID": str(i)} if place else {}
                self._processes.append(
                    subprocess.Popen(
                        words,
                        env={**os.environ, **place, **own},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=out,
                    )
                )

    def poll(self) -> int | None:
        """The exit code when all have ended: 0, or that of the first that was not asked to end."""
        codes = [process.poll() for process in self._processes]
        bad = [code for code in codes if code]
        if bad and None in codes:
            self.stop()
            codes = [process.wait() for process in self._processes]
        if None in codes:
            return None
        return next((code for code in bad if code not in ASKED), bad[0] if bad else 0)

    def stop(self) -> None:
        """Asks all to save and end; kills what does not."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()

    def last_words(self) -> str:
        """The last line that it wrote, which of an error is what was wrong."""
        with open(self._log, "rb") as file:
            file.seek(self._start)
            lines = file.read().decode(errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip()]
        errors = [line for line in said if line.startswith("error: ")]
        return (errors or said or ["it said nothing"])[-1].removeprefix("error: ")


def shares(jobs: int) -> list[list[int]]:
    """This process's CPUs, dealt out to so many children. What a run computes depends, in its last
    bits, on how many it has, so all have as many, in every sitting."""
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    size = max(len(cpus) // jobs, 1)
    return [
        [cpus[(i * size + k) % len(cpus)] for k in range(size if cpus else 0)] for i in range(jobs)
    ]


@contextlib.contextmanager
def pinned(cpus: Sequence[int]) -> Iterator[None]:
    """What is started within may use these CPUs only, where the system can do that."""
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
