"""Output of the audit log: a file of its own, written by a thread, or the other log lines.

The event loop never waits for the file's disk. Above a limit of waiting lines the newest are
dropped, and their number is logged. A file that was moved (logrotate) is created again, readable by
its owner only. The logger has no public name, so that no log level, from the configuration or a
client, suppresses audit lines.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from queue import Full, Queue
from typing import Final

from barnabas.broker.config.types import ConfigError
from barnabas.storage.files.io import private_opener

WAITING_MAX: Final = 10_000
"""Maximum number of lines that wait for the disk."""

logger = logging.getLogger("barnabas.broker.runtime.audit_file")


class AuditOutput:
    """Writer of lines while it is open; other lines are dropped."""

    def __init__(self) -> None:
        self._log: logging.Logger | None = None
        self._listener: QueueListener | None = None

    def open(self, path: str) -> None:
        """Open a file, or use the log if ``path`` is empty; raises ConfigError."""
        log = logging.Logger("barnabas.audit", logging.INFO)  # noqa: LOG001  see the top
        if not path:
            # The root's handlers write all of its records, regardless of the root's level.
            log.parent = logging.root
            self._log = log
            return
        try:
            file = _File(path)
        except OSError as error:
            raise ConfigError("barnabas.audit.log", path, error.strerror or str(error)) from None
        lines: Queue[logging.LogRecord] = Queue(WAITING_MAX)
        log.addHandler(_Waiting(lines))
        self._log, self._listener = log, QueueListener(lines, file)
        self._listener.start()

    def write(self, line: str) -> None:
        """Write a line; for the event loop."""
        if self._log is not None:
            self._log.info("%s", line)

    def close(self) -> None:
        """Write the waiting lines, and close the file."""
        self._log = None
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.stop()
            for handler in listener.handlers:
                handler.close()


class _Waiting(QueueHandler):
    """Queue of the lines for the writing thread."""

    def __init__(self, lines: Queue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self._left_out = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue a line, or count it if the queue is full."""
        try:
            self.queue.put_nowait(record)
        except Full:
            self._left_out += 1
            return
        if self._left_out:
            logger.error("audit lines left out, the disk is slow count=%d", self._left_out)
            self._left_out = 0


class _File(WatchedFileHandler):
    """Log file; a write error is logged once until writes succeed again."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._error: BaseException | None = None
        self._is_broken = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        error = self._error_of(record)
        if error is None and self._is_broken:
            logger.info("audit log is written again path=%s", self.baseFilename)
        elif error is not None and not self._is_broken:
            logger.error("audit log cannot be written path=%s: %s", self.baseFilename, error)
        self._is_broken = error is not None

    def _error_of(self, record: logging.LogRecord) -> BaseException | None:
        self._error = None
        try:
            super().emit(record)
        except OSError as error:  # The file cannot be created again.
            return error
        return self._error

    def _open(self) -> TextIOWrapper:
        return open(
            self.baseFilename,
            "a",
            encoding=self.encoding,
            errors=self.errors,
            opener=private_opener,
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  logging's name
        """Store the error of a write."""
        self._error = sys.exception()

    def close(self) -> None:
        """Close the file; lines that it could not write are lost, which was logged."""
        with suppress(OSError):
            super().close()
