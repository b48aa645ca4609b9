import pytest

from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell

HEADINGS = "RESOURCE NAME PATTERN PRINCIPAL HOST PERMISSION OPERATIONS"


@pytest.fixture
def shell(monkeypatch):
    config = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Broker(config=config) as broker:
        yield Shell(monkeypatch, broker.bootstrap_servers)


def add(shell, *words):
    return shell("acls", "add", *words).lines[1:]


def listed(shell, *words):
    return shell("acls", "list", *words).lines[1:]


def test_add_and_list(shell):
    added = shell(
        *("acls", "add", "--user", "alice", "--operation", "write,READ", "--operation", "Describe"),
        *("--topic", "orders", "--topic", "invoices", "--group", "g"),
    )
    assert added.exit_code == 2
    assert "WRITE is no operation on a group: ALL, READ" in added.stderr
    assert listed(shell) == []
    rule = ("--user", "alice", "--operation", "write,READ", "--topic", "orders", "--topic", "a")
    assert shell("acls", "add", *rule).lines == [
        HEADINGS,
        "topic a literal User:alice * ALLOW READ,WRITE",
        "topic orders literal User:alice * ALLOW READ,WRITE",
    ]
    assert listed(shell) == add(shell, *rule)


def test_every_part_of_a_rule(shell):
    assert add(
        shell,
        *("--user", "CN=bob,O=Barn", "--operation", "twophasecommit", "--transactional-id", "t-"),
        *("--prefixed", "--host", "10.0.0.0/8", "--deny"),
    ) == ["transactional-id t- prefixed User:CN=bob,O=Barn 10.0.0.0/8 DENY TWO_PHASE_COMMIT"]
    assert add(shell, "--user", "User:ops", "--operation", "alter-configs", "--cluster") == [
        "cluster kafka-cluster literal User:ops * ALLOW ALTER_CONFIGS"
    ]
    assert shell("acls", "list", "--cluster", "--format", "json").json == [
        {
            "resource": "cluster",
            "name": "kafka-cluster",
            "pattern": "literal",
            "principal": "User:ops",
            "host": "*",
            "operation": "ALTER_CONFIGS",
            "permission": "ALLOW",
        }
    ]


@pytest.fixture
def filled(shell):
    add(shell, "--user", "alice", "--operation", "READ,WRITE", "--topic", "orders")
    add(shell, "--user", "bob", "--operation", "READ", "--topic", "ord", "--prefixed")
    add(shell, "--user", "*", "--operation", "DESCRIBE", "--topic", "*", "--host", "10.1.1.1")
    add(shell, "--user", "bob", "--operation", "READ", "--topic", "orders", "--deny")
    add(shell, "--user", "bob", "--operation", "READ", "--group", "orders")
    return shell


ALICE = "topic orders literal User:alice * ALLOW READ,WRITE"
BOB = "topic ord prefixed User:bob * ALLOW READ"
EVERYBODY = "topic * literal User:* 10.1.1.1 ALLOW DESCRIBE"
NOT_BOB = "topic orders literal User:bob * DENY READ"
GROUP = "group orders literal User:bob * ALLOW READ"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), [EVERYBODY, BOB, ALICE, NOT_BOB, GROUP]),
        (("--topic", "orders"), [ALICE, NOT_BOB]),
        (("--topic", "orders", "--group", "orders"), [ALICE, NOT_BOB, GROUP]),
        (("--topic", "orders", "--match"), [EVERYBODY, BOB, ALICE, NOT_BOB]),
        (("--topic", "ord"), []),
        (("--topic", "ord", "--prefixed"), [BOB]),
        (("--prefixed",), [BOB]),
        (("--user", "bob"), [BOB, NOT_BOB, GROUP]),
        (("--user", "bob", "--permission", "deny"), [NOT_BOB]),
        (("--operation", "write"), [ALICE.replace("READ,", "")]),
        (("--operation", "write,describe"), [EVERYBODY, ALICE.replace("READ,", "")]),
        (("--host", "10.1.1.1"), [EVERYBODY]),
        (("--topic", "*"), [EVERYBODY]),
    ],
)
def test_list_options_select_acls(filled, words, expected):
    assert listed(filled, *words) == expected


def test_remove_takes_what_add_took(filled):
    rule = ("--user", "alice", "--operation", "READ,WRITE", "--topic", "orders")
    assert filled("acls", "remove", *rule, "-y").lines == ["2 rules removed"]
    assert listed(filled) == [EVERYBODY, BOB, NOT_BOB, GROUP]
    again = filled("acls", "remove", *rule, "-y")
    assert again.error == "no ACL matches the given options"


def test_remove_shows_and_asks(filled):
    words = ("acls", "remove", "--user", "bob", "--topic", "orders")
    assert filled(*words, "--dry-run").lines == [HEADINGS, NOT_BOB]
    refused = filled(*words, stdin=b"n\n", terminal=True)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Remove 1 rule? [y/N] ")
    assert NOT_BOB in " ".join(refused.stdout.split())
    assert len(listed(filled, "--user", "bob")) == 3
    done = filled(*words, stdin=b"yes\n", terminal=True)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1 rule removed")
    assert len(listed(filled, "--user", "bob")) == 2


def test_more_rules_than_one_request_removes(shell):
    topics = [word for number in range(130) for word in ("--topic", f"t{number:03}")]
    assert len(add(shell, "--user", "alice", "--operation", "ALL", *topics)) == 130
    assert shell("acls", "remove", "--user", "alice", "-y").lines == ["130 rules removed"]
    assert listed(shell) == []


def test_remove_prints_deleted_acls_as_json(filled):
    removed = filled("acls", "remove", "--group", "orders", "-y", "--format", "json").json
    assert [(each["resource"], each["principal"]) for each in removed] == [("group", "User:bob")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("add", "--user", "a", "--operation", "READ"), "a rule needs --user, --operation, and"),
        (("add", "--user", "a", "--topic", "t"), "a rule needs --user, --operation, and"),
        (("add", "--operation", "READ", "--topic", "t"), "a rule needs --user, --operation, and"),
        (("add", "--operation", "READ,FLY"), "FLY is not one of ALL, READ, WRITE"),
        (
            ("add", "--user", "a", "--operation", "ALL", "--cluster", "--prefixed"),
            "--cluster and --prefixed exclude each other",
        ),
        (
            ("list", "--user", "User:"),
            "argument --user: the user name is empty; write NAME or User:NAME",
        ),
        (("list", "--match", "--prefixed"), "--match and --prefixed exclude each other"),
        (("remove", "-y"), "name the ACLs"),
        (("remove", "--user", "a"), "standard input is not a terminal: give --yes"),
    ],
)
def test_invalid_options_are_rejected(shell, words, expected):
    ended = shell("acls", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert expected in ended.stderr


def test_a_host_that_is_none(shell):
    rule = ("--user", "a", "--operation", "READ", "--topic", "t", "--host", "there")
    error = shell("acls", "add", *rule).error
    assert (
        error == "READ on topic t: The host 'there' is no address, network or * (INVALID_REQUEST)"
    )


def test_a_broker_without_access_control(own_shell):
    assert own_shell("acls", "list").error == (
        "ACLs: No Authorizer is configured on the broker (SECURITY_DISABLED)"
    )
