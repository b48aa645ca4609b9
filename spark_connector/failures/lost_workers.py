"""Detection of a lost Python worker of Spark, or of the daemon that forks workers.

Spark reports the first error that Java meets: the end of a file, a reset, a closed channel, a
broken pipe, a refused connection, with or without a message. So Java's stack identifies the loss,
not the class of the exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise, takewhile
from typing import Final

_FRAME: Final = re.compile(r"\s+at (\S.*)")
_FRAMES_LEFT_OUT: Final = re.compile(r"\s+\.\.\. \d+ (?:more|common frames omitted)")
_OF_JAVA: Final = re.compile(r"java\.base/")
_OF_A_CONNECTION: Final = re.compile(
    r"java\.base/(?:sun\.nio\.ch|java\.net|java\.io\.DataInputStream)\.[^(]*"
    r"(?:[rR]ead|[wW]rite|[cC]onnect|ensureOpen|UnixDomainSocketAddress\.of)"
)
_IN_BETWEEN: Final = re.compile(
    r"(?:java|jdk|sun|scala|org\.apache\.spark\.security\.SocketAuthHelper)\b"
)
"""Frames of libraries through which Spark's packages for Python workers read and write."""
_OF_WORKERS: Final = re.compile(
    r"org\.apache\.spark\.(?:api|sql\.execution(?:\.datasources\.v2)?)\.python\."
)
_TAKES_ROWS: Final = re.compile(rf"org\.apache\.arrow\.|{_OF_WORKERS.pattern}")
_OF_A_PIPE: Final = re.compile(
    r"java\.base/java\.(?:lang\.ProcessBuilder\$NullOutputStream|io\.FileOutputStream)\.write"
)
_OF_DAEMONS: Final = re.compile(r"org\.apache\.spark\.api\.python\.PythonWorkerFactory\.")
"""Code that writes to a daemon's standard input when a worker is not needed any more."""
_NO_END: Final = re.compile(r"time(?:d )?out|interrupt", re.IGNORECASE)
"""Errors that prove no loss: a slow worker, or an interrupted thread of Java."""
_EXITED: Final = "Python worker exited unexpectedly"
_SAYS_SO: Final = re.compile(
    # During its work.
    rf"{_EXITED}|"
    # Between two messages to the daemon that has forked it.
    r"Python daemon failed to launch worker\.$|"
    # A daemon at its start; its own message, if any, comes first.
    r"(?:: org\.apache\.spark\.SparkException|with exception): EOFException occurred while reading"
    r" the port number|"
    # A worker of the driver.
    r"STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE(?![^\n]*timed out)",
    re.MULTILINE,
)


@dataclass(slots=True)
class _Raised:
    """A line of a report with the following frames of a stack, if it is an exception."""

    line: str
    frames: list[str] = field(default_factory=list)

    def first_frame_that_is_not(self, pattern: re.Pattern[str]) -> str | None:
        return next(dropwhile(pattern.match, self.frames), None)

    def is_end_of_a_worker(self) -> bool:
        """Return whether Java failed to read, write or connect directly for a package of workers.

        An error from too many open files comes before any of these calls.
        """
        if "Exception" not in self.line or _NO_END.search(self.line):
            return False
        connection = takewhile(_OF_JAVA.match, self.frames)
        caller = self.first_frame_that_is_not(_IN_BETWEEN)
        if caller is None or not _OF_WORKERS.match(caller):
            return False
        return any(
            _OF_A_CONNECTION.match(each) or (_OF_A_PIPE.match(each) and _OF_DAEMONS.match(caller))
            for each in connection
        )

    def is_failure_of_rows(self) -> bool:
        """Return whether the source of a worker's rows failed: a truncated file, a full disk."""
        caller = self.first_frame_that_is_not(_IN_BETWEEN)
        return caller is not None and _TAKES_ROWS.match(caller) is None


def has_lost_a_worker(text: str) -> bool:
    """Return whether reports of failures, with Java's stacks, show a lost worker."""
    raised = list(_raised_in(text))
    if any(each.is_end_of_a_worker() for each in raised):
        return True
    # Spark also reports an exited worker after an IOException of the thread that sends rows.
    if any(
        _EXITED in outer.line and cause.line.startswith("Caused by: ")
        for outer, cause in pairwise(raised)
        if cause.is_failure_of_rows()
    ):
        return False
    return _SAYS_SO.search(text) is not None


def _raised_in(text: str) -> Iterator[_Raised]:
    raised = _Raised("")
    for line in text.splitlines():
        if frame := _FRAME.match(line):
            raised.frames.append(frame[1])
        elif not _FRAMES_LEFT_OUT.match(line):
            yield raised
            raised = _Raised(line)
    yield raised
