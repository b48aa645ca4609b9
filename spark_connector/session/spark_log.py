"""File with Spark's output, and the reason of Spark's end in it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from barnabas.spark_connector.closing import Closing

_LOG_READ_BYTES: Final = 100_000
_RAISED: Final = re.compile(r'^Exception in thread "[^"]*" ([\w.$]+)(?:: (.*))?')
_UNRESOLVED: Final = re.compile(r"(?:unresolved dependency|download failed): ([^#\s]+)#([^;\s]+);")
_LOGGED: Final = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ERROR \S+: (.*)")
_CAUSE: Final = re.compile(r"^(?:[\w$]+\.)+([\w$]+: .+)")
_KILLED: Final = re.compile(r"Application has been killed\. Reason: (.*)")
_ERROR: Final = re.compile(r"error|exception|unrecognized|cannot|could not", re.IGNORECASE)
_JAVA_SAYS_ONLY_THAT: Final = re.compile(
    r"Error: Could not create the Java Virtual Machine|Error: A fatal exception has occurred"
    r"|Error occurred during initialization of VM"
)
_STANDARD_ERROR: Final = 2
_NO_REASON: Final = ("WARNING:", "Using ", ":: ", "NOTE:", "Picked up ")


class SparkLog(Closing):
    """File with Spark's output, deleted at the end unless kept; without a file if verbose."""

    def __init__(self, *, verbose: bool) -> None:
        self._file: IO[bytes] | None = None
        self._is_kept = False
        if not verbose:
            handle, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
            self._file = os.fdopen(handle, "wb")
            self._path = Path(name)

    @property
    def is_verbose(self) -> bool:
        """Whether all output is printed, without a file."""
        return self._file is None

    def close(self) -> None:
        """Close the file, and delete it unless it is kept."""
        if self._file is not None:
            self._file.close()
            if not self._is_kept:
                self._path.unlink(missing_ok=True)

    def popen_arguments(self) -> dict[str, IO[bytes] | int]:
        """Return the output files of Spark's process; none is standard output, for batch lines."""
        if self._file is None:
            return {"stdout": _STANDARD_ERROR}
        return {"stdout": self._file, "stderr": self._file}

    def reason(self) -> str:
        """Return the line in the file with the most likely reason of Spark's end."""
        return "see above" if self._file is None else reason_in(self._lines())

    def reason_of_its_end(self) -> str | None:
        """Return Spark's line about stopping itself, or `None`."""
        lines = [] if self._file is None else self._lines()
        return next((found[1] for found in map(_KILLED.search, reversed(lines)) if found), None)

    def _lines(self) -> list[str]:
        with self._path.open(errors="replace") as log:
            return [line.strip() for line in log.readlines(_LOG_READ_BYTES) if line.strip()]

    def keep(self) -> Path | None:
        """Keep the file; return its path, or `None` if it is empty."""
        if self._file is None or not self._path.stat().st_size:
            return None
        self._is_kept = True
        return self._path


def reason_in(lines: Sequence[str]) -> str:
    """Return the failure in the output of Java and Spark."""
    packages = dict.fromkeys(":".join(each) for each in _UNRESOLVED.findall("\n".join(lines)))
    if packages:
        return (
            f"there is no package {', '.join(packages)} of that version where Spark looks for it:"
            " check its name, or set --conf spark.jars.repositories=URL"
        )
    for found in map(_RAISED.match, lines):
        if found:
            return found[2] or found[1]
    if any(map(_JAVA_SAYS_ONLY_THAT.match, lines)):
        lines = [line for line in lines if not _JAVA_SAYS_ONLY_THAT.match(line)]
        told = [line for line in lines if not line.startswith(_NO_REASON)]
        return told[0] if told else "Java could not be started"
    for number, line in enumerate(lines):
        if found := _LOGGED.match(line):
            cause = _CAUSE.match("".join(lines[number + 1 : number + 2]))
            return f"{found[1]} ({cause[1]})" if cause else found[1]
    return next(filter(_ERROR.search, lines), lines[-1] if lines else "it printed nothing")
