"""A broker process that dies at named points, and damage to what it has left."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

from barnabas.broker.runtime.failpoints import VARIABLE
from barnabas.storage.files.commit_mark import _MARK, _MARK_SLOT_BYTES, FILE_NAME, MARKS_AT
from barnabas.storage.journal.journal_format import BLOCK_BYTES, MAGIC, decode_header
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.forked import ForkedProcess, Forks

DEATH_TIMEOUT_S = 120


class FailingBroker(BarnabasProcess):
    """A broker with failpoints; see broker/runtime/failpoints.py.

    It dies and starts many times in one environment, whose processes it has forked for itself.
    """

    _forks: Forks | None = None

    def launch(
        self, command: list[str], environment: dict[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        """Fork the process."""
        if not self.is_forked:
            return super().launch(command, environment, output)
        if self._forks is None:
            self._forks = Forks(environment)
        return self._forks.start(command[3:], output)

    def remove(self) -> None:
        super().remove()
        if self._forks is not None:
            self._forks.close()

    def environment(self) -> dict[str, str]:
        if not self._failpoints.exists():
            self.arm("")
        return {**super().environment(), VARIABLE: str(self._failpoints)}

    @property
    def _failpoints(self) -> Path:
        return self.directory / "failpoints"

    def arm(self, failpoints: str) -> None:
        """Make the broker die at the failpoints in ``failpoints``."""
        new = self._failpoints.with_suffix(".new")
        new.write_text(failpoints)
        new.rename(self._failpoints)

    def wait_for_death(self) -> None:
        """Wait until a failpoint has killed the broker, and disarm it."""
        assert self._process is not None
        assert self._process.wait(DEATH_TIMEOUT_S) == -9, self.output()
        self.arm("")

    def tear_last_group(self) -> None:
        """Damage the newest group of the journal, as a write that the power cut off does."""
        groups = []
        for path in self.data_directory.glob("barnabas-journal-*"):
            data = path.read_bytes()
            for at in range(0, len(data), BLOCK_BYTES):
                if data.startswith(MAGIC, at):
                    header = decode_header(memoryview(data)[at:])
                    if header is not None:
                        groups.append((header.sequence, path, at + header.group_bytes))
        sequence, path, end = max(groups)
        damaged = bytearray(path.read_bytes())
        damaged[end - 1] ^= 0xFF
        path.write_bytes(damaged)
        self._forget_mark(sequence)

    def _forget_mark(self, sequence: int) -> None:
        """Erase the mark that a commit group was durable: a torn group never was."""
        path = self.data_directory / FILE_NAME
        marks = bytearray(path.read_bytes())
        position = MARKS_AT + (sequence & 1) * _MARK_SLOT_BYTES
        marks[position : position + _MARK.size] = bytes(_MARK.size)
        path.write_bytes(marks)
