"""Other software as a process that is started, killed and waited for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.counterparts.forked import ForkedProcess
from tests.waiting import wait_until


class ProcessHandle:
    """A process that is started, killed with -9 and started again."""

    _process: subprocess.Popen[bytes] | ForkedProcess | None = None

    @property
    def pid(self) -> int:
        """The process ID."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process lives, even if it accepts no requests."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill -9 the process, and wait until it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Service(ProcessHandle):
    """`with Service(...) as service:` a process that is ready, with its output in a file."""

    start_timeout_s = 180

    def __init__(self, output_path: Path) -> None:
        self._output_path = output_path

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Return whether the service accepts requests."""
        raise NotImplementedError

    def wait_until_ready(self) -> None:
        """Wait until the service accepts requests; fail if its process ends before."""

        def is_ready() -> bool:
            assert self.is_running, f"the process ended: {self.output()}"
            return self.is_ready()

        wait_until(is_ready, self.output, seconds=self.start_timeout_s)

    def output(self, *, limit: int = 4000) -> str:
        """Return the end of the output."""
        return self._output_path.read_text(errors="replace")[-limit:]

    def __enter__(self) -> Self:
        try:
            self.launch()
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
