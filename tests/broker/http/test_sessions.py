"""Login with a browser: cookies and their conditions."""

from __future__ import annotations

import json
import re
from urllib.error import HTTPError
from urllib.request import Request as Asked

import pytest

from barnabas.broker.http.messages.request import Request
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import always
from barnabas.broker.security.principals import user
from barnabas.broker.security.web.sessions import (
    SESSION_SECONDS,
    SESSIONS_EACH_MAX,
    SESSIONS_MAX,
    HttpSessions,
)
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP
from tests.broker.security.access_users import ADMIN, PASSWORD, settings
from tests.http_client import urlopen

SESSION = "/api/v1/session"


def browser(host="localhost:9644", cookie="", **headers):
    return Request(
        "GET", ("api", "v1", "topics"), headers={"host": host, "cookie": cookie, **headers}
    )


def cookie_of(header):
    return header.partition(";")[0]


def test_a_session_is_over_in_time_or_when_its_login_is():
    clock, holds = ManualClock(), True
    sessions = HttpSessions(clock)
    cookie = cookie_of(sessions.begin(browser(), user("alice"), lambda: holds))
    assert sessions.of(browser(cookie=cookie)).principal == user("alice")
    clock.advance(seconds=SESSION_SECONDS - 1)
    assert sessions.of(browser(cookie=f"other=1; {cookie}")) is not None
    holds = False
    assert sessions.of(browser(cookie=cookie)) is None
    holds = True
    assert sessions.of(browser(cookie=cookie)) is None, "it does not come back"
    cookie = cookie_of(sessions.begin(browser(), user("alice"), always))
    clock.advance(seconds=SESSION_SECONDS + 1)
    assert sessions.of(browser(cookie=cookie)) is None


def test_a_cookie_is_of_one_port_and_cannot_be_read_by_scripts():
    sessions = HttpSessions(ManualClock())
    for host, name in (("a:1", "barnabas_1"), ("a", "barnabas_80"), ("[::1]:2", "barnabas_2")):
        header = sessions.begin(browser(host), None, always)
        assert re.fullmatch(
            rf"{name}=[\w-]{{43}}; Max-Age={SESSION_SECONDS}; Path=/; HttpOnly; SameSite=Strict",
            header,
        )
        assert sessions.of(browser("b:3", cookie_of(header))) is None
    assert sessions.begin(browser(origin="https://a"), None, always).endswith("; Secure")


def test_sessions_of_one_principal_end_none_of_another():
    sessions = HttpSessions(ManualClock())
    admin = cookie_of(sessions.begin(browser(), None, always))
    alice = cookie_of(sessions.begin(browser(), user("alice"), always))
    for _ in range(2 * SESSIONS_MAX):
        sessions.begin(browser(), user("mallory"), always)
    assert sessions.of(browser(cookie=admin)) is not None
    assert sessions.of(browser(cookie=alice)) is not None
    assert len(sessions._sessions) == SESSIONS_EACH_MAX + 2


def test_sessions_of_many_principals_end_those_of_the_one_with_most():
    sessions = HttpSessions(ManualClock())
    first = cookie_of(sessions.begin(browser(), user("mallory"), always))
    sessions.begin(browser(), user("mallory"), always)
    each = [
        cookie_of(sessions.begin(browser(), user(f"user-{number}"), always))
        for number in range(SESSIONS_MAX - 1)
    ]
    assert len(sessions._sessions) == SESSIONS_MAX
    assert sessions.of(browser(cookie=first)) is None
    assert all(sessions.of(browser(cookie=cookie)) for cookie in each)


def test_sessions_per_user_are_limited():
    sessions = HttpSessions(ManualClock())
    count = SESSIONS_EACH_MAX + 1
    cookies = [cookie_of(sessions.begin(browser(), None, always)) for _ in range(count)]
    assert sessions.of(browser(cookie=cookies[0])) is None
    assert sessions.of(browser(cookie=cookies[1])) is not None
    sessions.end(browser(cookie=cookies[1]))
    assert sessions.of(browser(cookie=cookies[1])) is None
    assert sessions.of(browser(cookie="barnabas_9644=")) is None


@pytest.fixture(scope="module")
def broker():
    with Broker(
        config={**HTTP, **settings([ADMIN]), "barnabas.http.bearer.token": "t0ken"}
    ) as each:
        yield each


def send(broker, method, path=SESSION, body=None, **headers):
    host, port = broker.server.http.address
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    asked = Asked(f"http://{host}:{port}{path}", data=data, headers=given, method=method)
    try:
        with urlopen(asked, timeout=60) as response:
            return response.status, response.headers, response.read()
    except HTTPError as refused:
        return refused.code, refused.headers, refused.read()


@pytest.mark.parametrize(("name", "password"), [(ADMIN, PASSWORD), ("", "t0ken")])
def test_in_and_out_again(broker, name, password):
    status, _, page = send(broker, "GET", "/topics")
    assert (status, b"<!doctype html>" in page) == (200, True), "the form has to be seen"
    status, headers, _ = send(broker, "GET", "/api/v1/topics", Sec_Fetch_Mode="cors")
    assert (status, headers["WWW-Authenticate"]) == (401, None), "a script draws its own form"
    status, headers, _ = send(broker, "GET", "/api/v1/topics")
    assert (status, bool(headers["WWW-Authenticate"])) == (401, True)

    status, headers, _ = send(broker, "POST", body={"user": name, "password": password})
    assert status == 200
    cookie = cookie_of(headers["Set-Cookie"])
    assert send(broker, "GET", "/api/v1/topics", Cookie=cookie)[0] == 200
    _, _, body = send(broker, "GET", Cookie=cookie)
    assert json.loads(body)["is_logged_in"] is True
    assert json.loads(body)["bootstrap"] == broker.bootstrap_servers
    status, headers, _ = send(broker, "DELETE", Cookie=cookie)
    assert (status, "Max-Age=0" in headers["Set-Cookie"]) == (204, True)
    assert send(broker, "GET", "/api/v1/topics", Cookie=cookie)[0] == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"user": ADMIN, "password": "wrong"}, 401),
        ({"user": "nobody", "password": PASSWORD}, 401),
        ({"user": "", "password": "wrong"}, 401),
        ({"user": ADMIN}, 400),
        ({"user": ADMIN, "password": ""}, 400),
        ({"user": 1, "password": PASSWORD}, 400),
        ({"user": ADMIN, "password": PASSWORD, "more": 1}, 400),
        ({"user": ADMIN, "password": "x" * 5000}, 400),
        ([], 400),
        ({"user": ADMIN, "password": "\ud800"}, 400),
        ({"user": "\ud800", "password": PASSWORD}, 400),
        ({"user": "", "password": "\ud800"}, 400),
    ],
)
def test_failed_login_gets_no_cookie(broker, body, status, caplog):
    failures = broker.server.sockets.failed_logins
    before = failures.count
    found, headers, _ = send(broker, "POST", body=body)
    assert (found, headers["Set-Cookie"]) == (status, None)
    assert failures.count == before + 1
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_cross_site_login_is_rejected(broker):
    body = {"user": ADMIN, "password": PASSWORD}
    assert send(broker, "POST", body=body, Sec_Fetch_Site="cross-site")[0] == 403
    assert send(broker, "POST", body=body, Origin="http://evil.example")[0] == 403
    assert send(broker, "POST", body=body, Content_Type="text/plain")[0] == 400
