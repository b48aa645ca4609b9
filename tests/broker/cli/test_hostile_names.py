"""Names of clients have any characters; no command prints one that a terminal obeys."""

from __future__ import annotations

import ast
import json

import pytest

from barnabas.broker.cli.main import COMMANDS
from barnabas.broker.cli.output import json_text
from barnabas.broker.cli.printing import escaped
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.producers import Producer
from tests.counterparts.offsets_client import OffsetsClient
from tests.tidy.source import sources

EVIL = "a\x1b]0;owned\x07\x1b[2J\r\nadmin  Stable\u202egnp.\u2028\x9b1mb\u200b"
"""Escape sequences, a forged row, marks of direction, C1 controls, and a character of no width."""
SHOWN = escaped(EVIL)
SECURITY = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile") / "data"
    with Broker(storage=directory, config=SECURITY) as running:
        running.directory = directory
        running.create_topic("t")
        producer = Producer(running, EVIL, client_id=EVIL)
        producer.send("t", "v", key=EVIL, headers=[(EVIL, "h")])
        consumer = OffsetsClient(running, client_id=EVIL)
        consumer.find(EVIL, 0)
        consumer.join(EVIL)
        shell = Shell(pytest.MonkeyPatch(), running.bootstrap_servers)
        for words in (("acls", "add", *RULE), ("users", "create", EVIL), ("quotas", "set", *LIMIT)):
            ended = shell(*words, stdin=b"password\n")
            assert ended.exit_code == 0, ended
        yield running
        consumer.close()
        producer.abort()
        producer.close()


@pytest.fixture
def shell(broker, monkeypatch):
    return Shell(monkeypatch, broker.bootstrap_servers)


RULE = ("--user", EVIL, "--operation", "READ", "--group", EVIL)
LIMIT = ("request_percentage=1", "--client-id", EVIL)
NOTHING = ()
"""Prints no names but those that its caller gives."""
RUNS = {
    "serve": NOTHING,
    "init": NOTHING,
    "ready": NOTHING,
    "config": NOTHING,
    "produce": NOTHING,
    "bench": NOTHING,
    "backup": NOTHING,
    "restore": NOTHING,
    "completion": NOTHING,
    "check": NOTHING,  # Names of topics, which have letters and digits.
    "consume": NOTHING,  # Prints records as they are.
    "objects": NOTHING,  # Counts objects.
    "prove": NOTHING,
    "cluster": (("describe",), ("configs",)),
    "topics": (("list",), ("describe", "t")),
    "records": (("delete", "t", "--before", "0"),),
    "groups": (("list",), ("describe", EVIL)),
    "transactions": (("list",), ("describe", EVIL), ("list-blocking",)),
    "acls": (("add", *RULE), ("list",)),
    "users": (("alter", EVIL), ("list",)),
    "quotas": (("set", *LIMIT), ("list",)),
    "dump-log": ("of the files",),
}
"""The verbs of each command that print names, and what they have to be given."""


def is_calm(text):
    return all(line.isprintable() for line in text.split("\n"))


def runs():
    for command, verbs in RUNS.items():
        if command != "dump-log":
            yield from ((command, *verb) for verb in verbs)


def test_every_command_has_a_row():
    assert RUNS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("words", [*runs()], ids=lambda words: "-".join(words[:2]))
def test_command_prints_names_as_escapes(shell, words):
    ended = shell(*words, stdin=b"password\n")
    assert ended.exit_code == 0, ended
    assert is_calm(ended.stdout)
    assert is_calm(ended.stderr)
    if words[0] in {"groups", "transactions", "acls", "users", "quotas"}:
        assert SHOWN in ended.stdout


@pytest.mark.parametrize(
    "words",
    [run for run in runs() if run[1] in {"list", "describe"}],
    ids=lambda words: "-".join(words[:2]),
)
def test_json_has_the_exact_name_in_printable_characters(shell, words):
    ended = shell(*words, "--format", "json")
    assert ended.exit_code == 0, ended
    assert is_calm(ended.stdout)
    found = json.dumps(json.loads(ended.stdout))
    if words[0] in {"groups", "transactions", "acls", "users", "quotas"}:
        assert json.dumps(EVIL) in found


@pytest.mark.parametrize("more", [(), ("--format", "json")], ids=["text", "json"])
def test_dump_of_the_files_prints_names_as_escapes(shell, broker, more):
    sleep(1)  # The journal's thread writes the segments.
    ended = shell("dump-log", broker.directory, "-r", *more, server=False)
    assert is_calm(ended.stdout)
    assert is_calm(ended.stderr)
    assert ("admin  Stable" in ended.stdout) is True


def test_error_about_a_name_is_one_printable_line(shell):
    ended = shell("groups", "describe", f"{EVIL}absent")
    assert ended.exit_code == 1
    assert is_calm(ended.stderr)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [EVIL, "\ud800", "\U000e0041", "größe 日本 \\x1b", "e\u0301"])
def test_json_text_is_printable_and_exact(value):
    text = json_text({"name": value}, indent=2)
    assert is_calm(text)
    assert json.loads(text) == {"name": value}


def test_printable_names_are_printed_as_they_are():
    assert escaped("größe 日本 User:CN=a\\,b e\u0301") == "größe 日本 User:CN=a\\,b e\u0301"


MAY_PRINT = {
    "output.py": "rows of escaped cells, and JSON",
    "printing.py": "the helper",
    "config.py": "JSON of the local configuration, in ASCII",
    "dump_log.py": "JSON by json_text",
    "init.py": "a directory and a user whose names are checked",
}


def test_commands_print_by_the_helper_only():
    printing = {
        each.path.name
        for each in sources("broker/cli")
        for node in each.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert printing == MAY_PRINT.keys(), "use print_text of broker/cli/printing.py"
