"""Whether Spark has lost one of its Python workers, or the daemon that forks them.

Spark reports what Java meets first: the end of a file, a reset, a closed channel, a broken pipe, a
refused connection, with words or without. So it is not known by its name but by where Java was.
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
"""What Spark's packages for Python workers read, write and connect with."""
_OF_WORKERS: Final = re.compile(
    r"org\.apache\.spark\.(?:api|sql\.execution(?:\.datasources\.v2)?)\.python\."
)
_TAKES_ROWS: Final = re.compile(rf"org\.apache\.arrow\.|{_OF_WORKERS.pattern}")
_OF_A_PIPE: Final = re.compile(
    r"java\.base/java\.(?:lang\.ProcessBuilder\$NullOutputStream|io\.FileOutputStream)\.write"
)
_OF_DAEMONS: Final = re.compile(r"org\.apache\.spark\.api\.python\.PythonWorkerFactory\.")
"""What tells a daemon by its standard input of a worker that is not needed any more."""
_NO_END: Final = re.compile(r"time(?:d )?out|interrupt", re.IGNORECASE)
"""The other side may be well: it is slow, or a thread was interrupted that waited for it."""
_EXITED: Final = "Python worker exited unexpectedly"
_SAYS_SO: Final = re.compile(
    # In the middle of something.
    rf"{_EXITED}|"
    # Between two words to the daemon that has forked it.
    r"Python daemon failed to launch worker\.$|"
    # A daemon at its start; if it said why, that stands in front.
    r"(?:: org\.apache\.spark\.SparkException|with exception): EOFException occurred while reading"
    r" the port number|"
    # One that works for the driver.
    r"STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE(?![^\n]*timed out)",
    re.MULTILINE,
)


@dataclass(slots=True)
class _Raised:
    """A line of a report, and the frames below it: an exception, if there are any."""

    line: str
    frames: list[str] = field(default_factory=list)

    def first_frame_that_is_not(self, pattern: re.Pattern[str]) -> str | None:
        return next(dropwhile(pattern.match, self.frames), None)

    def is_end_of_a_worker(self) -> bool:
        """Java reads, writes or connects for the packages for workers, for nobody in between.

        A file too many for the process is found before any of these calls.
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
        """What should give a worker its rows fails: a file that ends too early, a full disk."""
        caller = self.first_frame_that_is_not(_IN_BETWEEN)
        return caller is not None and _TAKES_ROWS.match(caller) is None


def has_lost_a_worker(text: str) -> bool:
    """Say whether reports of failures, with Java's stacks where there are any, tell of that."""
    raised = list(_raised_in(text))
    if any(each.is_end_of_a_worker() for each in raised):
        return True
    # Spark says that a worker has exited of any IOException of the thread that gives it its rows.
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
