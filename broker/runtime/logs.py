"""Log lines: event name first, fields after, as text or JSON, to standard error.

INFO is a change of state, WARNING a client's fault, ERROR something an operator must act on. Each
place in the code writes ten ERROR lines a second at most. There is no line per request;
``barnabas.broker.network.connection`` has its own switch for wire traces.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, TextIO

from barnabas.storage.runtime.clock import monotonic

AUDIT: Final = "barnabas.audit"
CONVERSION: Final = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[a-z]")
FIELD: Final = re.compile(rf"(?:^|\s)([a-z_]+)=(\S*{CONVERSION.pattern}\S*?)[:,]?(?=\s|$)")
"""A field of a message's template: a name, and a value with conversions in it."""
RESERVED: Final = frozenset({"time", "level", "logger", "event", "exception"})
ERRORS_PER_SECOND: Final = 10
"""Lines at ERROR and above of one place in the code: a client that meets a bug can repeat it."""


class JsonFormatter(logging.Formatter):
    """One JSON object per line: the event, and each field of it by its name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; its time is UTC, as RFC 3339 writes it."""
        moment = datetime.fromtimestamp(record.created, UTC)
        event, fields = event_and_fields(record)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": event,
        }
        line |= {f"{key}_" if key in RESERVED else key: value for key, value in fields.items()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def event_and_fields(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    """Return the event of a log record without its fields, and the fields.

    The template defines the fields, as values may look like fields and contain blanks.
    """
    arguments = record.args
    if record.name == AUDIT:
        return "audit", {"audit": json.loads(record.getMessage())}
    is_template = isinstance(record.msg, str) and "%%" not in record.msg
    if not is_template or not isinstance(arguments, tuple):
        return record.getMessage(), {}
    left = list(arguments)
    fields: dict[str, object] = {}
    words: list[str] = []
    end = 0
    for field in FIELD.finditer(record.msg):
        words.append(_filled(record.msg[end : field.start()], left))
        name, value = field.groups()
        if value == "%d":
            fields[name] = left.pop(0)
        else:
            fields[name] = _filled(value, left)
        end = field.end()
    words.append(_filled(record.msg[end:], left))
    return " ".join(filter(None, (each.strip() for each in words))), fields


def _filled(template: str, left: list[object]) -> str:
    """Fill a piece of a template with the next of the arguments."""
    count = len(CONVERSION.findall(template))
    taken, left[:count] = tuple(left[:count]), []
    return template % taken


class ErrorLimit:
    """Limits lines at ERROR and above, separately for each place in the code.

    A line with the number of dropped lines precedes the next line of the same place.
    """

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        # The second, and lines in it so far, of places; there are as many as the code has.
        self._written: dict[tuple[str, int], tuple[int, int]] = {}

    def lines_for(self, record: logging.LogRecord) -> Iterator[logging.LogRecord]:
        """Yield the records to write instead of this one: none, itself, or two."""
        if record.levelno < logging.ERROR:
            yield record
            return
        place, second = (record.pathname, record.lineno), int(self._seconds())
        seen, count = self._written.get(place, (second, 0))
        if seen != second:
            if count > ERRORS_PER_SECOND:
                yield _left_out(record, count - ERRORS_PER_SECOND)
            count = 0
        self._written[place] = second, count + 1
        if count < ERRORS_PER_SECOND:
            yield record


def _left_out(record: logging.LogRecord, count: int) -> logging.LogRecord:
    return logging.LogRecord(
        record.name,
        record.levelno,
        record.pathname,
        record.lineno,
        "%d more errors like the next one left out",
        (count,),
        None,
    )


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Handler that writes lines to a stream within ``ErrorLimit``."""

    def __init__(self, stream: TextIO, limit: ErrorLimit) -> None:
        super().__init__(stream)
        self._limit = limit

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record, unless its place has written enough of them."""
        for each in self._limit.lines_for(record):
            super().emit(each)


def configure_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send all log lines of ``level`` and above to ``stream`` (standard error) as text or json."""
    handler = LimitedHandler(stream or sys.stderr, ErrorLimit())
    if form == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(
            logging.Formatter(
                "%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S"
            )
        )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
