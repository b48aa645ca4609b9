"""The client's side of a login: its requests in their order, and what ends it for good."""

import pytest

from barnabas.protocol.client import AdvertisedVersions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateResponse,
)
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeResponse
from barnabas.protocol.sasl.login_client import ROUNDS_ASIDE, LoginClient, LoginRefused
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.protocol.sasl.plain import PlainClient
from barnabas.protocol.sasl.scram import (
    SCRAM_SHA_256,
    ScramClient,
    ScramServer,
    credential_of,
    salted_password,
)

SPEAKS = {SASL_HANDSHAKE.key: (0, 1), SASL_AUTHENTICATE.key: (0, 2), API_VERSIONS.key: (0, 4)}


def versions(speaks=None):
    return ApiVersionsResponse(
        api_keys=[ApiVersion(key, *ends) for key, ends in (speaks or SPEAKS).items()]
    )


def plain(**changes):
    return LoginClient("PLAIN", PlainClient("alice", "secret"), ("test", "9"), **changes)


def asked(login):
    ask = login.next_request()
    return ask.api, ask.version


def introduced(login=None, speaks=None):
    login = login or plain()
    login.take(versions(speaks))
    return login


def greeted(login=None):
    login = introduced(login)
    login.take(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    return login


def test_requests_come_in_their_order():
    login = plain()
    assert asked(login) == (API_VERSIONS, 3)
    assert login.next_request().request.client_software_name == "test"
    login.take(versions())
    assert asked(login) == (SASL_HANDSHAKE, 1)
    assert login.next_request().request.mechanism == "PLAIN"
    login.take(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert asked(login) == (SASL_AUTHENTICATE, 2)
    assert login.next_request().request.auth_bytes == b"\0alice\0secret"
    login.take(SaslAuthenticateResponse(session_lifetime_ms=5000))
    assert login.next_request() is None
    assert login.lifetime_ms == 5000
    assert login.versions.highest_common(SASL_AUTHENTICATE) == 2
    assert login.versions_response is not None


def test_a_repetition_asks_for_no_versions():
    login = plain(versions=AdvertisedVersions(SPEAKS))
    assert asked(login) == (SASL_HANDSHAKE, 1)


def test_an_older_broker_is_asked_in_its_own_version():
    login = plain()
    login.take(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert asked(login) == (API_VERSIONS, 0)
    with pytest.raises(KafkaError):
        login.take(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    login = introduced(speaks=SPEAKS | {SASL_AUTHENTICATE.key: (0, 1)})
    login.take(SaslHandshakeResponse())
    assert asked(login) == (SASL_AUTHENTICATE, 1)


@pytest.mark.parametrize(
    "speaks", [SPEAKS | {SASL_HANDSHAKE.key: (0, 0)}, {API_VERSIONS.key: (0, 4)}]
)
def test_a_broker_that_is_too_old(speaks):
    with pytest.raises(KafkaError) as caught:
        introduced(speaks=speaks).next_request()
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("code", "words"),
    [(33, "does not offer PLAIN; it offers A, B"), (34, "the broker asks for no login here")],
)
def test_a_mechanism_that_is_refused_is_final(code, words):
    with pytest.raises(LoginRefused, match=words):
        introduced().take(SaslHandshakeResponse(error_code=code, mechanisms=["B", "A"]))


def test_a_token_that_is_refused_is_final():
    with pytest.raises(LoginRefused, match="wrong password"):
        greeted().take(SaslAuthenticateResponse(58, "wrong password"))
    with pytest.raises(LoginRefused, match=r".+"):
        greeted().take(SaslAuthenticateResponse(58, None))


def test_other_errors_are_kafkas():
    code = ErrorCode.NOT_CONTROLLER
    with pytest.raises(KafkaError):
        greeted().take(SaslAuthenticateResponse(code))
    with pytest.raises(KafkaError):
        introduced().take(SaslHandshakeResponse(error_code=code))
    with pytest.raises(KafkaError):
        plain().take(ApiVersionsResponse(error_code=code))


def test_an_answer_to_another_request_is_a_slip_of_the_caller():
    with pytest.raises(AssertionError, match="SaslHandshakeResponse answers another request"):
        plain().take(SaslHandshakeResponse())


def scram(iterations=4096):
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", iterations)
    credential = credential_of(SCRAM_SHA_256, salted, b"salt", iterations)
    server = ScramServer(SCRAM_SHA_256, lambda _name: credential, "server")
    client = ScramClient(SCRAM_SHA_256, "alice", "secret", "client")
    return greeted(LoginClient("SCRAM-SHA-256", client)), server


def test_a_mechanism_of_several_steps():
    login, server = scram()
    for lifetime_ms in (0, 7):
        token = server.step(login.next_request().request.auth_bytes).token
        login.take(SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms))
    assert login.next_request() is None
    assert login.lifetime_ms == 7


def test_how_much_is_to_be_hashed_is_known_before():
    login, server = scram(ROUNDS_ASIDE + 1)
    token = server.step(login.next_request().request.auth_bytes).token
    assert login.rounds_of(SaslAuthenticateResponse(auth_bytes=token)) == ROUNDS_ASIDE + 1
    assert login.rounds_of(SaslAuthenticateResponse(58, auth_bytes=token)) == 0
    assert login.rounds_of(SaslHandshakeResponse()) == 0
    assert plain().rounds_of(SaslAuthenticateResponse(auth_bytes=token)) == 0


def test_a_broker_that_does_not_know_the_password_is_none():
    login, server = scram()
    token = server.step(login.next_request().request.auth_bytes).token
    login.take(SaslAuthenticateResponse(auth_bytes=token))
    with pytest.raises(LoginRefused, match="the server does not know the password"):
        login.take(SaslAuthenticateResponse(auth_bytes=b"v=AAAA"))


def test_a_token_that_does_not_hold_is_acknowledged_and_then_final():
    login = greeted(LoginClient("OAUTHBEARER", OAuthBearerClient("t")))
    login.take(SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'))
    assert login.next_request().request.auth_bytes == b"\1"
    with pytest.raises(LoginRefused):
        login.take(SaslAuthenticateResponse(58, '{"status":"invalid_token"}'))
