"""Log lines: event name first, fields after, as text or JSON, to standard error.

INFO is a change of state, WARNING a client's fault, ERROR something an operator must act on. There
is no line per request; ``barnabas.broker.network.connection`` has its own switch for wire traces.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

AUDIT: Final = "barnabas.audit"
CONVERSION: Final = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[a-z]")
FIELD: Final = re.compile(rf"(?:^|\s)([a-z_]+)=(\S*{CONVERSION.pattern}\S*?)[:,]?(?=\s|$)")
"""A field of a message's template: a name, and a value with conversions in it."""
RESERVED: Final = frozenset({"time", "level", "logger", "event", "exception"})


class JsonFormatter(logging.Formatter):
    """One JSON object per line: the event, and each field of it by its name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; its time is UTC, as RFC 3339 writes it."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event, fields = event_and_fields(record)
        line: dict[str, object] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "event": event,
        }
        line |= {f"{key}_" if key in RESERVED else key: value for key, value in fields.items()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def event_and_fields(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    """Return the event of a log record without its fields, and these.

    The template says what is a field: values may look like one, and hold blanks.
    """
    arguments = record.args
    if record.name == AUDIT:
        return "audit", {"audit": json.loads(record.getMessage())}
    if not isinstance(arguments, tuple) or "%%" in record.msg:
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


def configure_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send all log lines of ``level`` and above to ``stream`` (standard error) as text or json."""
    handler = logging.StreamHandler(stream or sys.stderr)
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
