"""A key that protects something takes effect or stops the start, with each kind of mistake."""

from __future__ import annotations

import pytest

from barnabas.broker.config.loading.environment import variable_of
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.loading.properties import parse_properties
from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.config.types import ConfigError

FILE = "server.properties"
PLAIN_AND_TLS = "listeners=PLAINTEXT://:0,SSL://:0,SASL_PLAINTEXT://:0,SASL_SSL://:0"
MECHANISM = "sasl.enabled.mechanisms=PLAIN"


def load(*lines):
    return load_config(parse_properties("\n".join(lines)))


def refusal(*lines):
    with pytest.raises(ConfigError) as raised:
        load(*lines)
    return str(raised.value)


@pytest.mark.parametrize(
    "line",
    [
        "super.users=User:admin",
        "allow.everyone.if.no.acl.found=false",
        "allow.everyone.if.no.acl.found=true",
    ],
)
def test_rules_of_access_control_need_access_control(line):
    key = line.partition("=")[0]
    assert refusal(line) == (f"{key} has no effect without authorizer.class.name ({FILE} line 1)")
    authorizer = f"authorizer.class.name={STANDARD_AUTHORIZER}"
    assert load(line, authorizer).config.settings[key]


def test_no_super_users_need_no_access_control():
    assert load("super.users=").config.super_users == ""


@pytest.mark.parametrize("users", ["admin", "User:a,User:b;bob", "user:admin", "User:"])
def test_super_users_are_principals(users):
    found = refusal(f"super.users={users}", f"authorizer.class.name={STANDARD_AUTHORIZER}")
    assert "for configuration super.users" in found
    assert "must be User:name, in this spelling" in found
    assert found.endswith(f"({FILE} line 1)")


MISSPELT = {
    "authoriser.class.name": "authorizer.class.name",
    "authorizer.class": "authorizer.class.name",
    "super.user": "super.users",
    "superusers": "super.users",
    "allow.everyone.if.no.acls.found": "allow.everyone.if.no.acl.found",
    "allow.everybody.if.no.acl.found": "allow.everyone.if.no.acl.found",
    "connection.max.reauth.ms": "connections.max.reauth.ms",
    "connections.failed.authentication.delay.ms": "connection.failed.authentication.delay.ms",
    "max.connection": "max.connections",
    "max.connections.per.address": "max.connections.per.ip",
    "max.connections.creation.rate": "max.connection.creation.rate",
    "tls.client.auth": "ssl.client.auth",
    "sals.enabled.mechanisms": "sasl.enabled.mechanisms",
    "principal.builder.clas": "principal.builder.class",
    "barnabas.http.bearer.tokne": "barnabas.http.bearer.token",
    "barnabs.http.bearer.token": "barnabas.http.bearer.token",
    "config.provider": "config.providers",
    "create.topics.policy.class.name": "create.topic.policy.class.name",
}


@pytest.mark.parametrize("key", MISSPELT)
def test_misspelt_protecting_key_stops_the_start(key):
    assert refusal(f"{key}=1") == f"unknown key {key}, did you mean {MISSPELT[key]}?"
    with pytest.raises(ConfigError, match=f"unknown key {key}"):
        load_config(environment={variable_of(key): "1"})


@pytest.mark.parametrize(
    "key",
    [
        "barnabas.no.such.thing",
        "listner.name.ssl.ssl.client.auth",
        "listeners.name.ssl.ssl.client.auth",
        "listener.names.ssl.ssl.client.auth",
        # Without what they begin with, these would be keys of a listener and of a mechanism.
        "plaintext.ssl.client.auth",
        "plain.sasl.jaas.config",
    ],
)
def test_unknown_protecting_key_stops_the_start(key):
    assert refusal(f"{key}=1").startswith(f"unknown key {key}")


@pytest.mark.parametrize(
    "key",
    [
        "num.partitons",
        "no.such.key",
        "num.partitions.file",
        "advertised.host.name",
        "connections.max.idle",
        "zookeeper.connect",
        "zookeeper.set.acl",
        "zookeeper.ssl.keystore.location",
        "zookeeper.ssl.endpoint.identification.algorithm",
        "schema.registry.ssl.keystore.location",
        "confluent.metrics.reporter.sasl.jaas.config",
        "confluent.support.metrics.enable",
        "metric.reporters.class",
        "password.encoder.secret",
        "rest.port",
    ],
)
def test_keys_of_others_are_named_only(key):
    assert load(f"{key}=1").unknown == (key,)
    assert load_config(environment={variable_of(key): "1"}).unknown == (key,)


@pytest.mark.parametrize("what", ["create.topic", "alter.config"])
def test_policies_are_not_available(what):
    key = f"{what}.policy.class.name"
    assert refusal(f"{key}=org.Policy") == (
        f"Invalid value org.Policy for configuration {key}: no Java class can be loaded "
        f"({FILE} line 1)"
    )
    assert load(f"{key}=").ignored == (key,)


@pytest.mark.parametrize("value", ["required", "requested"])
def test_certificates_of_clients_that_log_in_are_asked_for_by_listener(value):
    lines = ["listeners=SSL://:0,SASL_SSL://:0", MECHANISM, f"ssl.client.auth={value}"]
    assert refusal(*lines) == (
        f"ssl.client.auth={value} has no effect on SASL listener SASL_SSL, as in Apache Kafka; set "
        f"listener.name.sasl_ssl.ssl.client.auth ({FILE} line 3)"
    )
    for own in ("required", "none"):
        assert load(*lines, f"listener.name.sasl_ssl.ssl.client.auth={own}")


def test_certificates_of_clients_need_a_listener_with_tls():
    assert refusal("ssl.client.auth=required") == (
        f"ssl.client.auth=required has no effect: no listener has TLS ({FILE} line 1)"
    )
    assert load("ssl.client.auth=none")


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("plaintext.ssl.client.auth", "TLS"),
        ("sasl_plaintext.ssl.keystore.location", "TLS"),
        ("plaintext.sasl.enabled.mechanisms", "login"),
        ("plaintext.plain.sasl.jaas.config", "login"),
        ("ssl.sasl.jaas.config", "login"),
        ("ssl.connections.max.reauth.ms", "login"),
    ],
)
def test_keys_of_a_listener_are_for_what_it_does(key, what):
    name = f"listener.name.{key}"
    listener = key.partition(".")[0].upper()
    assert refusal(PLAIN_AND_TLS, MECHANISM, f"{name}=1") == (
        f"{name} has no effect: listener {listener} has no {what}, its protocol is {listener} "
        f"({FILE} line 3)"
    )


def test_keys_of_listeners_that_can_use_them_and_of_controllers_are_taken():
    assert load(
        f"{PLAIN_AND_TLS},CONTROLLER://:0",
        MECHANISM,
        "controller.listener.names=CONTROLLER",
        "listener.name.ssl.ssl.client.auth=required",
        "listener.name.sasl_ssl.ssl.client.auth=required",
        "listener.name.sasl_ssl.connections.max.reauth.ms=1000",
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms=1000",
        "listener.name.plaintext.max.connections=5",
        "listener.name.controller.ssl.client.auth=required",
    )
