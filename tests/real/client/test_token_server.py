"""Tokens of a server: the requests, the valid responses, and the errors of others."""

from __future__ import annotations

import base64
import json
import pickle
import socket
import threading
import time
from dataclasses import replace

import pytest

from barnabas.broker.client import token_request
from barnabas.broker.client.errors import TokenUnavailable, WrongSetting
from barnabas.broker.client.kept_token import HOLDING_SECONDS_MAX, KeptToken
from barnabas.broker.client.security import security_of
from barnabas.broker.client.token_endpoint import Refresh, Token
from barnabas.broker.client.token_request import ANSWER_BYTES_MAX, fetched
from tests.certificates import Authority
from tests.issuer import token
from tests.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    PATH,
    TokenServerForTests,
    basic,
    client_credentials,
)

URL_KEY = "sasl.oauthbearer.token.endpoint.url"
SECONDS = 20.0


def endpoint_of(settings):
    settings = {"security.protocol": "SASL_PLAINTEXT"} | settings
    return security_of(settings, {}).credential.endpoint


def one_token(server, settings=None, **options):
    """Fetch a token with a single request."""
    endpoint = endpoint_of(client_credentials(server.url, **options) | (settings or {}))
    return fetched(endpoint, SECONDS, may_repeat=False)


def problem(server, settings=None, kind=WrongSetting, **options):
    """Return the error message of a failed fetch."""
    with pytest.raises((WrongSetting, TokenUnavailable)) as raised:
        one_token(server, settings, **options)
    said = str(raised.value)
    assert type(raised.value) is kind, said
    assert "\n" not in said
    assert "secret" not in said
    return said


@pytest.fixture
def server():
    with TokenServerForTests() as server:
        yield server


# ------------------------------------------------------------------------------------- the request


@pytest.mark.parametrize(
    ("settings", "options", "header", "body"),
    [
        ({}, {}, basic(), b""),
        ({"sasl.oauthbearer.scope": " read write "}, {}, basic(), b"&scope=read write"),
        ({}, {"scope": "one"}, basic(), b"&scope=one"),
        ({"sasl.oauthbearer.scope": "two"}, {"scope": "one"}, basic(), b"&scope=two"),
        (
            {"sasl.oauthbearer.header.urlencode": "TRUE", "sasl.oauthbearer.scope": "read ~x"},
            {},
            basic(is_urlencoded=True),
            b"&scope=read+%7Ex",
        ),
    ],
)
@pytest.mark.parametrize("are_in_jaas", [False, True])
def test_token_request_has_the_configured_headers_and_body(
    server, settings, options, header, body, are_in_jaas
):
    one_token(server, settings, are_in_jaas=are_in_jaas, **options)
    (request,) = server.requests
    assert request.path == PATH
    assert request.body == b"grant_type=client_credentials" + body
    expected = {
        "Accept": "application/json",
        "Authorization": header,
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    assert expected.items() <= request.headers.items()


def test_settings_count_over_the_jaas_line(server):
    one_token(server, clientId="another", clientSecret="another")
    assert server.requests[0].headers["Authorization"] == basic()


def test_a_query_is_sent_and_not_shown(server):
    url = f"{server.url}?tenant=ours&key=secret"
    endpoint = endpoint_of(client_credentials(url))
    fetched(endpoint, SECONDS, may_repeat=False)
    assert server.requests[0].path == f"{PATH}?tenant=ours&key=secret"
    assert "secret" not in repr(endpoint)
    server.status = 404
    with pytest.raises(WrongSetting) as raised:
        fetched(endpoint, SECONDS, may_repeat=False)
    assert str(raised.value) == f"{URL_KEY}: {server.url}: the server answers 404"


def test_extensions_are_sent_to_the_broker(server):
    settings = client_credentials(server.url, extension_pool="p1", extension_logicalCluster="l1")
    security = security_of({"security.protocol": "SASL_PLAINTEXT"} | settings, {})
    first = security.credential.exchange(SECONDS).first()
    assert first.endswith(b"\1pool=p1\1logicalCluster=l1\1\1")
    assert first.startswith(b"n,,\1auth=Bearer ")


def test_librdkafkas_spelling(server):
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.token.endpoint.url": server.url,
        "sasl.oauthbearer.scope": "one",
        "sasl.oauthbearer.extensions": "pool=p1, cluster=l=1",
    }
    first = security_of(settings, {}).credential.exchange(SECONDS).first()
    assert first.endswith(b"\1pool=p1\1cluster=l=1\1\1")
    assert server.requests[0].headers["Authorization"] == basic()
    assert server.requests[0].body == b"grant_type=client_credentials&scope=one"


# -------------------------------------------------------------------------------------- the answer


def test_a_token_and_for_how_long_it_holds(server):
    server.lifetime_s = 300
    found = one_token(server)
    assert found.text.count(".") == 2
    assert 290 < found.lifetime_seconds <= 300


def jwt_of(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.c2ln"


@pytest.mark.parametrize(
    ("answer", "lifetime_s"),
    [
        ({"expires_in": 100}, 100),
        ({"expires_in": "100"}, 100),
        ({"expires_in": 1.5}, 1.5),
        ({"expires_in": -7}, 0),
        *(({"expires_in": each}, None) for each in ("soon", None, True, "1e9", [1], 10**400)),
        ({}, None),
    ],
)
def test_a_lifetime_of_the_answer(server, answer, lifetime_s):
    server.body = json.dumps({"access_token": "opaque-token", **answer}).encode()
    assert one_token(server) == ("opaque-token", lifetime_s)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (jwt_of({"exp": 4_000_000_000}), 60),
        (jwt_of({"exp": 1}), 0),
        (jwt_of({"exp": "x"}), 60),
        (jwt_of([1]), 60),
        ("e30.e.c2ln", 60),
        ("e30.____.c2ln", 60),
        ("one", 60),
    ],
)
def test_the_less_counts_of_answer_and_token(server, text, expected):
    server.body = json.dumps({"access_token": text, "expires_in": 60}).encode()
    assert one_token(server) == (text, expected)


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": " abc "},
        {"id_token": "abc"},
        {"access_token": "abc", "id_token": "def"},
        {"access_token": "", "id_token": "abc"},
        {"access_token": 1, "id_token": "abc"},
    ],
)
def test_where_a_token_may_stand(server, answer, status):
    server.status, server.body = status, json.dumps(answer).encode()
    assert one_token(server).text == "abc"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is not JSON"),
        (b"<html>", "the answer is not JSON"),
        (b"[1]", "the answer is not JSON"),
        (b"[" * 100_000, "the answer is not JSON"),
        (b"\xff", "the answer is not JSON"),
        (b"{}", "the response has no access_token"),
        (b'{"access_token": null}', "the response has no access_token"),
        (b'{"access_token": "two words"}', "the access_token is malformed or too long"),
        (b'{"access_token": "a\\u0001b=x"}', "the access_token is malformed or too long"),
        (
            b'{"access_token": "' + b"a" * 70_000 + b'"}',
            "the access_token is malformed or too long",
        ),
        (b" " * (ANSWER_BYTES_MAX + 1), f"the answer has more than {ANSWER_BYTES_MAX} bytes"),
    ],
)
def test_answers_without_a_token(server, body, reason):
    server.body = body
    assert problem(server) == f"{URL_KEY}: {server.url}: {reason}"


def test_a_client_that_the_server_does_not_know(server):
    settings = {"sasl.oauthbearer.client.credentials.client.id": "another"}
    reason = "the server answers 401: invalid_client - Who are you?"
    assert problem(server, settings) == f"{URL_KEY}: {server.url}: {reason}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", ""),
        (b"<html>Unauthorized</html>", ""),
        (b'{"error": 7}', ""),
        (b'{"error": "invalid_scope"}', ": invalid_scope"),
        (b'{"error": "e", "error_description": "a\\u001b[2Jb"}', ": e - a [2Jb"),
        (json.dumps({"error": f"bad: {CLIENT_SECRET}"}).encode(), ""),
        (b'{"error": "bad: client%2Fsecret+%2B%7E*%3D%25"}', ""),
        (json.dumps({"error": "e", "error_description": basic()}).encode(), ""),
        (json.dumps({"error": "e" * 295 + CLIENT_SECRET}).encode(), ""),
        (json.dumps({"error": "e" * 400}).encode(), ": " + "e" * 300),
    ],
)
def test_error_of_the_server_is_reported(server, body, said):
    server.status, server.body = 400, body
    assert problem(server).removeprefix(f"{URL_KEY}: {server.url}: ") == (
        f"the server answers 400{said}"
    )


@pytest.mark.parametrize("status", [204, 301, 302, 303, 307, 308, 400, 403, 404, 501, 505])
def test_final_error_is_not_retried_and_no_redirect_followed_cve_2025_27817(server, status):
    with TokenServerForTests() as other:
        server.status, server.headers = status, {"Location": other.url}
        endpoint = endpoint_of(client_credentials(server.url))
        with pytest.raises(WrongSetting, match=f"the server answers {status}"):
            fetched(endpoint, SECONDS, may_repeat=True)
        assert len(server.requests) == 1
        assert other.requests == []


def test_no_proxy_of_the_environment_is_asked(server, monkeypatch):
    with TokenServerForTests() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert one_token(server).text
    assert proxy.requests == []


# ---------------------------------------------------------------------------- an unavailable server


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_a_server_that_comes_back_is_asked_again(server, status):
    server.status = status
    answers = iter([status, status, 200])

    def next_answer():
        server.status = next(answers)

    server.before = next_answer
    endpoint = endpoint_of(client_credentials(server.url) | {"sasl.login.retry.backoff.ms": "1"})
    assert fetched(endpoint, SECONDS, may_repeat=True).text
    assert len(server.requests) == 3


@pytest.fixture
def pauses(monkeypatch):
    """Time that passes only in pauses, which are noted."""
    noted = []
    monkeypatch.setattr(token_request.time, "monotonic", lambda: sum(noted))
    monkeypatch.setattr(token_request.time, "sleep", noted.append)
    return noted


@pytest.mark.parametrize(
    ("settings", "seconds", "expected"),
    [
        ({}, 60, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.7]),
        ({"sasl.login.retry.backoff.max.ms": "500"}, 60, [0.1, 0.2, 0.2]),
        ({"sasl.login.retry.backoff.ms": "0"}, 60, []),
        ({"sasl.login.retry.backoff.ms": "2000"}, 5, [2.0]),
        ({}, 0.05, []),
    ],
)
def test_how_often_it_is_asked_again(server, pauses, settings, seconds, expected):
    server.status = 503
    endpoint = endpoint_of(client_credentials(server.url) | settings)
    with pytest.raises(TokenUnavailable, match=r"the server answers 503$"):
        fetched(endpoint, seconds, may_repeat=True)
    assert pauses == pytest.approx(expected)
    assert len(server.requests) == len(expected) + 1


def free_url(scheme="http"):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"{scheme}://127.0.0.1:{taken.getsockname()[1]}/token"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_refused_connection_is_reported(scheme):
    url = free_url(scheme)
    with pytest.raises(TokenUnavailable) as raised:
        fetched(endpoint_of(client_credentials(url)), SECONDS, may_repeat=False)
    assert str(raised.value) == f"{URL_KEY}: {url}: Connection refused"


class Dripping:
    """A server that sends a start, and then a byte at a time, or nothing."""

    def __init__(self, start, drip=b""):
        self._start, self._drip = start, drip
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._is_over = threading.Event()
        self.was_left = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"

    def _serve(self):
        connection, _ = self._listening.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(self._start)
            connection.settimeout(0.02)
            while not self._is_over.is_set():
                try:
                    if self._drip:
                        connection.sendall(self._drip)
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                return
            self.was_left.set()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        self._listening.close()


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nX-", b"a"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
)
def test_a_server_that_never_ends_is_left_in_time(start, drip):
    with Dripping(start, drip) as server:
        started = time.monotonic()
        with pytest.raises(TokenUnavailable) as raised:
            fetched(endpoint_of(client_credentials(server.url)), 0.3, may_repeat=True)
        assert str(raised.value) == f"{URL_KEY}: {server.url}: it does not answer in time"
        assert time.monotonic() - started < 10
        assert server.was_left.wait(20)


def test_the_time_for_an_answer_may_be_set():
    settings = {"sasl.login.read.timeout.ms": "100", "sasl.login.connect.timeout.ms": "5000"}
    with Dripping(b"") as server, pytest.raises(TokenUnavailable, match="not answer in time"):
        fetched(endpoint_of(client_credentials(server.url) | settings), 600, may_repeat=False)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"nonsense\r\n\r\n", WrongSetting, "the answer is not HTTP's (BadStatusLine)"),
        (b"HTTP/1.0 x y\r\n\r\n", WrongSetting, "the answer is not HTTP's (BadStatusLine)"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200, WrongSetting, "is not HTTP's (HTTPException)"),
        (b"", TokenUnavailable, "Remote end closed connection without response"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
            TokenUnavailable,
            "the answer ends in the middle",
        ),
    ],
)
def test_server_without_tokens_is_reported(answer, kind, said):
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve():
            connection, _ = other.accept()
            with connection:
                received = b""
                while b"grant_type" not in received:
                    received += connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{other.getsockname()[1]}/"
        with pytest.raises(kind) as raised:
            fetched(endpoint_of(client_credentials(url)), SECONDS, may_repeat=False)
        thread.join()
    assert str(raised.value).endswith(said)


def test_bug_is_not_reported_as_an_unavailable_server(server, monkeypatch):
    monkeypatch.setattr(token_request, "_form", lambda _endpoint: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one_token(server)


# --------------------------------------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def secure(authority):
    with TokenServerForTests(authority.issue("CN=issuer")) as server:
        yield server


def test_trust_of_the_token_server_is_set_in_the_jaas_line(secure, authority, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text(authority.root_pem)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}
    assert one_token(secure, **trust).text
    line = authority.root_pem.replace("\n", " ")
    inline = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": line}
    assert one_token(secure, **inline).text
    assert one_token(secure, {"https.ca.location": str(path)}).text
    assert one_token(secure, {"https.ca.pem": authority.root_pem}).text


def test_trust_of_the_brokers_does_not_apply_to_the_token_server(secure, authority, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text(authority.root_pem)
    settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}
    said = problem(secure, settings)
    assert "the server's certificate cannot be trusted: " in said
    assert said.endswith("(the option ssl.truststore.location in sasl.jaas.config names who is)")
    assert secure.requests == []


def test_a_certificate_of_another_host(authority, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text(authority.root_pem)
    elsewhere = authority.issue("CN=issuer", hosts=("issuer.example",))
    with TokenServerForTests(elsewhere) as server:
        said = problem(server, {"https.ca.location": str(path)})
        assert "certificate cannot be trusted: IP address mismatch" in said
        options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}
        options["ssl.endpoint.identification.algorithm"] = ""
        assert one_token(server, **options).text


def test_no_tls_is_spoken_there(server):
    server.scheme = "https"
    assert "the TLS handshake failed: " in problem(server)


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        (
            {},
            {"ssl.truststore.location": "/nowhere", "ssl.truststore.type": "PEM"},
            "sasl.jaas.config: ssl.truststore.location: /nowhere: No such file",
        ),
        ({"https.ca.location": "/nowhere"}, {}, "https.ca.location: /nowhere: No such file"),
        (
            {"https.ca.location": "/x"},
            {"ssl.truststore.location": "/y"},
            "https.ca.location: ssl.truststore.location says the same",
        ),
    ],
)
def test_stores_that_cannot_be_used(secure, settings, options, said):
    assert problem(secure, settings, **options).startswith(said)


# ------------------------------------------------------------------------- a token that is kept

HALF = 0.5


class Kept:
    """A kept token with a clock of its own; `tokens` are numbers."""

    def __init__(self, lifetime_seconds=1000.0, refresh=None):
        self.now_s = 0.0
        self.lifetime_seconds = lifetime_seconds
        self.problem = None
        self.fetches = []
        self._kept = KeptToken(refresh or Refresh(), self._fetch, lambda: self.now_s, lambda: HALF)
        self.forget = self._kept.forget

    def _fetch(self, timeout_seconds, may_repeat):
        self.fetches.append((timeout_seconds, may_repeat))
        if self.problem:
            raise self.problem
        return Token(f"t{len(self.fetches)}", self.lifetime_seconds)

    def at(self, now_s):
        self.now_s = now_s
        return self._kept.token(SECONDS)


@pytest.mark.parametrize(
    ("lifetime_s", "settings", "expected"),
    [
        (10_000, {}, 8250),
        (1000, {}, 700),  # the buffer
        (350, {}, 288.75),  # the buffer and the least period cannot both be kept
        (100, {}, 82.5),
        (0, {}, 0),
        (1000, {"window_factor": 0.5, "window_jitter": 0.0}, 500),
        (100, {"buffer_seconds": 0, "period_min_seconds": 90}, 90),
        (100, {"buffer_seconds": 30, "period_min_seconds": 0}, 70),
        (100, {"window_factor": 1.0, "window_jitter": 0.25}, 100),
    ],
)
def test_token_is_fetched_again_before_its_expiry(lifetime_s, settings, expected):
    assert replace(Refresh(), **settings).seconds_until(lifetime_s, HALF) == expected


def test_a_token_is_kept_until_it_nears_its_end():
    kept = Kept()
    assert [kept.at(each) for each in (0, 0, 699.9, 700, 701, 1399)] == [
        *("t1", "t1", "t1", "t2", "t2", "t2")
    ]
    assert kept.fetches == [(SECONDS, True), (HOLDING_SECONDS_MAX, False)]


def test_a_token_that_does_not_say_how_long_it_holds_is_not_kept():
    kept = Kept(lifetime_seconds=None)
    assert [kept.at(0), kept.at(0)] == ["t1", "t2"]


@pytest.mark.parametrize("problem", [TokenUnavailable("away"), WrongSetting(URL_KEY, "401")])
def test_a_token_that_still_holds_is_used_while_the_server_hands_out_none(problem):
    kept = Kept()
    assert kept.at(0) == "t1"
    kept.problem = problem
    assert [kept.at(each) for each in (700, 709.9)] == ["t1", "t1"]
    assert len(kept.fetches) == 2
    assert kept.at(710) == "t1"
    assert len(kept.fetches) == 3
    assert kept.at(999.9) == "t1"
    with pytest.raises(type(problem)):
        kept.at(1000)
    assert kept.fetches[-1] == (SECONDS, True)
    kept.problem = None
    assert kept.at(1001) == f"t{len(kept.fetches)}"


def test_forgotten_token_is_fetched_again():
    kept = Kept()
    assert kept.at(0) == "t1"
    kept.forget()
    assert kept.at(1) == "t2"


def test_threads_fetch_one_token():
    fetches = []
    begun = threading.Barrier(8)

    def fetch(_timeout_seconds, _may_repeat):
        fetches.append(1)
        time.sleep(0.05)
        return Token("t", 1000.0)

    kept = KeptToken(Refresh(), fetch)

    def work():
        begun.wait(20)
        kept.token(SECONDS)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(fetches) == 1


def test_waiter_for_another_thread_has_its_own_timeout():
    begun, goes_on = threading.Event(), threading.Event()

    def fetch(_timeout_seconds, _may_repeat):
        begun.set()
        assert goes_on.wait(20)
        return Token("t", 1000.0)

    kept = KeptToken(Refresh(), fetch)
    thread = threading.Thread(target=kept.token, args=(SECONDS,))
    thread.start()
    assert begun.wait(20)
    with pytest.raises(TokenUnavailable, match="another login still waits"):
        kept.token(0.01)
    goes_on.set()
    thread.join()
    assert kept.token(0.01) == "t"


def test_copies_of_a_credential_share_a_token_as_sparks_tasks_do(server):
    settings = {"security.protocol": "SASL_PLAINTEXT"} | client_credentials(server.url)
    first = security_of(settings, {}).credential
    second = pickle.loads(pickle.dumps(security_of(settings, {}))).credential
    assert first == second
    assert first.exchange(SECONDS).first() == second.exchange(SECONDS).first()
    assert len(server.requests) == 1
    other = {"sasl.oauthbearer.scope": "another"}
    security_of(settings | other, {}).credential.exchange(SECONDS)
    assert len(server.requests) == 2
    first.refused()
    second.exchange(SECONDS)
    assert len(server.requests) == 3


def test_secrets_are_in_no_text(server):
    settings = client_credentials(server.url, are_in_jaas=True)
    security = security_of({"security.protocol": "SASL_PLAINTEXT"} | settings, {})
    credential = security.credential
    assert repr(credential) == f"Credential(OAUTHBEARER as {CLIENT_ID})"
    assert repr(credential.endpoint) == f"TokenEndpoint({server.url})"
    for each in (security, credential, credential.endpoint, credential.exchange(SECONDS)):
        assert "secret" not in f"{each!r}{each}"


def test_lifetime_of_a_jwt_is_recognized():
    assert token_request._lifetime_seconds({}, token("alice", lifetime_s=50)) == pytest.approx(
        50, abs=10
    )
