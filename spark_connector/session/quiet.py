"""What PySpark prints of its own accord, kept from standing between the lines of the command.

Each of these is said by the command itself, in its one line, or means nothing for who runs it.
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
    """Show warnings in one line, and those of PySpark's, which are for who writes it, not at all.

    Py4J logs a traceback where Java has died.
    """
    warnings.filterwarnings("ignore", module="pyspark")
    warnings.formatwarning = lambda message, *_where, **_more: f"{program}: {message}\n"
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "py4j" not in Path(record.pathname).parts)


def quiet_pyspark() -> None:
    """Print neither tracebacks nor reports of errors that PySpark raises as well."""
    from pyspark import util
    from pyspark.logger import PySparkLogger

    for name in _REPORTS_OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = True
    # Where a function cannot be pickled.
    util.print_exec = _print_nothing


def _print_nothing(stream: TextIO) -> None:
    """Stand in for what prints to a stream."""


def let_the_other_side_leave(server: socketserver.BaseServer) -> None:
    """Print no traceback where a connection to a server of PySpark's ended in mid-message.

    Spark interrupts its scheduler when it stops, which cuts the connection over which the counts
    of the last tasks come: no reader of them is left.
    """
    show = server.handle_error

    def handle_error(request: Any, address: Any) -> None:  # noqa: ANN401 - as socketserver has it
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            show(request, address)

    server.handle_error = handle_error  # type: ignore[assignment]
