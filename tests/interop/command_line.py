"""The `barnabas` command as users run it, for tests against any broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess


class Ran(NamedTuple):
    """A command that was run to its end."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """What a command that succeeded printed, without the blanks that line up columns."""
        assert (self.exit_code, self.stderr) == (0, "")
        return [" ".join(line.split()) for line in self.stdout.splitlines()]

    @property
    def json(self) -> Any:
        """The JSON document that a command that succeeded printed."""
        assert (self.exit_code, self.stderr) == (0, "")
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        """The JSON that a command that succeeded printed line by line."""
        assert (self.exit_code, self.stderr) == (0, "")
        return [json.loads(line) for line in self.stdout.splitlines()]


def command(*words: object) -> list[str]:
    """Return the command line."""
    return [sys.executable, "-m", "barnabas", *map(str, words)]


def environment() -> dict[str, str]:
    """Return what a command sees of the environment: the packages, and a screen of 80 columns."""
    return BarnabasProcess.python_environment() | {"COLUMNS": "80"}


def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    """Run a command to its end."""
    ended = subprocess.run(
        command(*words),
        input=stdin,
        capture_output=True,
        env=environment(),
        cwd=cwd,
        timeout=300,
        check=False,
    )
    ran = Ran(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
    assert "Traceback" not in ran.stdout + ran.stderr
    return ran


class CommandLine:
    """``barnabas(...)`` with the address of one broker."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker

    def __call__(self, *words: object, stdin: bytes = b"") -> Ran:
        return run(*words, "-b", self.broker.bootstrap_servers, stdin=stdin)

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Start a command that goes on for a while."""
        return subprocess.Popen(
            command(*words, "-b", self.broker.bootstrap_servers),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines_of(self, lines: Sequence[str], *words: object) -> Ran:
        """Run a command with lines on its standard input."""
        return self(*words, stdin="".join(f"{line}\n" for line in lines).encode())
