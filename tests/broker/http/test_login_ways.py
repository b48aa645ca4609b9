"""Whether a login at the console can succeed, in the log and in the API."""

from __future__ import annotations

import json
import logging

import pytest

from barnabas.broker.config.security import STANDARD_AUTHORIZER
from barnabas.broker.daemon import console_lines
from barnabas.broker.http.messages.request import Request
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.web.guard import is_local_name
from barnabas.broker.security.web.login import PLAIN_HTTP
from barnabas.broker.security.web.login_ways import NO_WAY, NO_WAY_TO_PAGES, LoginWays
from barnabas.testing import Broker
from tests.broker.http.test_login import NO_PASSWORDS, login
from tests.broker.http.test_server import ask
from tests.broker.security.access_users import ADMIN, settings

BOTH_LOOPS = True
EVERYWHERE = {"barnabas.http.listener": "0.0.0.0:0"}
LOOPBACK = {"barnabas.http.listener": "127.0.0.1:0"}
TOKEN = {"barnabas.http.bearer.token": "t0ken"}
ACLS_ONLY = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
READ_ONLY = "the console is read-only: others can reach this port"


@pytest.mark.parametrize(
    ("token", "passwords", "names", "challenge", "advice"),
    [
        (True, True, ["token", "password"], "Basic ", "as a user"),
        (True, False, ["token"], "Bearer ", "the bearer token"),
        (False, True, ["password"], "Basic ", "as a user"),
        (False, False, [], "Bearer ", NO_WAY),
    ],
)
def test_login_ways_are_those_configured(token, passwords, names, challenge, advice):
    ways = LoginWays(has_token=token, has_passwords=passwords)
    assert ways.names == names
    assert ways.challenge.startswith(challenge)
    assert advice in ways.advice
    assert ways.closed_reason == (None if names else NO_WAY)


@pytest.mark.parametrize(
    ("config", "logged", "status", "logins"),
    [
        (EVERYWHERE, NO_WAY, 401, []),
        (EVERYWHERE | TOKEN, READ_ONLY, 401, ["token"]),
        (EVERYWHERE | settings([ADMIN]), None, 401, ["password"]),
        (EVERYWHERE | settings([ADMIN]) | TOKEN, None, 401, ["token", "password"]),
        (EVERYWHERE | {"barnabas.console.access": "write"}, NO_WAY, 401, []),
        (EVERYWHERE | {"barnabas.console.access": "none"}, NO_WAY_TO_PAGES, 401, []),
        (LOOPBACK, None, 200, None),
        (LOOPBACK | ACLS_ONLY, NO_WAY, 401, []),
        (LOOPBACK | ACLS_ONLY | TOKEN, None, 401, ["token"]),
        (LOOPBACK | ACLS_ONLY | {"barnabas.console.access": "none"}, None, 404, None),
    ],
    ids=[
        "everywhere", "everywhere-token", "everywhere-users", "everywhere-both",
        "everywhere-write", "everywhere-no-console", "loopback", "loopback-acls",
        "loopback-acls-token", "loopback-acls-no-console",
    ],
)  # fmt: skip
async def test_log_and_api_say_whether_a_login_can_succeed(config, logged, status, logins, caplog):
    caplog.set_level(logging.INFO)
    async with Broker(config=config) as broker:
        warnings = [each for each in caplog.messages if "console" in each or "/metrics" in each]
        assert [each.startswith(logged or "") for each in warnings] == [True] * bool(logged)
        shows_console = config.get("barnabas.console.access") != "none"
        is_open = shows_console and logged != NO_WAY
        port = broker.server.http.address[1]
        expected = [f"console on http://localhost:{port}/"] if is_open else []
        assert console_lines(broker.server) == expected

        head = b"GET /api/v1/session HTTP/1.0\r\nHost: localhost\r\nSec-Fetch-Mode: cors\r\n\r\n"
        answer = await ask(("127.0.0.1", port), head)
        assert int(answer.split()[1]) == status
        if status == 401:
            body = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert body["error"] == "SASL_AUTHENTICATION_FAILED"
            assert body["logins"] == logins
            assert (body["message"] == NO_WAY) == (logins == [])


def asked(host, *, method="GET", body=b"", **headers):
    given = {"host": host, "content-type": "application/json", **headers}
    return Request(method, ("api", "v1", "session"), headers=given, body=body)


@pytest.mark.parametrize(
    ("host", "peer", "headers", "is_safe"),
    [
        ("localhost:9644", "172.17.0.1", {}, True),
        ("127.0.0.1:9644", "172.17.0.1", {}, True),
        ("[::1]:9644", "172.17.0.1", {}, True),
        ("broker.localhost", "172.17.0.1", {}, True),
        ("broker.example:9644", "127.0.0.1", {}, True),
        ("broker.example", "10.0.0.9", {"origin": "https://broker.example"}, True),
        ("broker.example:9644", "10.0.0.9", {}, False),
        ("10.0.0.1:9644", "10.0.0.9", {}, False),
        ("", "10.0.0.9", {}, False),
    ],
)
async def test_session_begins_where_the_token_is_safe_on_its_way(host, peer, headers, is_safe):
    door = login(passwords=NO_PASSWORDS)
    body = b'{"user": "", "password": "t0ken"}'
    answer = door.session(asked(host, method="POST", body=body, **headers), peer)
    assert answer.status == (200 if is_safe else 403)
    refused = json.loads(door.judge(asked(host, **headers), peer).body[0])
    assert refused["logins"] == (["token"] if is_safe else [])
    if not is_safe:
        assert json.loads(answer.body[0])["message"] == refused["message"] == PLAIN_HTTP


async def test_session_is_refused_with_the_reason_where_every_login_fails():
    door = login(token=None, passwords=NO_PASSWORDS)
    body = b'{"user": "alice", "password": "secret"}'
    answer = door.session(asked("localhost", method="POST", body=body), "127.0.0.1")
    assert answer.status == 403
    assert json.loads(answer.body[0])["message"] == NO_WAY
    assert door.session(asked("localhost", method="DELETE"), "127.0.0.1").status == 204


async def test_user_without_any_passwords_is_referred_to_the_token():
    door = login(passwords=NO_PASSWORDS)
    body = b'{"user": "alice", "password": "secret"}'
    answer = door.session(asked("localhost", method="POST", body=body), "127.0.0.1")
    assert answer.status == 400
    assert "barnabas.http.bearer.token, without a user" in json.loads(answer.body[0])["message"]


async def test_token_is_accepted_by_any_name():
    door = login(passwords=NO_PASSWORDS)
    request = asked("broker.example", authorization="Bearer t0ken")
    assert isinstance(door.judge(request, "10.0.0.9"), Access)


@pytest.mark.parametrize("host", ["", "localhost.example", "127.0.0.1.example", "[", "10.0.0.1"])
def test_name_of_another_machine_is_not_local(host):
    assert not is_local_name(host)
