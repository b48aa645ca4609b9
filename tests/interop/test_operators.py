"""``barnabas acls``, ``users`` and ``quotas`` beside Apache Kafka's own tools, on both brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import confluent_kafka
import pytest

from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.testing import Broker
from tests.broker.cli.inline import Ended
from tests.counterparts.kafka_tools import ACLS, CONFIGS, run_tool
from tests.interop.command_line import CommandLine
from tests.interop.secured import SecuredBarnabas, SecuredBroker, SecuredKafka
from tests.products import BARNABAS_AND_KAFKA
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
BROKERS: dict[str, type[SecuredBroker]] = {"barnabas": SecuredBarnabas, "kafka": SecuredKafka}
TIMEOUT_S = 60
SETTINGS = {
    "authorizer_class_name": STANDARD_AUTHORIZER,
    # The tools use the listener without a login.
    "super_users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module", params=BARNABAS_AND_KAFKA)
def broker(request, tmp_path_factory) -> Iterator[SecuredBroker]:
    """Return Barnabas or Apache Kafka, with access control and users of SCRAM."""
    with BROKERS[request.param](tmp_path_factory.mktemp(request.param), **SETTINGS) as running:
        yield running


@pytest.fixture
def barnabas(broker) -> CommandLine:
    return CommandLine(broker)


def tool(broker: SecuredBroker, main_class: str, *arguments: str) -> str:
    result = run_tool(main_class, "--bootstrap-server", broker.bootstrap_servers, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


# ------------------------------------------------------------------------------------------- ACLs

_RESOURCE = re.compile(
    r"Current ACLs for resource `ResourcePattern\(resourceType=(\w+), name=(\S+), "
    r"patternType=(\w+)\)`:"
)
_ENTRY = re.compile(r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)")


def rules_of_the_tool(broker: SecuredBroker) -> set[tuple[str, ...]]:
    """Return the ACLs that kafka-acls lists."""
    found, resource = set(), ()
    for line in tool(broker, ACLS, "--list").splitlines():
        if heading := _RESOURCE.search(line):
            resource = heading.groups()
        elif entry := _ENTRY.search(line):
            found.add((*resource, *entry.groups()))
    return found


def rules_of_ours(barnabas: CommandLine) -> set[tuple[str, ...]]:
    return {
        (
            each["resource"].upper().replace("-", "_"),
            each["name"],
            each["pattern"].upper(),
            *(each[key] for key in ("principal", "host", "operation", "permission")),
        )
        for each in barnabas("acls", "list", "--format", "json").json
    }


def test_rules(broker, barnabas):
    user = ("--user", "alice")
    for words in (
        ("--operation", "READ,write", "--topic", "orders", "--topic", "*"),
        ("--operation", "twophasecommit", "--transactional-id", "t-", "--prefixed"),
        ("--operation", "READ", "--group", "g", "--deny", "--host", "10.1.1.1"),
        ("--operation", "ALTER", "--cluster"),
    ):
        assert barnabas("acls", "add", *user, *words).exit_code == 0
    of_bob = ("--allow-principal", "User:bob", "--topic", "orders")
    tool(broker, ACLS, "--add", *of_bob, "--consumer", "--group", "g")
    listed = rules_of_the_tool(broker)
    assert len(listed) == 7 + 3
    assert ("GROUP", "g", "LITERAL", "User:alice", "10.1.1.1", "READ", "DENY") in listed
    assert rules_of_ours(barnabas) == listed
    removed = barnabas("acls", "remove", "--user", "bob", "-y", "--format", "json").json
    assert len(removed) == 3
    assert len(rules_of_the_tool(broker)) == 7
    tool(broker, ACLS, "--remove", "--force", "--topic", "orders")
    wait_until(lambda: len(rules_of_ours(barnabas)) == 5, "the removal")
    assert rules_of_ours(barnabas) == rules_of_the_tool(broker)
    assert barnabas("acls", "remove", *user, "-y").lines == ["5 rules removed"]
    wait_until(lambda: not rules_of_ours(barnabas), "the removal")
    assert not rules_of_the_tool(broker)


# ------------------------------------------------------------------------------------------ users


def lets_in(broker: SecuredBroker, user: str, password: str, mechanism: str) -> bool:
    """Whether librdkafka can log in; what it may do then is another matter."""
    heard: list[int] = []
    denied = confluent_kafka.KafkaError._AUTHENTICATION
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.servers(),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "group.id": "g",
            "error_cb": lambda error: heard.append(error.code()),
        }
    )
    is_served = False

    def is_decided() -> bool:
        nonlocal is_served
        try:
            is_served = bool(consumer.list_topics(timeout=1).brokers)
        except confluent_kafka.KafkaException:
            consumer.poll(0)  # It hears here why not, if that is known yet.
        return is_served or denied in heard

    try:
        wait_until(is_decided, "it is let in or not")
    finally:
        consumer.close()
    return is_served


def test_users(broker, barnabas):
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    created = barnabas("users", "create", "carol", *both, stdin=b"it's, a=secret\n")
    assert created.lines == ["carol created"]
    wait_until(lambda: "carol" in barnabas("users", "list").stdout, "the user")
    described = tool(broker, CONFIGS, "--describe", "--entity-type", "users")
    assert "SCRAM credential configs for user-principal 'carol' are" in described
    assert "SCRAM-SHA-256=iterations=4096" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    for mechanism in both[1::2]:
        wait_until(lambda m=mechanism: lets_in(broker, "carol", "it's, a=secret", m), "the login")
        assert not lets_in(broker, "carol", "other", mechanism)
    tool(
        broker,
        CONFIGS,
        *("--alter", "--entity-type", "users", "--entity-name", "dave"),
        *("--add-config", "SCRAM-SHA-256=[iterations=8192,password=pw]"),
    )
    expected = [
        *("USER MECHANISM ITERATIONS", "carol SCRAM-SHA-256 4096", "carol SCRAM-SHA-512 4096"),
        "dave SCRAM-SHA-256 8192",
    ]
    wait_until(lambda: len(barnabas("users", "list").lines) == len(expected), "the user")
    assert barnabas("users", "list").lines == expected
    altered = barnabas("users", "alter", "dave", "--mechanism", "SCRAM-SHA-256", stdin=b"new\n")
    assert altered.lines == ["dave altered"]
    wait_until(lambda: lets_in(broker, "dave", "new", "SCRAM-SHA-256"), "the new password")
    assert not lets_in(broker, "dave", "pw", "SCRAM-SHA-256")
    assert barnabas("users", "delete", "carol", "dave").lines == ["carol deleted", "dave deleted"]
    wait_until(lambda: len(barnabas("users", "list").lines) == 1, "the deletion")
    assert not tool(broker, CONFIGS, "--describe", "--entity-type", "users").strip()


# ----------------------------------------------------------------------------------------- quotas


def limits_of(ran: Ended) -> list[tuple[Mapping[str, Any], Mapping[str, float]]]:
    return [(each["entity"], each["limits"]) for each in ran.json]


def test_quotas(broker, barnabas):
    assert barnabas("quotas", "set", "producer_byte_rate=1048576", "--user", "alice").exit_code == 0
    words = ("request_percentage=12.5", "--default", "user", "--client-id", "app")
    assert barnabas("quotas", "set", *words).exit_code == 0
    words = ("connection_creation_rate=7", "--ip", "10.1.1.1")
    assert barnabas("quotas", "set", *words).exit_code == 0
    tool(
        broker,
        CONFIGS,
        *("--alter", "--entity-type", "clients", "--entity-default"),
        *("--add-config", "consumer_byte_rate=1024,controller_mutation_rate=0.5"),
    )
    expected = [
        ({"user": "alice"}, {"producer_byte_rate": 1048576}),
        ({"user": None, "client-id": "app"}, {"request_percentage": 12.5}),
        ({"client-id": None}, {"consumer_byte_rate": 1024, "controller_mutation_rate": 0.5}),
        ({"ip": "10.1.1.1"}, {"connection_creation_rate": 7}),
    ]
    listing = ("quotas", "list", "--format", "json")
    wait_until(lambda: len(limits_of(barnabas(*listing))) == len(expected), "the quotas")
    assert limits_of(barnabas(*listing)) == expected
    seen = {
        kind: tool(broker, CONFIGS, "--describe", "--entity-type", kind)
        for kind in ("users", "clients", "ips")
    }
    assert "'alice' are producer_byte_rate=1048576.0" in seen["users"]
    assert "the default client-id are consumer_byte_rate=1024.0, controller_mut" in seen["clients"]
    assert "'10.1.1.1' are connection_creation_rate=7.0" in seen["ips"]
    pair = ("--entity-type", "users", "--entity-default", "--entity-type", "clients")
    both = tool(broker, CONFIGS, "--describe", *pair, "--entity-name", "app")
    assert "request_percentage=12.5" in both
    for words in (
        ("--user", "alice"),
        ("--default", "user", "--client-id", "app"),
        ("--default", "client-id"),
        ("--ip", "10.1.1.1"),
    ):
        assert barnabas("quotas", "remove", *words).exit_code == 0
    wait_until(lambda: limits_of(barnabas(*listing)) == [], "the removal")
    assert not tool(broker, CONFIGS, "--describe", "--entity-type", "users").strip()


# ------------------------------------------------------------------------- the same on both sides

REFUSED = {
    "nobody": ("RESOURCE_NOT_FOUND", "users", "delete", "nobody"),
    "not a number of bytes": (
        *("INVALID_REQUEST", "quotas", "set"),
        *("producer_byte_rate=0.5", "--user", "alice"),
    ),
    "not for users": (
        *("INVALID_REQUEST", "quotas", "set"),
        *("connection_creation_rate=1", "--user", "alice"),
    ),
    "not a limit": (
        *("INVALID_REQUEST", "quotas", "set"),
        *("request_percentage=-1", "--client-id", "app"),
    ),
    "not an address": (
        *("INVALID_REQUEST", "quotas", "set"),
        *("connection_creation_rate=1", "--ip", "no.where.invalid"),
    ),
}


@pytest.mark.parametrize("label", REFUSED)
def test_refused_change_exits_1_with_the_name_of_the_error(barnabas, label):
    error, *words = REFUSED[label]
    ended = barnabas(*words)
    assert ended.exit_code == 1
    assert ended.stderr.endswith(f"({error})\n")


def test_without_access_control_acls_are_refused(tmp_path):
    with Broker(storage=tmp_path) as open_broker:
        ended = CommandLine(open_broker)("acls", "list")
    assert (ended.exit_code, "(SECURITY_DISABLED)" in ended.stderr) == (1, True)
