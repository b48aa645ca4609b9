import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.http.message import (
    LAST_CHUNK,
    Answer,
    BadRequest,
    encode_head,
    encode_piece,
    parse_question,
    text,
)


def asked(*lines):
    return parse_question("\r\n".join([*lines, "", ""]).encode("latin-1"))


def test_a_scrape_of_prometheus():
    question = asked(
        "GET /metrics HTTP/1.1",
        "Host: localhost:9644",
        "User-Agent: Prometheus/3.7.1",
        "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4",
        "Accept-Encoding: gzip",
        "X-Prometheus-Scrape-Timeout-Seconds: 10",
    )
    assert (question.path, question.is_head, question.chunked) == ("/metrics", False, True)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/readyz/", "/readyz"),
        ("/readyz?verbose", "/readyz"),
        ("/%72eadyz", "/readyz"),
        ("http://broker:9644/readyz", "/readyz"),
        ("/../etc/passwd", "/../etc/passwd"),
    ],
)
def test_paths(target, path):
    assert asked(f"GET {target} HTTP/1.1").path == path


def test_an_old_client_gets_no_chunks():
    question = asked("HEAD /livez HTTP/1.0")
    assert (question.is_head, question.chunked) == (True, False)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["GET /metrics HTTP/2.0"], 400),
        (["GET  /metrics HTTP/1.1"], 400),
        (["GET /metrics"], 400),
        (["get /metrics HTTP/1.1"], 400),
        (["GET /%ff HTTP/1.1"], 400),
        (["GET http://[::1/ HTTP/1.1"], 400),
        (["GET / HTTP/1.1", "no colon"], 400),
        (["GET / HTTP/1.1", " folded: line"], 400),
        (["GET / HTTP/1.1", "a: b\nc: d"], 400),
        (["GET / HTTP/1.1", *["a: b"] * 65], 431),
        (["POST / HTTP/1.1"], 405),
        (["GET / HTTP/1.1", "Content-Length: 5"], 413),
        (["GET / HTTP/1.1", "Transfer-Encoding: chunked"], 413),
        (["\0\0\0\x2a\0\x12\0\x04"], 400),
    ],
    ids=lambda value: value if isinstance(value, int) else value[-1][:24].encode().hex(),
)
def test_what_is_not_plainly_right_is_refused(lines, status):
    with pytest.raises(BadRequest) as caught:
        asked(*lines)
    assert caught.value.status == status


@given(st.binary(max_size=300))
def test_any_bytes_are_a_question_or_refused(head):
    try:
        question = parse_question(head)
    except BadRequest as error:
        refused = error
    else:
        assert head.startswith((b"GET ", b"HEAD "))
        assert isinstance(question.path, str)
        return
    assert 400 <= refused.status < 500


def test_an_answer_on_the_wire():
    answer = text(405, "only GET", {"Allow": "GET"})
    assert encode_head(answer, chunked=True) == (
        b"HTTP/1.1 405 Method Not Allowed\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Cache-Control: no-store\r\n"
        b"X-Content-Type-Options: nosniff\r\n"
        b"Connection: close\r\n"
        b"Allow: GET\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    assert b"chunked" not in encode_head(Answer(200, "text/plain", ()), chunked=False)


def test_pieces():
    assert encode_piece("é" * 8, chunked=True) == b"10\r\n" + "é".encode() * 8 + b"\r\n"
    assert encode_piece("ab", chunked=False) == b"ab"
    assert encode_piece("", chunked=True) == b"" != LAST_CHUNK
