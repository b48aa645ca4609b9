"""Settings of connections between brokers: Kafka's keys, Kafka's rules."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.peers.settings import (
    limits_of,
    listener_of_brokers,
    security_of_brokers,
)
from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from tests.certificates import Authority

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
TWO = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.brokers.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
    'username="broker" password="of brokers" user_broker="of brokers" user_alice="x";',
}


def config_of(settings, **environment):
    return load_config(
        environment=environment, overrides=[f"{key}={value}" for key, value in settings.items()]
    ).config


def problem(function, settings):
    with pytest.raises(ConfigError) as raised:
        function(config_of(settings))
    said = str(raised.value)
    assert "of brokers" not in said, "a secret is shown"
    return said


def test_without_a_setting_brokers_meet_at_the_listener_called_plaintext():
    endpoint = listener_of_brokers(
        config_of(
            {
                "listeners": "X://:1,PLAINTEXT://:2",
                "listener.security.protocol.map": "X:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            }
        )
    )
    assert (endpoint.name, endpoint.port) == ("PLAINTEXT", 2)
    assert security_of_brokers(config_of({})).protocol == "PLAINTEXT"
    assert security_of_brokers(config_of({})).credential is None


def test_a_listener_is_named():
    assert (
        listener_of_brokers(config_of(TWO | {"inter.broker.listener.name": "brokers"})).port == 9093
    )


def test_or_the_listener_with_the_name_of_a_protocol():
    settings = {
        "listeners": "PLAINTEXT://:1,SASL_PLAINTEXT://:2",
        "sasl.enabled.mechanisms": "PLAIN",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
    }
    assert listener_of_brokers(config_of(settings)).port == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"security.inter.broker.protocol": "PLAINTEXT"}, "Only one of"),
        ({"inter.broker.listener.name": "OTHER"}, "OTHER is none of CLIENTS, BROKERS"),
        ({"inter.broker.listener.name": ""}, "PLAINTEXT is none of CLIENTS, BROKERS"),
        (
            {"inter.broker.listener.name": "", "security.inter.broker.protocol": "TLS"},
            "Value must be one of PLAINTEXT, SSL",
        ),
    ],
)
def test_a_listener_that_is_not_there_is_refused(changes, said):
    assert said in problem(listener_of_brokers, TWO | changes)


def test_the_login_is_the_user_of_the_listeners_login_module():
    security = security_of_brokers(config_of(TWO))
    credential = security.credential
    assert (security.protocol, credential.mechanism) == ("SASL_PLAINTEXT", "PLAIN")
    assert (credential.user, credential.password) == ("broker", "of brokers")


def test_a_login_by_scram_has_its_own_module():
    settings = TWO | {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required "
        'username="b2" password="of brokers";',
    }
    credential = security_of_brokers(config_of(settings)).credential
    assert (credential.mechanism, credential.user) == ("SCRAM-SHA-512", "b2")


def test_login_modules_may_stand_in_a_file(tmp_path):
    path = tmp_path / "jaas.conf"
    path.write_text(
        f'KafkaServer {{ {PLAIN_MODULE} required username="filed" password="of brokers" '
        'user_filed="of brokers"; };'
    )
    settings = {key: value for key, value in TWO.items() if "jaas" not in key}
    settings["barnabas.sasl.jaas.file"] = str(path)
    assert security_of_brokers(config_of(settings)).credential.user == "filed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "one that listener BROKERS"),
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "not GSSAPI"),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, "sasl.jaas.config"),
        (
            {
                "listener.name.brokers.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
                'user_broker="of brokers";'
            },
            "listener.name.brokers.plain.sasl.jaas.config",
        ),
    ],
)
def test_a_login_that_cannot_be_is_refused(changes, said):
    settings = TWO | changes
    message = problem(security_of_brokers, settings)
    assert said in message or "the login module has no username" in message


def test_stores_of_the_listener_are_the_clients_too():
    authority = Authority()
    broker = authority.issue("CN=broker")
    settings = {
        "listeners": "SSL://:9092,BROKERS://:9093",
        "listener.security.protocol.map": "SSL:SSL,BROKERS:SSL",
        "inter.broker.listener.name": "BROKERS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": broker.key_pem().replace("\n", " "),
        "ssl.keystore.certificate.chain": broker.chain_pem.replace("\n", " "),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": Authority("CN=Other").root_pem.replace("\n", " "),
        "listener.name.brokers.ssl.truststore.certificates": authority.root_pem.replace("\n", " "),
        "listener.name.brokers.ssl.endpoint.identification.algorithm": "",
        "listener.name.brokers.ssl.client.auth": "required",
        "listener.name.brokers.ssl.principal.mapping.rules": "DEFAULT",
    }
    security = security_of_brokers(config_of(settings))
    assert security.protocol == "SSL"
    assert (
        security.tls["ssl.truststore.certificates"] == authority.root_pem.replace("\n", " ").strip()
    )
    assert security.tls["ssl.keystore.key"] == settings["ssl.keystore.key"].strip()
    context = security.access().context
    assert context is not None
    assert not context.check_hostname
    assert [each["subject"] for each in context.get_ca_certs()]


def test_tokens_come_from_where_the_listener_says():
    settings = TWO | {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "listener.name.brokers.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "listener.name.brokers.oauthbearer.sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": "file:/run/token",
        "sasl.login.retry.backoff.ms": "7",
    }
    settings = {key: value for key, value in settings.items() if "plain.sasl" not in key}
    credential = security_of_brokers(config_of(settings)).credential
    assert (credential.mechanism, credential.token_path) == ("OAUTHBEARER", "/run/token")


def test_a_broker_that_is_alone_is_asked_nothing():
    """Settings that would be wrong in a cluster do not stop a standalone broker."""
    assert config_of({"listeners": "SSL://:1"}).endpoints[0].name == "SSL"


def test_the_time_for_a_connection_is_kafkas():
    assert limits_of(config_of({})).connect_timeout_ms == 10_000
    given = {"socket.connection.setup.timeout.ms": "700"}
    assert limits_of(config_of(given)).connect_timeout_ms == 700
