"""Where the command prints: the line of each batch, and what a person wants to know besides."""

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
    """Standard output, for the lines of batches; the rest is there too if a person reads it."""

    def __init__(self, shown: str) -> None:
        self._as_line = FORMATS[shown]
        self._is_for_people = shown == TEXT
        self._output = sys.stdout
        if not self._is_for_people:
            # What a pipeline's file prints must not stand between the lines for a program.
            sys.stdout = sys.stderr

    def close(self) -> None:
        """Give standard output back."""
        sys.stdout = self._output

    def batch(self, batch: BatchProgress) -> None:
        """Print the line of a batch."""
        self._print(self._as_line(batch))

    def note(self, line: str) -> None:
        """Print what is for a person who waits: Spark starts, a pipeline had nothing to do."""
        if self._is_for_people:
            self._print(line)

    def announce(self, line: str) -> None:
        """Print what was asked for, where a program does not read it."""
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
            # Otherwise Python tries to write what is left over, and complains, when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())
            raise OutputClosed from None
