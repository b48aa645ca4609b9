import io
import json
import logging
import re

import pytest

from barnabas.broker.runtime.logs import configure_logging


@pytest.fixture
def stream():
    """Where log lines go, and the logging of pytest put back afterwards."""
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
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", first.pop("time"))
    assert first == {"level": "WARNING", "logger": "broker.x", "event": 'odd client name=é"\n'}
    assert second["exception"].endswith("base 10: 'bad'")


def test_configuring_twice_does_not_write_twice(stream):
    for _ in range(2):
        configure_logging("INFO", "text", stream)
    logging.getLogger("broker.x").info("once")
    assert stream.getvalue().count("once") == 1
