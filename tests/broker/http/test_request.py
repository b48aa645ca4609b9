"""Requests over HTTP/1: what is understood, what is refused, and that h11 agrees."""

from types import SimpleNamespace

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.http.messages.request import (
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    BadRequest,
    RequestReader,
)


def read(data, *, pieces=1):
    """The first request of some bytes, received in pieces."""
    reader = RequestReader()
    size = max(1, -(-len(data) // pieces))
    for start in range(0, len(data), size):
        reader.receive(data[start : start + size])
        request = reader.next_request()
        if request is not None:
            return request
    return None


def asked(*lines, body=b""):
    return read("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


def test_a_scrape_of_prometheus():
    request = asked(
        "GET /metrics HTTP/1.1",
        "Host: localhost:9644",
        "User-Agent: Prometheus/3.7.1",
        "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4",
        "Accept-Encoding: gzip",
    )
    assert (request.method, request.path, request.keeps_alive) == ("GET", "/metrics", True)
    assert request.headers["host"] == "localhost:9644"


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("/", ()),
        ("/readyz/", ("readyz",)),
        ("/%72eadyz", ("readyz",)),
        ("http://broker:9644/readyz", ("readyz",)),
        ("http://broker:9644", ()),
        ("/../etc/passwd", ("..", "etc", "passwd")),
        # A name with a slash is one part of the path.
        ("/groups/a%2Fb", ("groups", "a/b")),
        ("/groups/%E2%82%AC", ("groups", "€")),
    ],
)
def test_paths(target, parts):
    assert asked(f"GET {target} HTTP/1.1").parts == parts


@pytest.mark.parametrize(
    ("target", "query"),
    [
        ("/readyz?verbose", {"verbose": ""}),
        ("/topics?filter=a%20b&limit=5", {"filter": "a b", "limit": "5"}),
        ("/topics?a=1&a=2", {"a": "2"}),
        ("/topics?", {}),
    ],
)
def test_queries(target, query):
    assert asked(f"GET {target} HTTP/1.1").query == query


def test_old_clients_and_those_that_close():
    assert not asked("HEAD /livez HTTP/1.0").keeps_alive
    assert not asked("GET /livez HTTP/1.1", "Connection: Close").keeps_alive
    assert asked("GET /livez HTTP/1.1", "Connection: keep-alive").keeps_alive


def test_bodies_and_what_follows_them():
    reader = RequestReader()
    reader.receive(b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel")
    assert reader.next_request() is None
    assert reader.has_begun
    reader.receive(b"loGET /b HTTP/1.1\r\n\r\n")
    first = reader.next_request()
    assert (first.method, first.path, first.body) == ("POST", "/a", b"hello")
    assert reader.next_request().path == "/b"
    assert not reader.has_begun
    assert reader.next_request() is None


def test_client_awaits_permission_before_the_body():
    reader = RequestReader()
    reader.receive(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert reader.next_request() is None
    assert reader.awaits_permission
    reader.receive(b"ab")
    assert reader.next_request().body == b"ab"
    assert not reader.awaits_permission


def test_cookies():
    request = asked("GET / HTTP/1.1", "Cookie: a=1; b=x=y; novalue")
    assert request.cookies == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET /metrics HTTP/2.0"], 400),
        (["GET  /metrics HTTP/1.1"], 400),
        (["GET /metrics"], 400),
        (["get /metrics HTTP/1.1"], 400),
        (["GET /%ff HTTP/1.1"], 400),
        (["GET /a%00b HTTP/1.1"], 400),
        (["GET http://[::1/ HTTP/1.1"], 400),
        (["GET * HTTP/1.1"], 400),
        (["GET a HTTP/1.1"], 400),
        (["GET /a\x0fb HTTP/1.1"], 400),
        (["GET / HTTP/1.1", "a:\x0b b"], 400),
        (["GET / HTTP/1.1", "a: b\x7f"], 400),
        (["GET /?" + "&a=b" * 65 + " HTTP/1.1"], 400),
        (["GET / HTTP/1.1", "no colon"], 400),
        (["GET / HTTP/1.1", " folded: line"], 400),
        (["GET / HTTP/1.1", "a: b\nc: d"], 400),
        (["GET / HTTP/1.1", "a : b"], 400),
        (["GET / HTTP/1.1", "Host: a", "Host: b"], 400),
        (["GET / HTTP/1.1", *["a: b"] * 65], 431),
        (["BREW / HTTP/1.1"], 405),
        (["POST / HTTP/1.1", "Content-Length: 5", "Content-Length: 6"], 400),
        (["POST / HTTP/1.1", "Content-Length: +5"], 400),
        (["POST / HTTP/1.1", "Content-Length: 5, 5"], 400),
        (["POST / HTTP/1.1", f"Content-Length: {BODY_BYTES_MAX + 1}"], 413),
        (["POST / HTTP/1.1", "Transfer-Encoding: chunked"], 501),
        (["POST / HTTP/1.1", "Transfer-Encoding: x", "Content-Length: 1"], 501),
        (["\0\0\0\x2a\0\x12\0\x04"], 400),
    ],
    ids=lambda value: value if isinstance(value, int) else value[-1][:24].encode().hex(),
)
def test_malformed_request_is_rejected(lines, status):
    with pytest.raises(BadRequest) as caught:
        asked(*lines)
    assert caught.value.status == status


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_a_head_has_a_limit(end):
    with pytest.raises(BadRequest) as caught:
        read(b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX + end)
    assert caught.value.status == 431


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(data):
    refused = None
    try:
        request = read(data)
    except BadRequest as error:
        refused = error.status
    else:
        assert request is None or request.path.startswith("/")
    assert refused is None or 400 <= refused < 600


# ----------------------------------------------------------------------------- what h11 says of it

TOKENS = st.sampled_from(["a", "X-Y", "Host", "Content-Length", "content-length", "Accept", "A b"])
VALUES = st.sampled_from(["", "x", "5", "05", " 5 ", "5,5", "-1", "a\tb", "é", "chunked", "\x00"])
HEADERS = st.lists(st.tuples(TOKENS, VALUES), max_size=4)
TARGETS = st.sampled_from(["/", "/a?b=c", "/%20", "http://h/x", "a", "/a b", "*", ""])
METHODS = st.sampled_from(["GET", "POST", "HEAD", "get", "G T"])
VERSIONS = st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", ""])
ENDS = st.sampled_from(["\r\n", "\n", "\r\n "])


@given(METHODS, TARGETS, VERSIONS, HEADERS, ENDS, st.binary(max_size=12), st.integers(1, 9))
def test_parsed_request_equals_that_of_h11(method, target, version, headers, end, body, pieces):
    lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in headers)]
    data = end.join([*lines, "", ""]).encode("latin-1") + body
    try:
        ours = read(data, pieces=pieces)
    except BadRequest:
        return  # We may be stricter.
    if ours is None:
        return
    theirs, their_body = h11_reads(data)
    assert theirs.method.decode() == ours.method
    assert theirs.http_version == (b"1.0" if ours.is_old else b"1.1")
    by_name = {}
    for name, value in theirs.headers:
        text = value.decode("latin-1")
        key = name.decode().lower()
        by_name[key] = f"{by_name[key]}, {text}" if key in by_name else text
    assert by_name == ours.headers
    assert their_body == ours.body


def h11_reads(data):
    connection = h11.Connection(h11.SERVER)
    # It insists on a Host that HTTP/1.1 must have and that programs forget.
    head, _, rest = data.partition(b"\r\n\r\n")
    if b"\r\nhost:" not in head.lower():
        added = b"\r\nHost: added"
        connection.receive_data(head + added + b"\r\n\r\n" + rest)
    else:
        connection.receive_data(data)
    request = connection.next_event()
    assert isinstance(request, h11.Request), request
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += bytes(event.data)
    headers = [(name, value) for name, value in request.headers if value != b"added"]
    return SimpleNamespace(
        method=request.method, http_version=request.http_version, headers=headers
    ), body
