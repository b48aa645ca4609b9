import getpass
import secrets

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.sasl.login_client import LoginClient, LoginRefused
from barnabas.protocol.sasl.scram import MECHANISMS, ScramClient
from barnabas.testing import Broker
from tests.broker.cli.inline import Shell

BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-512")
HEADINGS = "USER MECHANISM ITERATIONS"


@pytest.fixture
def broker():
    config = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(BOTH),
        "connection.failed.authentication.delay.ms": "0",
    }
    with Broker(config=config) as running:
        yield running


@pytest.fixture
def shell(broker, monkeypatch):
    return Shell(monkeypatch, broker.bootstrap_servers)


def lets_in(broker, user, password, mechanism="SCRAM-SHA-512"):
    exchange = ScramClient(MECHANISMS[mechanism], user, password, secrets.token_hex(8))
    with WireClient(broker.server.listeners[1].bound) as client:
        try:
            client.log_in(LoginClient(mechanism, exchange))
        except LoginRefused:
            return False
        return True


def test_a_users_life(broker, shell):
    assert shell("users", "create", "alice", stdin=b"secret\nsecond line\n").lines == [
        "alice created"
    ]
    assert shell("users", "list").lines == [HEADINGS, "alice SCRAM-SHA-512 4096"]
    assert lets_in(broker, "alice", "secret")
    assert not lets_in(broker, "alice", "secret", "SCRAM-SHA-256")
    assert not lets_in(broker, "alice", "other")
    altered = shell("users", "alter", "alice", "--iterations", 8192, stdin="ß 2\r\n".encode())
    assert altered.lines == ["alice altered"]
    assert shell("users", "list").lines == [HEADINGS, "alice SCRAM-SHA-512 8192"]
    assert lets_in(broker, "alice", "ß 2")
    assert not lets_in(broker, "alice", "secret")
    assert shell("users", "delete", "alice").lines == ["alice deleted"]
    assert not lets_in(broker, "alice", "ß 2")
    assert shell("users", "list").lines == [HEADINGS]


def test_both_mechanisms(broker, shell):
    words = [word for name in BOTH for word in ("--mechanism", name.lower())]
    created = shell("users", "create", "bob", *words, "--format", "json", stdin=b"pw\n").json
    assert created == [{"user": "bob", "changed": True, "mechanisms": list(BOTH)}]
    assert all(lets_in(broker, "bob", "pw", each) for each in BOTH)
    assert shell("users", "list", "bob", "--format", "json").json == [
        {
            "user": "bob",
            "credentials": [{"mechanism": each, "iterations": 4096} for each in BOTH],
        }
    ]
    assert shell("users", "delete", "bob", "--mechanism", BOTH[0]).lines == ["bob deleted"]
    assert shell("users", "list").lines == [HEADINGS, "bob SCRAM-SHA-512 4096"]
    assert shell("users", "create", "bob", *words, stdin=b"pw\n").error == (
        "bob: is there already, for SCRAM-SHA-512 (DUPLICATE_RESOURCE)"
    )
    added = shell("users", "create", "bob", *words, "--if-not-exists", stdin=b"other\n")
    assert added.lines == ["bob created"]
    assert lets_in(broker, "bob", "other", BOTH[0])
    assert lets_in(broker, "bob", "pw", BOTH[1])
    again = shell("users", "create", "bob", *words, "--if-not-exists", stdin=b"other\n")
    assert again.lines == ["bob was there already"]


def test_unknown_user_is_reported(shell):
    nobody = "eve: there is no such user (RESOURCE_NOT_FOUND)"
    assert shell("users", "list", "eve").error == nobody
    assert shell("users", "alter", "eve", stdin=b"pw\n").error == nobody
    assert shell("users", "delete", "eve").error == nobody
    assert shell("users", "delete", "eve", "--if-exists").lines == ["eve was not there"]


def test_known_users_are_listed_and_deleted_beside_unknown_ones(shell):
    shell("users", "create", "alice", stdin=b"pw\n")
    ended = shell("users", "list", "eve", "alice")
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (1, 2)
    assert shell("users", "delete", "alice", "--dry-run").lines == ["alice would be deleted"]
    ended = shell("users", "delete", "eve", "alice")
    assert (ended.exit_code, ended.stdout) == (1, "alice deleted\n")


def test_a_password_from_a_file(broker, shell, tmp_path):
    file = tmp_path / "password"
    file.write_bytes(b"from a file")
    assert shell("users", "create", "alice", "--password-file", file).exit_code == 0
    assert lets_in(broker, "alice", "from a file")


def test_a_password_from_a_prompt(broker, shell, monkeypatch):
    asked = []

    def answer(*answers):
        left = iter(answers)
        monkeypatch.setattr(getpass, "getpass", lambda text: asked.append(text) or next(left))

    answer("typed", "mistyped")
    ended = shell("users", "create", "alice", terminal=True)
    assert ended.error == "the two passwords differ; no change was made"
    answer("typed", "typed")
    assert shell("users", "create", "alice", terminal=True).exit_code == 0
    assert asked == ["Password of alice: ", "Once more: "] * 2
    assert lets_in(broker, "alice", "typed")


@pytest.mark.parametrize(
    ("stdin", "words", "expected"),
    [
        (b"", (), "no password is in standard input"),
        (b"\nsecret\n", (), "no password is in standard input"),
        (b"\xffsecret\n", (), "the password in standard input is not UTF-8"),
        (b"s" * 4097, (), "the password in standard input is longer than 4096 bytes"),
        (b"", ("--password-file", "/not/there"), "/not/there: No such file or directory"),
        (b"secret\n", ("--iterations", 4095), "4095 is not between 4096 and 16384"),
        (b"secret\n", ("--mechanism", "PLAIN"), "PLAIN is not one of SCRAM-SHA-256, SCRAM-SHA-512"),
    ],
)
def test_invalid_input_is_rejected(shell, stdin, words, expected):
    ended = shell("users", "create", "alice", *words, stdin=stdin)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert expected in ended.stderr
    assert "secret" not in ended.stderr


def test_a_session_ends_with_its_password(broker, shell):
    shell("users", "create", "alice", stdin=b"secret\n")
    exchange = ScramClient(MECHANISMS["SCRAM-SHA-512"], "alice", "secret", secrets.token_hex(8))
    with WireClient(broker.server.listeners[1].bound) as client:
        client.log_in(LoginClient("SCRAM-SHA-512", exchange))
        assert shell("users", "alter", "alice", stdin=b"new\n").exit_code == 0
        with pytest.raises(OSError, match="closed"):
            client.ask(METADATA, MetadataRequest([]), 9)
