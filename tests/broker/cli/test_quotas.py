import pytest

from barnabas.testing import Broker
from tests.broker.cli.inline import Shell

HEADINGS = "USER CLIENT ID ADDRESS KEY VALUE"


@pytest.fixture
def shell(monkeypatch):
    with Broker() as broker:
        yield Shell(monkeypatch, broker.bootstrap_servers)


def listed(shell, *words):
    return shell("quotas", "list", *words).lines[1:]


def test_set_list_remove(shell):
    words = ("producer_byte_rate=1048576", "request_percentage=12.5", "--user", "alice")
    limits = ["alice - - producer_byte_rate 1048576", "alice - - request_percentage 12.5"]
    assert shell("quotas", "set", *words).lines == [HEADINGS, *limits]
    assert listed(shell) == limits
    assert shell("quotas", "remove", "request_percentage", "--user", "alice").lines == [
        HEADINGS,
        limits[1],
    ]
    assert listed(shell) == limits[:1]
    again = shell("quotas", "remove", "request_percentage", "--user", "alice")
    assert again.error == "request_percentage: this quota is not set"


@pytest.fixture
def filled(shell):
    for words in (
        ("consumer_byte_rate=1", "--user", "alice"),
        ("consumer_byte_rate=2", "--user", "alice", "--client-id", "app"),
        ("consumer_byte_rate=3", "--user", "alice", "--default", "client-id"),
        ("consumer_byte_rate=4", "controller_mutation_rate=0.5", "--default", "user"),
        ("consumer_byte_rate=5", "--client-id", "app"),
        ("connection_creation_rate=6", "--ip", "10.1.1.1"),
        ("connection_creation_rate=7", "--default", "ip"),
    ):
        assert shell("quotas", "set", *words).exit_code == 0
    return shell


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), [2, 3, 1, 4, 0.5, 5, 6, 7]),
        (("--user", "alice"), [2, 3, 1]),
        (("--user", "alice", "--client-id", "app"), [2]),
        (("--user", "alice", "--default", "client-id"), [3]),
        (("--client-id", "app"), [2, 5]),
        (("--default", "user"), [4, 0.5]),
        (("--ip", "10.1.1.1"), [6]),
        (("--default", "ip"), [7]),
        (("--user", "bob"), []),
    ],
)
def test_list_options_select_quotas(filled, words, expected):
    assert [float(line.split()[-1]) for line in listed(filled, *words)] == expected


def test_defaults(filled):
    assert listed(filled, "--default", "client-id") == ["alice <default> - consumer_byte_rate 3"]
    assert filled("quotas", "list", "--default", "user", "--format", "json").json == [
        {
            "entity": {"user": None},
            "limits": {"consumer_byte_rate": 4.0, "controller_mutation_rate": 0.5},
        }
    ]


def test_all_limits_of_exactly_one_are_removed(filled):
    assert filled("quotas", "remove", "--user", "alice", "--dry-run").lines[1:] == [
        "alice - - consumer_byte_rate 1"
    ]
    assert len(listed(filled, "--user", "alice")) == 3
    removed = filled("quotas", "remove", "--default", "user", "--format", "json").json
    assert removed == [
        {
            "entity": {"user": None},
            "limits": {"consumer_byte_rate": 4.0, "controller_mutation_rate": 0.5},
        }
    ]
    assert filled("quotas", "remove", "--user", "alice").exit_code == 0
    assert [line.split()[-1] for line in listed(filled, "--user", "alice")] == ["2", "3"]
    assert (
        filled("quotas", "remove", "--user", "alice").error
        == "no quota is set for the given entity"
    )


def test_a_dry_run_sets_nothing(shell):
    words = ("producer_byte_rate=1", "--user", "alice", "--dry-run")
    assert shell("quotas", "set", *words).lines == [HEADINGS, "alice - - producer_byte_rate 1"]
    assert listed(shell) == []
    refused = shell("quotas", "set", "connection_creation_rate=1", *words[1:])
    assert refused.error == (
        "user alice: Invalid configuration key connection_creation_rate (INVALID_REQUEST)"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("set", "producer_byte_rate=1"), "name the entity with --user, --client-id, --ip or"),
        (("set", "--user", "a"), "required: KEY=VALUE"),
        (("set", "speed=1", "--user", "a"), "speed is not one of producer_byte_rate, consumer"),
        (("set", "producer_byte_rate", "--user", "a"), "producer_byte_rate is not KEY=NUMBER"),
        (("set", "producer_byte_rate=x", "--user", "a"), "=x is not KEY=NUMBER"),
        (("remove",), "name the entity"),
        (("list", "--user", "a", "--default", "user"), "--default user and --user exclude"),
        (("list", "--user", "a", "--ip", "::1"), "addresses go neither with users nor with"),
    ],
)
def test_invalid_options_are_rejected(shell, words, expected):
    ended = shell("quotas", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert expected in ended.stderr


def test_invalid_quotas_fail_with_the_error_of_the_broker(shell):
    assert shell("quotas", "set", "producer_byte_rate=0", "--user", "a").error == (
        "user a: Quota producer_byte_rate must be greater than 0 (INVALID_REQUEST)"
    )
    assert (
        "nowhere is not a valid IP address"
        in shell("quotas", "set", "connection_creation_rate=1", "--ip", "nowhere").error
    )
