"""Content and limits of the audit log, which no request waits for."""

import io
import json
import logging

import pytest

from barnabas.broker.runtime.audit_file import AuditOutput
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.runtime.loggers import logger_names, problem_of, set_levels
from barnabas.broker.runtime.logs import configure_logging
from barnabas.broker.security import audit as module
from barnabas.broker.security.acls.operations import Operation, ResourceType
from barnabas.broker.security.audit import LINES_PER_SECOND, AuditLog
from barnabas.testing import Broker
from tests.broker.security.test_listeners import ANY_ACL, DESCRIBE_ACLS, SECURE, Wire

TOPIC = ResourceType.TOPIC


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def lines():
    return []


@pytest.fixture
def audit(clock, lines):
    return AuditLog(clock, lambda line: lines.append(json.loads(line)))


def decide(audit, operation=Operation.WRITE, *, allowed=False, name="orders", who="User:bob"):
    audit.decided(who, "10.0.0.1", operation, TOPIC, name, allowed=allowed, rule="a rule")


def test_a_denial_says_who_from_where_and_what(audit, lines, clock):
    decide(audit)
    (line,) = lines
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "denied",
        "principal": "User:bob",
        "host": "10.0.0.1",
        "operation": "WRITE",
        "resource": "Topic:LITERAL:orders",
        "rule": "a rule",
    }


def test_allowed_change_is_an_audit_event(audit, lines, clock):
    for operation in (Operation.READ, Operation.WRITE, Operation.DESCRIBE):
        decide(audit, operation, allowed=True)
    assert lines == []
    decide(audit, Operation.DELETE, allowed=True)
    assert [each["event"] for each in lines] == ["allowed"]
    all_of_it = AuditLog(clock, lambda line: lines.append(json.loads(line)), allowed_too=True)
    decide(all_of_it, Operation.READ, allowed=True)
    assert len(lines) == 2


def test_one_who_asks_without_end_does_not_hide_the_others(audit, lines, clock):
    for number in range(LINES_PER_SECOND + 7):
        decide(audit, name=f"t{number}")
    decide(audit, who="User:carol")
    assert len(lines) == LINES_PER_SECOND + 1
    clock.advance(seconds=1)
    decide(audit)
    assert {key: lines[-2][key] for key in ("event", "about", "count")} == {
        "event": "suppressed",
        "about": "User:bob",
        "count": 7,
    }
    assert lines[-1]["event"] == "denied"


def test_audit_counts_limited_principals(audit, lines, monkeypatch):
    monkeypatch.setattr(module, "FOLLOWED_MAX", 2)
    for number in range(100):
        decide(audit, who=f"User:u{number}")
    assert len(audit._lines) <= 3
    assert len(lines) == 2 + LINES_PER_SECOND


def test_names_of_clients_cannot_forge_lines(audit, lines, clock):
    audit.login_failed('x\n{"event":"allowed"}' + "y" * 1000, "h", "L", "PLAIN", "bad\u2028")
    (line,) = lines
    assert line["event"] == "login failed"
    assert len(line["user"]) < 300
    raw = []
    AuditLog(clock, raw.append).login_failed("a\nb\u2028", "h", "L", "PLAIN", "r")
    assert raw[0].isascii()
    assert raw[0].isprintable()


# -------------------------------------------------------------------------------------- the output


def opened(path):
    output = AuditOutput()
    output.open(path)
    return output


@pytest.fixture
def _levels():
    before = logging.root.level
    yield
    logging.root.setLevel(before)


@pytest.mark.parametrize("level", ["INFO", "WARN", "FATAL"])
@pytest.mark.usefixtures("_levels")
def test_without_a_file_they_are_among_the_other_lines_at_every_level(caplog, level):
    output = opened("")
    set_levels([("root", level)])
    output.write("one")
    output.close()
    assert [each.message for each in caplog.records if each.name == "barnabas.audit"] == ["one"]


def test_no_client_can_switch_them_off():
    opened("").write("one")
    assert not [name for name in logger_names() if name.startswith("barnabas.audit")]
    assert problem_of("barnabas.audit", "FATAL") == "Logger barnabas.audit does not exist!"


@pytest.mark.usefixtures("_levels")
def test_a_broker_that_logs_warnings_alone_logs_them(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(logging.root, "handlers", [])
    configure_logging("WARNING", "text", stream)
    opened("").write("one")
    logging.getLogger("barnabas").info("two")
    assert stream.getvalue().endswith("INFO    one\n")


def test_a_broker_writes_logins_and_denials(tmp_path):
    path = tmp_path / "audit.log"
    with Broker(config=SECURE | {"barnabas.audit.log": str(path)}) as broker:
        with Wire(broker) as wire:
            wire.log_in(b"\0bob\0b")
            wire.ask(DESCRIBE_ACLS, 3, ANY_ACL)
        with Wire(broker) as wire:
            wire.log_in(b"\0alice\0wrong")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["event"] for each in lines] == ["logged in", "denied", "login failed"]
    assert lines[0]["principal"] == lines[1]["principal"] == "User:bob"
    assert lines[0]["listener"] == lines[2]["listener"] == "SASL_PLAINTEXT"
    assert lines[1]["resource"] == "Cluster:LITERAL:kafka-cluster"


def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path):
    config = {"barnabas.audit.log": str(tmp_path / "no" / "log")}
    with pytest.raises(Exception, match=r"barnabas\.audit\.log: No such file or directory"):
        Broker(config=config).__enter__()
