"""The embedded broker with logins, certificates and ACLs: what it promises to others."""

from __future__ import annotations

import ssl
import time

import pytest

from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.security.tls.client import client_context
from barnabas.broker.testing.security import (
    PASSWORD_MECHANISMS,
    STYLES,
    authority,
    broker_certificate,
)
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.sasl.jaas import parse_jaas_value
from barnabas.testing import Broker, Security, allow, deny
from tests.broker.security.wire import Wire

USERS = ("alice", "bob")
READERS = [allow("alice", "READ", topic="orders"), allow("alice", "READ", group="g")]


class UserWire(Wire):
    """A connection made with what ``client_config`` says, before any login."""

    def __init__(self, broker, user=None):
        super().__init__(broker)
        settings = broker.client_config(user, "java")
        stores = {key: value for key, value in settings.items() if key.startswith("ssl.")}
        if stores:
            context = client_context(stores)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def described(wire, topic="orders"):
    """The error of Metadata for a topic."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)], False, False, False)
    answer = wire.ask(METADATA, 9, request)
    return None if answer is None else answer.topics[0].error_code


# ------------------------------------------------------------------------------------ who is let in


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_users_log_in(protocol, mechanism):
    security = Security(protocol=protocol, users={"alice": "p w"}, mechanisms=[mechanism])
    with Broker(security=security) as broker:
        broker.create_topic("orders")
        for password, code in (("p w", 0), ("wrong", 58)):
            with UserWire(broker, "alice") as wire:
                if mechanism == "PLAIN":
                    last = wire.log_in(f"\0alice\0{password}".encode())
                else:
                    _, last = wire.log_in_with_scram("alice", password, mechanism)
                assert last.error_code == code
                if not code:
                    assert described(wire) == 0
        with UserWire(broker, "alice") as wire:
            assert described(wire) is None


def test_users_are_those_of_their_certificates():
    security = Security(
        protocol="SSL", users=USERS, acls=[allow("alice", "DESCRIBE", topic="orders")]
    )
    with Broker(security=security) as broker:
        broker.create_topic("orders")
        for user, code in (("alice", 0), ("bob", ErrorCode.TOPIC_AUTHORIZATION_FAILED)):
            with UserWire(broker, user) as wire:
                assert described(wire) == code
        with pytest.raises(ssl.SSLError), UserWire(broker) as wire:
            wire.socket.recv(1)


def test_tls_listener_may_require_no_login():
    with Broker(security=Security(protocol="SSL")) as broker:
        broker.create_topic("orders")
        with UserWire(broker) as wire:
            assert described(wire) == 0


def test_records_are_readable_without_a_login():
    with Broker(security=Security(users=USERS, acls=[])) as broker:
        broker.create_topic("orders")
        assert broker.records("orders").result == []
        with pytest.raises(KafkaError):
            broker.records("no such topic")


async def test_in_a_loop_too():
    async with Broker(security=Security(users=USERS, acls=READERS)) as broker:
        await broker.create_topic("orders")
        assert await broker.records("orders") == []
        await broker.add_acls(allow("bob", "READ", topic="orders"))
        await broker.remove_acls(*READERS)
        assert [acl.principal for acl in broker.server.authorizer.acls] == ["User:bob"]


# -------------------------------------------------------------------------------------------- rules


@pytest.fixture
def controlled():
    security = Security(
        protocol="SASL_PLAINTEXT", users=USERS, super_users=["bob"], mechanisms=["PLAIN"]
    )
    with Broker(security=security) as broker:
        broker.create_topic("orders")
        yield broker


def test_rules_come_and_go(controlled):
    rule, denial = allow("*", "read", topic="ord", prefixed=True), deny("alice", "ALL", topic="*")
    with Wire(controlled) as alice, Wire(controlled) as bob:
        assert alice.log_in(b"\0alice\0alice-secret").error_code == 0
        assert bob.log_in(b"\0bob\0bob-secret").error_code == 0
        assert described(bob) == 0
        assert described(alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        controlled.add_acls(rule)
        assert described(alice) == 0
        controlled.add_acls(denial)
        assert described(alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        controlled.remove_acls(denial)
        assert described(alice) == 0
        controlled.remove_acls(rule)
        assert described(alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_removed_acls_stay_removed_after_a_restart(tmp_path):
    security = Security(users=USERS, acls=READERS)
    with Broker(security=security, storage=tmp_path) as broker:
        broker.remove_acls(READERS[0])
        broker.restart()
        (left,) = broker.server.authorizer.acls
        assert left == READERS[1].acls[0]
        broker.crash()
        broker.restart()
        assert len(broker.server.authorizer.acls) == 1


@pytest.mark.parametrize("arguments", [(), ("READ",), ("FLY",)])
def test_rules_that_say_nothing(arguments):
    with pytest.raises(ValueError):
        allow("alice", *arguments, **({"topic": "t"} if arguments == ("FLY",) else {}))


# ---------------------------------------------------------------------------- what clients hear


def test_every_style_has_its_own_words():
    with Broker(security=Security(users=USERS)) as broker:
        configs = {style: broker.client_config("alice", style) for style in STYLES}
        servers = broker.bootstrap_servers
        properties = parse_properties(broker.client_properties("alice"))
    for style in ("kafka-python", "aiokafka"):
        context = configs[style].pop("ssl_context")
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname
        assert configs[style] == {
            "bootstrap_servers": servers,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "alice-secret",
        }
    assert configs["librdkafka"] == configs["confluent"]
    assert configs["confluent"] == {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": authority().certificate_pem,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
    }
    java = configs["java"]
    assert java.pop("sasl.jaas.config").startswith("org.apache.kafka.common.security.scram.")
    assert java == {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate_pem,
        "sasl.mechanism": "SCRAM-SHA-512",
    }
    spark = configs["spark"]
    assert {key.removeprefix("kafka.") for key in spark} == {*java, "sasl.jaas.config"}
    assert {each.key: each.value for each in properties}.items() >= java.items()


def test_a_password_that_is_wrong_and_a_user_that_there_is_not():
    with Broker(security=Security(users=USERS)) as broker:
        config = broker.client_config("nobody", "java", password='"no\\"', mechanism="PLAIN")
        module = parse_jaas_value(config["sasl.jaas.config"])
        assert module.options == {"username": "nobody", "password": '"no\\"'}
        for user in ("nobody", None):
            with pytest.raises(ValueError, match="alice, bob"):
                broker.client_config(user)
        with pytest.raises(ValueError, match="is none of"):
            broker.client_config("alice", "sarama")


def test_broker_without_security_returns_its_address_as_client_config():
    with Broker() as broker:
        for style in ("kafka-python", "aiokafka"):
            assert broker.client_config(style=style) == {
                "bootstrap_servers": broker.bootstrap_servers
            }
        java = broker.client_config(style="java")
        assert java == {"bootstrap.servers": broker.bootstrap_servers}


def test_tokens_are_for_clients_that_take_one():
    security = Security(protocol="SASL_PLAINTEXT", users=["alice"], mechanisms=["OAUTHBEARER"])
    with Broker(security=security) as broker:
        token, expires_s = broker.client_config("alice", "confluent")["oauth_cb"]("")
        assert token.count(".") == 2
        assert expires_s > time.time()
        with pytest.raises(ValueError, match=r"Broker\.token"):
            broker.client_config("alice", "java")


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "TLS"},
        {"users": ()},
        {"users": USERS, "mechanisms": ["GSSAPI"]},
        {"users": USERS, "mechanisms": []},
        {"users": "alice"},
        {"users": {"alice": ""}},
        {"users": {'al"ice': "secret"}},
        {"users": USERS, "super_users": "admin"},
        {"protocol": "PLAINTEXT", "users": USERS},
        {"protocol": "SASL_PLAINTEXT", "users": USERS, "client_certificates": "required"},
    ],
)
def test_impossible_security_is_rejected_at_once(wrong):
    with pytest.raises(ValueError):
        Security(**wrong)


def test_passwords_do_not_show():
    assert "alice-pw" not in repr(Security(users={"alice": "alice-pw"}))
    assert "PRIVATE" not in repr(broker_certificate())


def test_certificates_are_made_once():
    """The second broker of a process starts as fast as one without TLS."""
    assert broker_certificate() is broker_certificate()
    assert authority() is authority()
