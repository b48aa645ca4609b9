"""kafka-acls, Apache Kafka's own tool, says the same of a Barnabas and of an Apache Kafka 4.3.0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.counterparts.kafka_tools import ACLS, ToolResult, run_tool, with_list_of
from tests.counterparts.secured import (
    ADMIN,
    PASSWORD,
    Secured,
    SecuredBarnabas,
    SecuredKafka,
    client_settings,
)

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


def run(broker: Secured, directory: Path, label: str) -> ToolResult:
    """Run one command of the script against one broker."""
    user = "bob" if label.endswith(AS_SOMEBODY) else ADMIN
    config = ("--command-config", str(directory / user))
    return run_tool(ACLS, "--bootstrap-server", broker.sasl_servers, *config, *SCRIPT[label])


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, ToolResult]]]:
    """What every command said of the two."""
    directory = tmp_path_factory.mktemp("acls")
    users = {ADMIN: PASSWORD, "bob": PASSWORD}
    for user in users:
        lines = [f"{key}={value}\n" for key, value in client_settings(user).items()]
        (directory / user).write_text("".join(lines))
    with (
        SecuredBarnabas(users) as ours,
        SecuredKafka(users) as theirs,
        ThreadPoolExecutor(2) as pool,
    ):
        found: list[dict[str, ToolResult]] = [{}, {}]
        for label, arguments in SCRIPT.items():
            asked = partial(run, directory=directory, label=label)
            results = [*pool.map(asked, (ours, theirs))]
            if "--list" not in arguments and said(results[0]) != said(results[1]):
                output = with_list_of(asked(theirs).output, results[1].output)
                results[1] = results[1]._replace(output=output)
            for of_one, result in zip(found, results, strict=True):
                of_one[label] = result
        yield found


def said(result: ToolResult) -> tuple[int, list[str]]:
    """The exit code and the lines, in whatever order; denials without the words of each broker."""
    text = _STACK.sub("", _WORDS_OF_OURS.sub(r"\1", result.output))
    return result.exit_code, sorted(filter(None, map(str.strip, text.splitlines())))


@pytest.mark.parametrize("label", SCRIPT)
def test_the_tool_says_the_same(outputs, label):
    ours, theirs = (said(each[label]) for each in outputs)
    assert ours == theirs


def test_the_tool_has_found_and_removed_what_it_made(outputs):
    listed = {label: result.output for label, result in outputs[0].items() if "list" in label}
    assert "operation=TWO_PHASE_COMMIT" in listed["list all"]
    assert "host=10.1.1.1, operation=READ, permissionType=DENY" in listed["list all"]
    assert "User:bob" not in listed["list the others"]
    assert "operation=WRITE" in listed["list the others"]
    assert "patternType=PREFIXED" not in listed["list what is left"]
    assert "ClusterAuthorizationException" in listed["list as somebody"]
    assert "Request(processor" not in listed["list as somebody"]
