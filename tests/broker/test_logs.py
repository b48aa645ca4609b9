import io
import json
import logging
import re

import pytest

from barnabas.broker.runtime.logs import (
    ERRORS_PER_SECOND,
    ErrorLimit,
    LimitedHandler,
    configure_logging,
)


@pytest.fixture
def stream():
    """Yield a stream for log lines, and restore the logging of pytest afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_text(stream):
    configure_logging("INFO", "text", stream)
    logging.getLogger("broker.x").info("topic created name=%s", "a")
    logging.getLogger("broker.x").debug("not this")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO    topic created name=a\n", stream.getvalue()
    )


def test_json(stream):
    configure_logging("WARNING", "json", stream)
    logging.getLogger("broker.x").info("not this")
    logging.getLogger("broker.x").warning("odd client name=%s", 'é"\n')
    try:
        int("bad")
    except ValueError:
        logging.getLogger("broker.y").exception("a bug")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "level": "WARNING",
        "logger": "broker.x",
        "event": "odd client",
        "name": 'é"\n',
    }
    assert second["exception"].endswith("base 10: 'bad'")


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("broker stops", (), {"event": "broker stops"}),
        ("%s", ("a=1 b=2",), {"event": "a=1 b=2"}),
        (
            "led here partition=%s-%d bytes=%d",
            ("orders", 3, 7),
            {"event": "led here", "partition": "orders-3", "bytes": 7},
        ),
        (
            "not loaded topic=%s: %s",
            ("a level=9", "why time=4"),
            {"event": "not loaded why time=4", "topic": "a level=9"},
        ),
        ("restored level=%s", ("x",), {"event": "restored", "level_": "x"}),
        ("100 %% of disk=%s", ("/data",), {"event": "100 % of disk=/data"}),
        ("took after_s=%.1f of %r", (1.25, "x"), {"event": "took of 'x'", "after_s": "1.2"}),
    ],
)
def test_fields_of_json_lines_are_those_of_the_template(stream, template, arguments, expected):
    configure_logging("INFO", "json", stream)
    logging.getLogger("broker.x").info(template, *arguments)
    line = json.loads(stream.getvalue())
    del line["time"], line["logger"]
    assert line.pop("level") == "INFO"
    assert line == expected


def test_audit_lines_are_objects(stream):
    configure_logging("INFO", "json", stream)
    logging.getLogger("barnabas.audit").info("%s", json.dumps({"time": "t", "event": "login"}))
    line = json.loads(stream.getvalue())
    assert line["event"] == "audit"
    assert line["audit"] == {"time": "t", "event": "login"}


def test_configuring_twice_does_not_write_twice(stream):
    for _ in range(2):
        configure_logging("INFO", "text", stream)
    logging.getLogger("broker.x").info("once")
    assert stream.getvalue().count("once") == 1


def log_bug(logger):
    try:
        int("bad")
    except ValueError:
        logger.exception("a bug")


def test_errors_of_one_place_are_limited_and_counted(monkeypatch):
    """Any number of them, as a client that repeats what meets a bug; others are written."""
    now = [0.0]
    stream = io.StringIO()
    handler = LimitedHandler(stream, ErrorLimit(lambda: now[0]))
    logger = logging.getLogger("broker.z")
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [handler])
    for _ in range(1000):
        log_bug(logger)
        logger.warning("a client")
    logger.error("another place")
    assert stream.getvalue().count("Traceback") == ERRORS_PER_SECOND
    assert stream.getvalue().count("a client") == 1000
    assert "another place" in stream.getvalue()
    stream.truncate(0)
    now[0] = 1.5
    log_bug(logger)
    log_bug(logger)
    assert stream.getvalue().count("Traceback") == 2
    assert f"{1000 - ERRORS_PER_SECOND} more errors like the next one" in stream.getvalue()
    assert stream.getvalue().count("left out") == 1


def test_configured_logging_limits_errors(stream):
    configure_logging("INFO", "json", stream)
    for _ in range(100):
        log_bug(logging.getLogger("broker.x"))
    lines = [json.loads(each) for each in stream.getvalue().splitlines()]
    # The second may have ended meanwhile, which begins another count.
    assert ERRORS_PER_SECOND <= len(lines) < 100
