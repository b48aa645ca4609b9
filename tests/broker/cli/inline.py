"""Running commands in the test's own process, against brokers that a test starts."""

from __future__ import annotations

import io
import json
import sys
from typing import NamedTuple

from barnabas.broker.cli.main import main


class Ended(NamedTuple):
    """How a command ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        """What it printed, which is one JSON document."""
        assert (self.exit_code, self.stderr) == (0, "")
        return json.loads(self.stdout)

    @property
    def lines(self):
        """What it printed, line by line, without the blanks that line up columns."""
        assert (self.exit_code, self.stderr) == (0, "")
        return [" ".join(line.split()) for line in self.stdout.splitlines()]

    @property
    def error(self):
        """The one line that a failed command printed on standard error, without its prefix."""
        assert self.exit_code == 1
        (line,) = self.stderr.splitlines()
        return line.removeprefix("barnabas: ")


class Shell:
    """``shell("topics", "list")`` runs a command against a broker."""

    def __init__(self, monkeypatch, address):
        self._monkeypatch = monkeypatch
        self.address = address

    def __call__(self, *arguments, stdin=b"", server=True, terminal=False):
        words = [str(word) for word in arguments]
        if server:
            words += ["-b", self.address]
        output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        with self._monkeypatch.context() as patch:
            keyboard = io.TextIOWrapper(io.BytesIO(stdin))
            patch.setattr(keyboard, "isatty", lambda: terminal)
            patch.setattr(sys, "stdin", keyboard)
            patch.setattr(sys, "stdout", output)
            patch.setattr(sys, "stderr", errors)
            patch.setenv("COLUMNS", "80")
            try:
                exit_code = main(words)
            except SystemExit as end:
                exit_code = end.code
        output.flush()
        return Ended(exit_code, output.buffer.getvalue().decode(), errors.getvalue())
