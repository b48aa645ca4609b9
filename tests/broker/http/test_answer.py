"""Answers over HTTP/1, as they are written."""

import gc
import json

import pytest

from barnabas.broker.http.messages.answer import LAST_CHUNK, Answer, Framing, json_answer, text


def test_an_answer_on_the_wire():
    answer = text(405, "only GET", {"Allow": "GET"})
    assert Framing(keeps_alive=False).head(answer, 9) == (
        b"HTTP/1.1 405 Method Not Allowed\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Cache-Control: no-store\r\n"
        b"X-Content-Type-Options: nosniff\r\n"
        b"Referrer-Policy: no-referrer\r\n"
        b"Cross-Origin-Resource-Policy: same-origin\r\n"
        b"Allow: GET\r\n"
        b"Content-Length: 9\r\n"
        b"Connection: close\r\n\r\n"
    )


def test_a_body_whose_length_is_not_known():
    framing = Framing(keeps_alive=True)
    framing.chunked = True
    head = framing.head(Answer(200, "text/plain", iter(())), None)
    assert b"Transfer-Encoding: chunked\r\n" in head
    assert b"Connection: keep-alive\r\n" in head
    assert framing.piece("é" * 8) == b"10\r\n" + "é".encode() * 8 + b"\r\n"
    assert framing.piece(b"") == b""
    assert framing.end == LAST_CHUNK


def test_an_old_client_gets_no_chunks():
    framing = Framing(keeps_alive=False)
    assert b"chunked" not in framing.head(Answer(200, "text/plain", iter(())), None)
    assert framing.piece("ab") == b"ab"
    assert framing.end == b""


@pytest.mark.parametrize(
    "content",
    [
        {"status": "ok", "checks": [{"name": "disk", "is_well": True}, {}], "none": None},
        [[], {}, [1, 2.5, "ä\n"], (False,)],
        "text",
        {},
    ],
)
def test_json_answer_is_indented_and_leaves_no_cycle(content):
    gc.collect()
    answer = json_answer(200, content)
    assert gc.collect() == 0
    assert answer.body == (json.dumps(content, indent=2) + "\n",)
