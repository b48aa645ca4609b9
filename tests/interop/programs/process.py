"""A program as a process that is killed, and started again when it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

MOST_ENDS = 6
"""More often no program ends by itself because of a broker that is down for a moment."""
SHOWN = 4000


class ProgramProcess:
    """A program in several processes, one after the other, with its output in a file."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self.ended = 0
        """The number of processes that ended by themselves."""
        self.kills = 0
        self._command = command
        self._output = output
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._output.parent,
                # With what it starts itself.
                start_new_session=True,
            )

    def restart_if_ended(self) -> None:
        """Start the next process if this one has ended by itself, as a supervisor would."""
        if self._process.poll() is not None:
            self.ended += 1
            assert self.ended < MOST_ENDS, f"it ends again and again: {self.output()}"
            self.start()

    def kill(self) -> None:
        """Kill -9 the process and its children."""
        if self._process.poll() is None:
            self.kills += 1
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def output(self) -> str:
        """Return the end of what all its processes printed."""
        return self._output.read_text(errors="replace")[-SHOWN:]
