"""kafka-acls, Apache Kafka's own tool, says the same of a Barnabas and of an Apache Kafka 4.3.0."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.counterparts.kafka_tools import ACLS, ToolResult, run_tool
from tests.counterparts.secured import (
    ADMIN,
    PASSWORD,
    Secured,
    SecuredKafka,
    client_settings,
)
from tests.interop.recorded_kafka import SecuredBarnabas, plain

PREFIXED = ("--resource-pattern-type", "prefixed")

SCRIPT: dict[str, tuple[str, ...]] = {
    "list none": ("--list",),
    "let write": ("--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders"),
    "let write in transactions": (
        *("--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders"),
        *("--transactional-id", "t", "--idempotent"),
    ),
    "let read": (
        *("--add", "--allow-principal", "User:bob", "--consumer", "--topic", "orders"),
        *("--group", "g"),
    ),
    "let do all to a prefix": (
        *("--add", "--allow-principal", "User:alice", "--operation", "All", "--topic", "ord"),
        *PREFIXED,
    ),
    "let nobody read from somewhere": (
        *("--add", "--deny-principal", "User:mallory", "--deny-host", "10.1.1.1"),
        *("--operation", "Read", "--topic", "*", "--group", "*"),
    ),
    "let administrate": (
        *("--add", "--allow-principal", "User:ops", "--cluster"),
        *("--operation", "Alter", "--operation", "DescribeConfigs"),
    ),
    "let commit in two phases": (
        *("--add", "--allow-principal", "User:alice", "--transactional-id", "t"),
        *("--operation", "TwoPhaseCommit"),
    ),
    "list all": ("--list",),
    "list a topic's": ("--list", "--topic", "orders"),
    "list what applies to a topic": (
        *("--list", "--topic", "orders", "--resource-pattern-type", "match"),
    ),
    "list a user's": ("--list", "--principal", "User:alice"),
    "remove what lets read": (
        *("--remove", "--force", "--allow-principal", "User:bob", "--consumer"),
        *("--topic", "orders", "--group", "g"),
    ),
    "remove one of several": (
        *("--remove", "--force", "--allow-principal", "User:alice", "--topic", "orders"),
        *("--operation", "Create"),
    ),
    "list the others": ("--list",),
    "remove a prefix": ("--remove", "--force", "--topic", "ord", *PREFIXED),
    "list what is left": ("--list",),
    "list as somebody": ("--list",),
    "add as somebody": ("--add", "--allow-principal", "User:bob", "--topic", "t", "--producer"),
}
AS_SOMEBODY = "as somebody"

_WORDS_OF_OURS = re.compile(r"(ClusterAuthorizationException): .*")
_STACK = re.compile(r"^\s+at .*\n|^Caused by: .*\n|^\[.*\n", re.MULTILINE)


USERS = {ADMIN: PASSWORD, "bob": PASSWORD}
Said = tuple[int, list[str]]
"""An exit code, and lines."""


def run(broker: Secured) -> dict[str, ToolResult]:
    """Run the whole script against one broker."""
    for user in USERS:
        lines = [f"{key}={value}\n" for key, value in client_settings(user).items()]
        (broker.directory / user).write_text("".join(lines))
    found = {}
    for label, arguments in SCRIPT.items():
        user = "bob" if label.endswith(AS_SOMEBODY) else ADMIN
        config = ("--command-config", str(broker.directory / user))
        where = ("--bootstrap-server", broker.sasl_servers)
        found[label] = run_tool(ACLS, *where, *config, *arguments)
    return found


def said(results: dict[str, ToolResult]) -> dict[str, Said]:
    """Return exit codes and sorted lines; denials without the words of each broker."""
    return {label: comparable(result) for label, result in results.items()}


def comparable(result: ToolResult) -> Said:
    text = _STACK.sub("", _WORDS_OF_OURS.sub(r"\1", result.output))
    return result.exit_code, sorted(filter(None, map(str.strip, text.splitlines())))


@pytest.fixture(scope="module")
def live_kafka() -> Iterator[Secured]:
    """Start Apache Kafka with access control."""
    with SecuredKafka(USERS) as running:
        yield running


@pytest.fixture(scope="module")
def ours() -> dict[str, ToolResult]:
    """Return the output of every command about Barnabas."""
    with SecuredBarnabas(USERS) as running:
        return run(running)


@pytest.mark.parametrize("label", SCRIPT)
def test_the_tool_says_the_same(ours, kafka, label):
    theirs = kafka.observe("script", lambda broker: said(run(broker)))
    assert plain(comparable(ours[label])) == theirs[label]


def test_the_tool_has_found_and_removed_what_it_made(ours):
    listed = {label: result.output for label, result in ours.items() if "list" in label}
    assert "operation=TWO_PHASE_COMMIT" in listed["list all"]
    assert "host=10.1.1.1, operation=READ, permissionType=DENY" in listed["list all"]
    assert "User:bob" not in listed["list the others"]
    assert "operation=WRITE" in listed["list the others"]
    assert "patternType=PREFIXED" not in listed["list what is left"]
    assert "ClusterAuthorizationException" in listed["list as somebody"]
    assert "Request(processor" not in listed["list as somebody"]
