"""Running commands in the test's own process, against brokers that a test starts."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from barnabas.broker.cli.main import main
from barnabas.broker.runtime.simulated import simulated_host
from barnabas.storage.runtime.clock import monotonic, sleep


class Ended(NamedTuple):
    """Exit code and output of a command."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The output, which is one JSON document."""
        assert (self.exit_code, self.stderr) == (0, "")
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        """JSON documents that it printed, one in each line."""
        assert (self.exit_code, self.stderr) == (0, "")
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def lines(self) -> list[str]:
        """The lines of the output, without the blanks that align columns."""
        assert (self.exit_code, self.stderr) == (0, "")
        return [" ".join(line.split()) for line in self.stdout.splitlines()]

    @property
    def error(self) -> str:
        """The one line that a failed command printed on standard error, without its prefix."""
        assert self.exit_code == 1
        (line,) = self.stderr.splitlines()
        return line.removeprefix("barnabas: ")


def run_inline(
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[object],
    *,
    stdin: bytes = b"",
    terminal: bool = False,
) -> Ended:
    """Run a command to its end in this process, on a screen of 80 columns.

    One thread at a time: the streams are those of the process.
    """
    output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    keyboard = io.TextIOWrapper(io.BytesIO(stdin))
    with monkeypatch.context() as patch:
        patch.setattr(keyboard, "isatty", lambda: terminal)
        patch.setattr(sys, "stdin", keyboard)
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        patch.setenv("COLUMNS", "80")
        if simulated_host() is not None:
            # Its pauses and time limits are those of the World.
            patch.setattr("time.sleep", sleep)
            patch.setattr("time.monotonic", monotonic)
        try:
            exit_code = main([str(word) for word in words])
        except SystemExit as end:
            exit_code = end.code
    output.flush()
    return Ended(exit_code, output.buffer.getvalue().decode(), errors.getvalue())


class Shell:
    """``shell("topics", "list")`` runs a command against a broker."""

    def __init__(self, monkeypatch, address):
        self._monkeypatch = monkeypatch
        self.address = address

    def __call__(self, *arguments, stdin=b"", server=True, terminal=False):
        where = ("-b", self.address) if server else ()
        words = [*arguments, *where]
        return run_inline(self._monkeypatch, words, stdin=stdin, terminal=terminal)
