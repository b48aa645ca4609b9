"""The `barnabas` command, in this process and as users run it, for tests against any broker."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.broker.cli.inline import Ended, run_inline
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import Addressed


def command(*words: object) -> list[str]:
    """Return the command line."""
    return [sys.executable, "-m", "barnabas", *map(str, words)]


def environment() -> dict[str, str]:
    """Return the environment of a command: the packages, and a screen of 80 columns."""
    return BarnabasProcess.python_environment() | {"COLUMNS": "80"}


def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> Ended:
    """Run a command to its end, in this process; one thread at a time."""
    with contextlib.chdir(cwd or Path.cwd()):
        ended = run_inline(pytest.MonkeyPatch(), words, stdin=stdin)
    assert "Traceback" not in ended.stdout + ended.stderr
    return ended


def run_alone(*words: object, stdin: bytes = b"") -> Ended:
    """Run a command to its end, in a process of its own."""
    ended = subprocess.run(
        command(*words),
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=300,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


class CommandLine:
    """``barnabas(...)`` with the address of one broker."""

    def __init__(self, broker: Addressed) -> None:
        self.broker = broker

    def __call__(self, *words: object, stdin: bytes = b"") -> Ended:
        return run(*words, "-b", self.broker.bootstrap_servers, stdin=stdin)

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Start a command as a process that works for some time."""
        return subprocess.Popen(
            command(*words, "-b", self.broker.bootstrap_servers),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines_of(self, lines: Sequence[str], *words: object) -> Ended:
        """Run a command with lines on its standard input."""
        return self(*words, stdin="".join(f"{line}\n" for line in lines).encode())
