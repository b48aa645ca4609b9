"""Logins by token over real sockets, and what a start without rules for tokens says."""

import sys

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.sasl.logins import Logins
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.testing import Broker
from tests.broker.security.wire import Wire
from tests.issuer import AUDIENCE, ISSUER, rsa_key, standard_set, token, unsigned

OAUTH = "sasl.oauthbearer"
STATUS = b'{"status":"invalid_token"}'
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_bytes(standard_set())
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{OAUTH}.jwks.endpoint.url": f"file://{path}",
        f"{OAUTH}.expected.issuer": ISSUER,
        f"{OAUTH}.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "20",
        # As files for Apache Kafka have it.
        JAAS: f"{MODULE} required;",
        HANDLER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    }


@pytest.fixture(scope="module")
def broker(settings):
    with Broker(config=settings) as broker:
        yield broker


def log_in(wire, text, version=1):
    assert wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("OAUTHBEARER")).error_code == 0
    request = SaslAuthenticateRequest(OAuthBearerClient(text).first())
    return wire.ask(SASL_AUTHENTICATE, version, request)


def test_a_token_that_holds(broker):
    with Wire(broker) as wire:
        answer = log_in(wire, token(lifetime_s=600))
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
        assert 590_000 < answer.session_lifetime_ms <= 600_000
        assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id


@pytest.mark.parametrize(
    "text",
    [unsigned(), token(key=rsa_key("mine")), token(lifetime_s=-100), token(iss="else")],
    ids=["unsigned", "of another key", "expired", "of another issuer"],
)
def test_a_token_that_does_not_hold(broker, text):
    with Wire(broker) as wire:
        answer = log_in(wire, text)
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, STATUS)
        assert answer.session_lifetime_ms == 0
        last = wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"\1"))
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert last.error_message == STATUS.decode()
        assert wire.is_closed


def test_a_token_may_come_bare(broker):
    with Wire(broker) as wire:
        wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("OAUTHBEARER"))
        assert wire.bare(OAuthBearerClient(token()).first()) == b""
        assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id


def test_session_ends_with_token_and_continues_with_next(settings):
    with (
        Broker(config=settings) as broker,
        Wire(broker) as renewed,
        Wire(broker) as not_renewed,
        Wire(broker) as as_another,
    ):
        for each in (renewed, not_renewed, as_another):
            log_in(each, token(lifetime_s=1000))
        broker.clock.advance(seconds=800)
        assert log_in(renewed, token(lifetime_s=3000)).error_code == 0
        broker.clock.advance(seconds=300)
        assert renewed.ask(METADATA, 12, MetadataRequest()).cluster_id
        assert log_in(as_another, token("bob", lifetime_s=3000)).error_code == 58
        not_renewed.send(METADATA, 12, MetadataRequest())
        assert not_renewed.is_closed


def test_the_shorter_of_two_lifetimes_holds(settings):
    with Broker(config=settings | {"connections.max.reauth.ms": "60000"}) as broker:
        with Wire(broker) as wire:
            assert 0 < log_in(wire, token(lifetime_s=600)).session_lifetime_ms <= 60_000
        with Wire(broker) as wire:
            assert 0 < log_in(wire, token(lifetime_s=20)).session_lifetime_ms <= 20_000


def test_a_login_that_fails_is_logged_without_the_token(broker, caplog):
    text = token(aud="else")
    with Wire(broker) as wire:
        log_in(wire, text)
        wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"\1"))
    assert "mechanism=OAUTHBEARER reason=token audience does not match" in caplog.text
    assert text[-50:] not in caplog.text
    assert "alice" not in caplog.text


# ---------------------------------------------------------------------------- from a configuration


def started(settings, **changes):
    given = {**settings, **changes}
    config = load_config(overrides=[f"{k}={v}" for k, v in given.items() if v is not None]).config
    Logins(config).mechanisms_of(config.for_listener("SASL_PLAINTEXT"), "SASL_PLAINTEXT")
    return config


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({f"{OAUTH}.jwks.endpoint.url": None}, "must say where the keys are"),
        ({f"{OAUTH}.jwks.endpoint.url": "ftp://a/"}, "a URL with https:, http: or file:"),
        ({f"{OAUTH}.jwks.endpoint.url": "file://host/a"}, "a URL with https:, http: or file:"),
        ({f"{OAUTH}.jwks.endpoint.url": "/etc/keys"}, "a URL with https:, http: or file:"),
        ({f"{OAUTH}.expected.issuer": None}, "must say which issuer of tokens is good"),
        ({f"{OAUTH}.expected.audience": None}, "must say which audience of tokens is good"),
        ({f"{OAUTH}.jwt.validator.class": "a.Mine"}, "no Java class can be loaded"),
        ({HANDLER: "a.Mine"}, "no Java class can be loaded"),
        ({JAAS: "a.Mine required;"}, f"OAUTHBEARER has the login module {MODULE}"),
        (
            {JAAS: f"{MODULE} required unsecuredValidatorRequiredScope=kafka;"},
            "unsecuredValidatorRequiredScope: tokens without a signature are never good",
        ),
        ({"barnabas.sasl.oauthbearer.algorithms": "RS256,HS256"}, "must be one of: RS256"),
        ({"barnabas.sasl.oauthbearer.algorithms": "none"}, "must be one of: RS256"),
    ],
)
def test_too_permissive_token_config_stops_start(settings, changes, problem):
    with pytest.raises(ConfigError) as caught:
        started(settings, **changes)
    assert problem in str(caught.value)


def test_password_in_the_url_of_keys_is_refused_and_not_repeated(settings):
    with pytest.raises(ConfigError, match="leave user and password out") as caught:
        started(settings, **{f"{OAUTH}.jwks.endpoint.url": "https://me:s3cr3t@issuer.example/keys"})
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {f"{OAUTH}.expected.issuer": None, f"{OAUTH}.allow.unverified.issuer": "true"},
        {f"{OAUTH}.expected.audience": None, f"{OAUTH}.allow.unverified.audience": "true"},
        {f"{OAUTH}.jwt.validator.class": f"{MODULE.rpartition('.')[0]}.BrokerJwtValidator"},
        {HANDLER: None, JAAS: None},
    ],
)
def test_settings_that_will_do(settings, changes):
    started(settings, **changes)


def test_a_listener_may_have_rules_of_its_own(settings):
    own = f"listener.name.sasl_plaintext.{OAUTH}.expected.audience"
    with Broker(config=settings | {own: "mine"}) as broker:
        with Wire(broker) as wire:
            assert bytes(log_in(wire, token()).auth_bytes) == STATUS
        with Wire(broker) as wire:
            assert bytes(log_in(wire, token(aud="mine")).auth_bytes) == b""


def test_a_file_without_keys_stops_the_start(settings, tmp_path):
    url = f"file://{tmp_path}/none.json"
    with (
        pytest.raises(ConfigError, match=r"none\.json: No such file or directory"),
        Broker(config=settings | {f"{OAUTH}.jwks.endpoint.url": url}),
    ):
        pass


def test_missing_token_package_is_named(settings, monkeypatch):
    for name in [
        each for each in sys.modules if each.startswith("barnabas.broker.security.sasl.token")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigError) as caught:
        started(settings)
    assert str(caught.value) == (
        "sasl.enabled.mechanisms: OAUTHBEARER needs jwt, which is not installed: "
        "run pip install '.[security]' in a checkout of Barnabas"
    )
