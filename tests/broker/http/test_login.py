"""Access over HTTP with a token, or if other machines can reach the port."""

import asyncio
import base64
import json
from typing import ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.config.types import ConfigError
from barnabas.broker.http.messages.answer import Answer, text
from barnabas.broker.http.messages.request import Request
from barnabas.broker.http.site import Doors, Site
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import Access, Generation, always
from barnabas.broker.security.acls.operations import Operation
from barnabas.broker.security.sasl.failed_logins import FailedLogins
from barnabas.broker.security.sasl.passwords import Passwords
from barnabas.broker.security.web import login as module
from barnabas.broker.security.web.guard import HostCheck
from barnabas.broker.security.web.login import HttpLogin, is_loopback
from barnabas.testing import Broker
from tests.broker.http.test_server import ask
from tests.waiting import until

BOTH_LOOPS = True
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Users:
    """Two users, and the largest number of concurrent lookups."""

    passwords: ClassVar = {"alice": "secret", "bob": "b"}

    def __init__(self):
        self.at_once = self.most_at_once = 0

    async def verify(self, name, password):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return always if self.passwords.get(name) == password else None


class OnlyAlice:
    """Lets one user do everything, another describe only."""

    def may(self, principal, host, operation, resource_type, name, *, quiet):
        return principal == "User:alice" or operation is Operation.DESCRIBE


class Audit:
    def __init__(self):
        self.failed = []
        self.logins = []

    def logged_in(self, principal, host, listener, mechanism):
        self.logins.append((principal, host, listener, mechanism))

    def login_failed(self, user, host, listener, mechanism, reason):
        self.failed.append((user, host, listener, mechanism))


NO_PASSWORDS = Passwords([], [])


def login(
    token="t0ken",
    passwords=None,
    audit=None,
    *,
    per_address=100,
    is_recovered=True,
    clock=None,
    delay_ms=0,
):
    clock = clock or ManualClock()
    return HttpLogin(
        clock=clock,
        token=token,
        passwords=Users() if passwords is None else passwords,
        failed_logins=FailedLogins(clock, per_address=per_address, held_back=4, delay_ms=delay_ms),
        new_access=lambda who, host: Access(str(who), host, OnlyAlice(), Generation()),
        audit=audit or Audit(),
        is_recovered=lambda: is_recovered,
    )


def request(path="metrics", authorization=None):
    headers = {} if authorization is None else {"authorization": authorization}
    return Request("GET", (path,), headers=headers)


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


async def judged(door, asked, host="10.0.0.1"):
    verdict = door.judge(asked, host)
    return verdict if isinstance(verdict, Answer | Access) else await verdict


async def status(door, asked):
    verdict = await judged(door, asked)
    return verdict.status if isinstance(verdict, Answer) else 200


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (None, 401),
        ("Bearer t0ken", 200),
        ("bearer  t0ken", 200),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Bearer tökén", 401),
        (basic("alice:secret"), 200),
        (basic("alice:wrong"), 401),
        (basic("nobody:secret"), 401),
        (basic("alice:"), 401),
        (basic(":secret"), 401),
        (basic("alice"), 401),
        ("Basic !!!", 401),
        ("Basic " + "A" * 5000, 401),
        ("Digest x", 401),
    ],
)
async def test_valid_credentials_are_accepted(authorization, expected):
    assert await status(login(), request(authorization=authorization)) == expected


HEADER_PIECES = st.sampled_from(
    ["Bearer ", "Basic ", "basic", " ", "t0ken", "t0ke", basic("alice:wrong")[6:], ":", "=", "\xff"]
)


@given(st.lists(HEADER_PIECES, max_size=6).map("".join) | st.text(st.characters(max_codepoint=255)))
def test_random_header_is_rejected(authorization):
    scheme, _, credentials = authorization.partition(" ")
    assume((scheme.lower(), credentials.strip()) != ("bearer", "t0ken"))
    assert asyncio.run(status(login(), request(authorization=authorization))) == 401


@pytest.mark.parametrize("path", ["livez", "readyz", "health", "healthz"])
async def test_probes_need_not_prove_anything(path):
    assert await status(login(token=None, passwords=NO_PASSWORDS), request(path)) == 200


async def test_a_user_needs_a_right_for_each_page():
    pages = {f"/{name}": lambda: text(200, "here") for name in ("metrics", "config")}
    site = Site(pages, HostCheck(()), Doors(pages=login()))
    for page, pair, expected in (
        ("metrics", "bob:b", 200),
        ("config", "bob:b", 403),
        ("config", "alice:secret", 200),
    ):
        answer = await site.answer(request(page, basic(pair)), "10.0.0.1")
        assert (page, pair, answer.status) == (page, pair, expected)


async def test_failed_login_names_the_remedy_and_is_audited():
    answer = await judged(login(token=None, passwords=NO_PASSWORDS), request())
    assert answer.status == 401
    assert "barnabas.http.bearer.token" in answer.body[0]
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    audit = Audit()
    await judged(login(audit=audit), request(authorization=basic("bob:x")))
    await judged(login(audit=audit), request(authorization="Bearer x"))
    assert audit.failed == [
        ("bob", "10.0.0.1", "http", "password"),
        ("", "10.0.0.1", "http", "token"),
    ]


async def test_login_is_audited_once_an_hour():
    audit, clock = Audit(), ManualClock()
    door = login(audit=audit, clock=clock)
    expected = [
        ("User:alice", "10.0.0.1", "http", "password"),
        ("User:ANONYMOUS", "10.0.0.1", "http", "token"),
        ("User:bob", "10.0.0.1", "http", "password"),
    ]
    for _ in range(3):
        for authorization in (basic("alice:secret"), "Bearer t0ken", basic("bob:b")):
            assert await status(door, request(authorization=authorization)) == 200
        assert await status(door, request(authorization=basic("alice:x"))) == 401
        assert await status(door, request("livez")) == 200
        clock.advance(seconds=1000)
    assert audit.logins == expected
    await judged(door, request(authorization="Bearer t0ken"), "10.0.0.2")
    assert audit.logins[3:] == [("User:ANONYMOUS", "10.0.0.2", "http", "token")]
    clock.advance(seconds=module.NOTED_AGAIN_S - 3000)
    await judged(door, request(authorization=basic("alice:secret")))
    assert audit.logins[4:] == expected[:1]


async def test_number_of_remembered_logins_is_limited(monkeypatch):
    monkeypatch.setattr(module, "NOTED_MAX", 2)
    audit = Audit()
    door = login(audit=audit)
    for number in range(9):
        await judged(door, request(authorization="Bearer t0ken"), f"10.1.0.{number}")
    assert len(door._noted) == 2
    assert len(audit.logins) == 9


async def test_guessing_in_parallel_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "ATTEMPTS_MAX", 4)
    users = Users()
    door = login(passwords=users)
    asked = [judged(door, request(authorization=basic(f"alice:{n}"))) for n in range(40)]
    answers = await asyncio.gather(*asked)
    assert users.most_at_once <= 4
    assert {answer.status for answer in answers} == {401, 429}
    assert await status(door, request(authorization=basic("alice:secret"))) == 200


async def test_failed_logins_per_address_are_limited():
    door = login(per_address=2)
    assert await status(door, request(authorization="Bearer x")) == 401
    assert await status(door, request(authorization=basic("alice:x"))) == 401
    assert await status(door, request(authorization="Bearer y")) == 429
    assert await status(door, request(authorization=basic("alice:secret"))) == 429
    assert await status(door, request("livez")) == 200


@pytest.mark.parametrize("authorization", ["Bearer x", basic("alice:x"), basic("nobody:x")])
async def test_failed_login_is_answered_after_a_delay(authorization):
    clock = ManualClock()
    door = login(clock=clock, delay_ms=1000)
    waiting = asyncio.ensure_future(status(door, request(authorization=authorization)))
    await until(lambda: door._failed_logins.count)
    clock.advance(seconds=0.9)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    clock.advance(seconds=0.2)
    assert await waiting == 401


async def test_right_token_and_sessions_pass_while_an_address_is_locked_out():
    door = login(per_address=1)
    found, cookie = await session_status(door, {"user": "alice", "password": "secret"})
    assert found == 200
    assert await status(door, request(authorization="Bearer x")) == 401
    assert await status(door, request(authorization=basic("alice:secret"))) == 429
    assert await status(door, request(authorization="Bearer t0ken")) == 200
    assert (await session_status(door, {"user": "", "password": "t0ken"}))[0] == 200
    headers = {"cookie": cookie.partition(";")[0]}
    assert await status(door, Request("GET", ("metrics",), headers=headers)) == 200


async def test_wrong_session_logins_lock_an_address_out():
    door = login(per_address=2)
    for expected in (401, 401, 429):
        assert (await session_status(door, {"user": "alice", "password": "x"}))[0] == expected
    assert (await session_status(door, {"user": "alice", "password": "secret"}))[0] == 429
    assert (await session_status(door, {"user": "", "password": "wrong"}))[0] == 429


async def session_status(door, body):
    """Post a body, JSON or bytes, from this machine; return the status and the cookie."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    asked = Request("POST", ("api", "v1", "session"), headers=headers, body=data)
    answer = door.session(asked, "127.0.0.1")
    answer = answer if isinstance(answer, Answer) else await answer
    return answer.status, answer.headers.get("Set-Cookie")


@pytest.mark.parametrize(
    "body",
    [
        b'{"user": "alice", "password": "\\ud800"}',
        b'{"user": "\\ud800", "password": "secret"}',
        b'{"user": "", "password": "\\udfff"}',
        b'{"user": "", "password": "t0ken\\ud800"}',
        b"not JSON",
        b"[" * 2000,
    ],
)
@pytest.mark.parametrize("passwords", [None, NO_PASSWORDS])
async def test_login_body_that_is_no_text_is_refused_and_counts(body, passwords):
    audit = Audit()
    door = login(audit=audit, per_address=2, passwords=passwords)
    assert (await session_status(door, body))[0] == 400
    assert len(audit.failed) == 1
    assert (await session_status(door, body))[0] == 400
    assert (await session_status(door, body))[0] == 429


async def test_failures_over_http_and_on_listeners_are_limited_apart():
    listeners = FailedLogins(ManualClock(), per_address=2, held_back=4, delay_ms=1)
    http = listeners.apart()
    for _ in range(5):
        http.failed("127.0.0.1")
    assert not http.may_try("127.0.0.1")
    assert listeners.may_try("127.0.0.1")
    listeners.failed("127.0.0.2")
    assert http.may_try("127.0.0.2")
    assert listeners.count == 6


async def test_users_are_not_known_before_recovery_but_the_token_is():
    door = login(is_recovered=False)
    assert await status(door, request(authorization=basic("alice:secret"))) == 503
    assert await status(door, request(authorization="Bearer t0ken")) == 200


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["127.0.0.1"], True),
        (["127.0.0.1", "::1"], True),
        (["0.0.0.0", "::"], False),
        (["127.0.0.1", "10.0.0.1"], False),
    ],
)
def test_loopback_addresses_are_recognized(addresses, expected):
    assert is_loopback(addresses) is expected


@pytest.mark.parametrize(
    ("host", "token", "statuses"),
    [
        ("0.0.0.0", "t0ken", (401, 200)),
        ("0.0.0.0", None, (401, 401)),
        ("127.0.0.1", "t0ken", (401, 200)),
        ("127.0.0.1", None, (200, 200)),
    ],
)
async def test_a_token_is_asked_for_and_so_is_who_comes_from_elsewhere(host, token, statuses):
    config = {"barnabas.http.listener": f"{host}:0"}
    if token:
        config["barnabas.http.bearer.token"] = token
    async with Broker(config=config) as broker:
        port = broker.server.http.address[1]
        found = []
        for headers in ("", f"Authorization: Bearer {token}\r\n"):
            head = f"GET /config HTTP/1.0\r\n{headers}\r\n"
            answer = await ask(("127.0.0.1", port), head.encode())
            found.append(int(answer.split()[1]))
        assert tuple(found) == statuses
        ready = await ask(("127.0.0.1", port), b"GET /readyz HTTP/1.0\r\n\r\n")
        assert json.loads(ready.partition(b"\r\n\r\n")[2])["status"] == "ok"


def test_a_token_that_is_empty_stops_the_start():
    """An empty token would match a request with an empty Bearer token."""
    with pytest.raises(ConfigError, match=r"configuration barnabas\.http\.bearer\.token"):
        load_config(overrides=["barnabas.http.bearer.token="])


async def test_users_of_sasl_listeners_log_in():
    jaas = f'{PLAIN_LOGIN} required user_alice="a" user_bob="b";'
    config = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "barnabas.scram.credentials": "SCRAM-SHA-256=[name=carol,password=c]",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:alice;User:carol",
        "barnabas.http.listener": "0.0.0.0:0",
        "connection.failed.authentication.delay.ms": "1",
    }
    async with Broker(config=config) as broker:
        address = ("127.0.0.1", broker.server.http.address[1])
        expected = {"alice:a": 200, "bob:b": 403, "carol:c": 200, "carol:a": 401, "dave:d": 401}
        for pair, code in expected.items():
            head = f"GET /metrics HTTP/1.0\r\nAuthorization: {basic(pair)}\r\n\r\n"
            answer = await ask(address, head.encode())
            assert (pair, int(answer.split()[1])) == (pair, code)


async def test_a_name_that_suddenly_stands_for_this_machine():
    """DNS rebinding: the attacker's page asks its own name, which is 127.0.0.1 by now."""
    async with Broker(config={"barnabas.http.listener": "127.0.0.1:0"}) as broker:
        address = broker.server.http.address
        for path in ("/config", "/metrics", "/", "/api/v1/topics"):
            for host, expected in (("attacker.example", b"421"), ("localhost", b"200")):
                head = f"GET {path} HTTP/1.0\r\nHost: {host}:{address[1]}\r\n\r\n"
                assert (await ask(address, head.encode())).split()[1] == expected


@pytest.mark.parametrize(
    ("host", "name", "expected"),
    [
        ("127.0.0.1", "localhost", 200),
        ("127.0.0.1", "127.0.0.1", 200),
        ("127.0.0.1", "prometheus-target", 421),
        ("127.0.0.1", "allowed.example", 200),
        ("0.0.0.0", "broker-1", 200),
        ("0.0.0.0", "10.244.0.7", 200),
    ],
    ids=["localhost", "address", "other-name", "allowed", "compose-service", "pod-address"],
)
async def test_prometheus_reads_metrics_by_the_names_that_it_uses(host, name, expected):
    config = {
        "barnabas.http.listener": f"{host}:0",
        "barnabas.http.allowed.hosts": "allowed.example",
        "barnabas.http.bearer.token": "t0ken",
    }
    async with Broker(config=config) as broker:
        port = broker.server.http.address[1]
        for token, code in (("t0ken", expected), ("", min(expected + 201, 421))):
            head = f"GET /metrics HTTP/1.0\r\nHost: {name}:{port}\r\n"
            head += f"Authorization: Bearer {token}\r\n" if token else ""
            answer = await ask(("127.0.0.1", port), f"{head}\r\n".encode())
            assert int(answer.split()[1]) == code
