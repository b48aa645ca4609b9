"""Guard of a run: ends its processes and removes its directory, also after ``kill -9``.

The guard is a process that waits for the end of a pipe from the command. The kernel closes the pipe
when the command ends, however it ends. Each process of the run has the directory of the run in its
environment, so that the guard also finds children in sessions of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from barnabas.storage.runtime.clock import sleep

VARIABLE: Final = "BARNABAS_PROVE_DIRECTORY"
"""Variable in the environment of each process of a run."""
_PROCESSES: Final = Path("/proc")
_LOOKS_MAX: Final = 250
_LOOK_S: Final = 0.02


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
    for _ in range(_LOOKS_MAX):
        if not _kill(f"{VARIABLE}={directory}".encode()):
            break
        sleep(_LOOK_S)
    shutil.rmtree(directory, ignore_errors=True)


def _kill(variable: bytes) -> bool:
    """Kill the processes with a variable in their environment; return whether there were any."""
    found = False
    for each in _PROCESSES.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # The process has ended, or belongs to another user.
            if variable in each.read_bytes().split(b"\0"):
                found = True
                os.kill(int(each.parent.name), signal.SIGKILL)
    return found


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_run(Path(sys.argv[1]))
