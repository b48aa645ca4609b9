"""Output of the command: the line of each batch, and notes for a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.monitoring.progress import BatchProgress
from barnabas.spark_connector.running.failures import OutputClosed

TEXT: Final = "text"
FORMATS: Final[dict[str, Callable[[BatchProgress], str]]] = {
    TEXT: BatchProgress.as_text,
    "json": BatchProgress.as_json,
}


class Screen(Closing):
    """Standard output with the lines of batches, and with notes if a person reads it."""

    def __init__(self, shown: str) -> None:
        self._as_line = FORMATS[shown]
        self._is_for_people = shown == TEXT
        self._output = sys.stdout
        if not self._is_for_people:
            # The output of a pipeline's file must not mix with the lines for a program.
            sys.stdout = sys.stderr

    def close(self) -> None:
        """Restore standard output."""
        sys.stdout = self._output

    def batch(self, batch: BatchProgress) -> None:
        """Print the line of a batch."""
        self._print(self._as_line(batch))

    def note(self, line: str) -> None:
        """Print a note for a person: Spark starts, a pipeline had no new records."""
        if self._is_for_people:
            self._print(line)

    def announce(self, line: str) -> None:
        """Print a requested line, unless a program reads the output."""
        if self._is_for_people:
            self._print(line)
        else:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def _print(self, line: str) -> None:
        try:
            self._output.write(f"{line}\n")
            self._output.flush()
        except BrokenPipeError:
            # Otherwise Python fails to write the rest when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())
            raise OutputClosed from None
