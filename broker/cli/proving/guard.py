"""Guard of a run: ends its processes and removes its directory, also after ``kill -9``.

The guard is a process that waits for the end of a pipe from the command. The kernel closes the pipe
when the command ends, however it ends. Each process of the run has the directory of the run in its
environment, and those of the program have its name there, so that their children are found, too,
also in sessions of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from barnabas.storage.runtime.clock import sleep

VARIABLE: Final = "BARNABAS_PROVE_DIRECTORY"
"""Variable in the environment of each process of a run."""
NAME: Final = "BARNABAS_PROVE_PROCESS"
"""Variable in the environment of a process of the program, and of its children."""
_PROCESSES: Final = Path("/proc")
_ATTEMPTS_MAX: Final = 250
_INTERVAL_S: Final = 0.02


class Guard:
    """``with Guard(directory, environment):`` the processes of a run end with the block."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """``environment``: variables with which Python finds this module."""
        self._process = subprocess.Popen(  # noqa: S603 - this module itself
            [sys.executable, "-m", __name__, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the pipe, and wait until no process of the run is left."""
        self._process.communicate()


def end_run(directory: Path) -> None:
    """Kill the processes of a run until none is left, and remove its directory."""
    kill_all(VARIABLE, str(directory))
    shutil.rmtree(directory, ignore_errors=True)


def kill_all(variable: str, value: str) -> None:
    """Kill the processes with a variable in their environment until none is left."""
    for _ in range(_ATTEMPTS_MAX):
        if not signal_all(variable, value, signal.SIGKILL):
            break
        sleep(_INTERVAL_S)


def signal_all(variable: str, value: str, number: signal.Signals) -> set[int]:
    """Send a signal to the processes with a variable in their environment; return their IDs."""
    found = set()
    for process, its_value in values_of(variable):
        if its_value == value:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
                found.add(process)
    return found


def values_of(variable: str) -> Iterator[tuple[int, str]]:
    """Yield the processes that have a variable in their environment, with its value."""
    prefix = f"{variable}=".encode()
    for each in _PROCESSES.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # The process has ended, or belongs to another user.
            for entry in each.read_bytes().split(b"\0"):
                if entry.startswith(prefix):
                    yield int(each.parent.name), os.fsdecode(entry.removeprefix(prefix))


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_run(Path(sys.argv[1]))
