"""Requests that a foreign web page could make a browser send."""

import pytest

from barnabas.broker.http.messages.request import BadRequest, Request
from barnabas.broker.security.web.guard import HostCheck, check_origin

CHECK = HostCheck(["broker.example", "Kafka-1.", ""])


def request(path="config", method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, tuple(path.split("/")), headers=named)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:9644",
        "LOCALHOST",
        "barnabas.localhost:1",
        "127.0.0.1:9644",
        "10.1.2.3",
        "[::1]:9644",
        "[fe80::1]",
        "broker.example:9644",
        "BROKER.example.",
        "kafka-1",
    ],
)
def test_names_that_are_known(host):
    CHECK.check(request(host=host))


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:9644",
        "localhost.attacker.example",
        "notlocalhost",
        "127.0.0.1.attacker.example",
        "127.1",
        "",
        ":9644",
        "[::1",
        "[::1].evil.example",
        "[::1].evil.example:9644",
        "[::1]evil",
        "[[::1]]",
        "[localhost].evil.example",
        "localhost:evil",
        "localhost:9644:1",
        "127.0.0.1:9644.evil.example",
        "broker.example.attacker.example",
    ],
)
def test_names_that_are_not(host):
    with pytest.raises(BadRequest) as caught:
        CHECK.check(request(host=host))
    assert caught.value.status == 421
    assert "barnabas.http.allowed.hosts" in str(caught.value)


@pytest.mark.parametrize("path", ["livez", "readyz", "health", "healthz"])
def test_probes_may_use_any_name(path):
    CHECK.check(request(path, host="pod-7.service.example"))


def test_metrics_need_a_known_name_unless_others_reach_the_port():
    named = request("metrics", host="broker-1:9644")
    with pytest.raises(BadRequest) as caught:
        CHECK.check(named)
    assert caught.value.status == 421
    reached = HostCheck([], metrics_by_any_name=True)
    reached.check(named)
    with pytest.raises(BadRequest):
        reached.check(request("config", host="broker-1:9644"))


def test_a_program_that_names_no_host():
    CHECK.check(request())


def test_a_name_cannot_forge_lines():
    with pytest.raises(BadRequest) as caught:
        CHECK.check(request(host="x\u2028\x1b[2J" + "y" * 1000))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site", "origin": "http://localhost:9644"}, False),
        ({"origin": "http://localhost:9644", "host": "localhost:9644"}, True),
        ({"origin": "http://localhost:9645", "host": "localhost:9644"}, False),
        ({"origin": "https://attacker.example", "host": "localhost:9644"}, False),
        ({"origin": "null", "host": "localhost:9644"}, False),
    ],
)
def test_a_page_of_another_site_changes_nothing_and_searches_nothing(headers, allowed):
    check_origin(request(method="GET", **headers))
    for asked in (request(method="POST", **headers), request("api", method="GET", **headers)):
        if allowed:
            check_origin(asked)
        else:
            with pytest.raises(BadRequest) as caught:
                check_origin(asked)
            assert caught.value.status == 403
