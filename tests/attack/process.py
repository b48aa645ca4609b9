"""The broker under attack, with its state from /proc and its log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.attack.neighbour import Report
from tests.checkout import PYTHONPATH, ROOT
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST
from tests.counterparts.probe import free_port

INSIDE = Path(__file__).parent / "inside"
"""The folder of a module in the broker's Python that measures its loop."""
COMPLAINT = re.compile(r"Traceback \(most recent call last\)|\b(ERROR|CRITICAL)\b")
_FIELDS = {"VmRSS": "resident_bytes", "VmHWM": "peak_bytes"}


class AttackedBroker(BarnabasProcess):
    """A broker with default settings, its HTTP port open; ``variables`` go into its environment."""

    def __init__(
        self,
        directory: Path | None = None,
        variables: dict[str, str] | None = None,
        **overrides: str,
    ) -> None:
        self.http_port = free_port()
        self.login_port = free_port()
        self.variables = variables or {}
        super().__init__(
            directory, **{"barnabas_http_listener": f"{HOST}:{self.http_port}", **overrides}
        )

    def command(self) -> list[str]:
        if "sasl.enabled.mechanisms" in self.overrides:
            login = "SASL_SSL" if "SSL" in self.more_ports else "SASL_PLAINTEXT"
            protocols = f"PLAINTEXT:PLAINTEXT,SSL:SSL,LOGIN:{login}"
            self.overrides["listener.security.protocol.map"] = protocols
        return super().command()

    @property
    def listeners(self) -> str:
        """Beside the neighbour's listener one with authentication, if users are configured."""
        login = f",LOGIN://{HOST}:{self.login_port}"
        return super().listeners + (login if "sasl.enabled.mechanisms" in self.overrides else "")

    def environment(self) -> dict[str, str]:
        environment = super().environment() | self.variables
        inside = (environment.get("PYTHONPATH"), str(INSIDE))
        environment["PYTHONPATH"] = os.pathsep.join(each for each in inside if each)
        return environment | {"ATTACK_LOOP_LAG": str(self.loop_lag_path)}

    @property
    def loop_lag_path(self) -> Path:
        return self.directory / "loop-lag.txt"

    def loop_held_ms(self, since_s: float) -> float:
        """The longest that its loop worked in one turn since that monotonic time, in CPU time."""
        lines = self.loop_lag_path.read_text(encoding="ascii").splitlines()
        turns = [tuple(map(float, line.split())) for line in lines]
        return max((busy_ms for at_s, busy_ms, _ in turns if at_s > since_s), default=0.0)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the process to end by itself; its exit code, None if it has not by then."""
        assert self._process is not None, "not started"
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def memory(self) -> dict[str, int]:
        """Resident bytes now (``VmRSS``) and at most so far (``VmHWM``)."""
        found = {}
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in _FIELDS:
                found[_FIELDS[name]] = int(rest.split()[0]) * 1024
        return found

    def descriptors(self) -> int:
        """The number of files and sockets that it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def complaints(self) -> list[str]:
        """Lines of its log that are tracebacks or errors."""
        lines = self.output_path.read_text(errors="replace").splitlines()
        return [line for line in lines if COMPLAINT.search(line)]


class NeighbourDied(Exception):
    """The good neighbour ended without a report: it was refused, or has a bug."""


class NeighbourProcess:
    """`with NeighbourProcess(broker) as neighbour:` the good neighbour is at work, and warm."""

    def __init__(self, broker: AttackedBroker) -> None:
        arguments = [str(broker.port), str(broker.http_port)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.neighbour", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PYTHONPATH},
            text=True,
        )

    def report(self) -> Report:
        """End its work, make it read everything, and return its report; repeatable."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Report.from_json(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise NeighbourDied(f"the neighbour exited {self._process.wait()}")
        return line

    def __enter__(self) -> Self:
        try:
            self._line()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
