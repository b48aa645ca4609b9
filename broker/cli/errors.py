"""Exit codes and errors of commands."""

from __future__ import annotations

import sys

from barnabas.broker.cli.printing import print_text

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130


class CommandError(Exception):
    """One line for the user, and the exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def report(message: str, exit_code: int) -> int:
    """Print an error in one line on standard error; return the exit code."""
    line = " ".join(message.split())
    print_text(f"barnabas: {line}", file=sys.stderr)
    return exit_code
