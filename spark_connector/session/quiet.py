"""Suppression of PySpark's own output, which would mix with the lines of the command.

The command reports each of these failures in its own line, or the output has no meaning for a user.
"""

from __future__ import annotations

import logging
import socketserver
import sys
import warnings
from pathlib import Path
from typing import Any, Final, TextIO

_REPORTS_OF_QUERIES: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def quiet_warnings(program: str) -> None:
    """Print warnings in one line, except those of PySpark, which are for its developers.

    Py4J logs a traceback after Java has died.
    """
    warnings.filterwarnings("ignore", module="pyspark")
    warnings.formatwarning = lambda message, *_where, **_more: f"{program}: {message}\n"
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in Path(record.pathname).parts)


def quiet_pyspark() -> None:
    """Suppress tracebacks and reports of errors that PySpark raises as well."""
    from pyspark import util
    from pyspark.logger import PySparkLogger

    for name in _REPORTS_OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = True
    # For functions that cannot be pickled.
    util.print_exec = _print_nothing


def _print_nothing(stream: TextIO) -> None:
    """Replace a function that prints to a stream."""


def ignore_disconnects(server: socketserver.BaseServer) -> None:
    """Print no traceback if a connection to a server of PySpark ends within a message.

    Spark interrupts its scheduler when it stops. This closes the connection for accumulators of the
    last tasks, which no code reads any more.
    """
    show = server.handle_error

    def handle_error(request: Any, address: Any) -> None:  # noqa: ANN401 - as socketserver has it
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            show(request, address)

    server.handle_error = handle_error  # type: ignore[assignment]
