"""Requests that are nearly right, over whole connections: h11 takes what we take, as we take it.

Two servers that read the same bytes as different requests are how requests are smuggled. What we
refuse is refused with a status, and the connection is closed: where the next request would begin is
not known.
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote_to_bytes

import h11
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.broker.http import connection as module
from barnabas.broker.http.connection import HttpConnection
from barnabas.broker.http.messages.answer import text
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.broker.runtime.clock import SystemClock
from tests.waiting import until

RIGHT = [
    b"GET /api/v1/topics?filter=a%2Fb&limit=10 HTTP/1.1\r\nHost: localhost:9644\r\n\r\n",
    b"GET /api/v1/groups/a%2Fb HTTP/1.0\r\nhost: x\r\nConnection: keep-alive\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: x\r\nCookie: a=1; b=2\r\nAccept: a\r\naccept: b\r\n\r\n",
    b"GET http://h/x?y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    b"POST /t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
]
"""Requests of clients; the last one is rejected."""
SEASONING = [
    *(
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b"\0",
        b":",
        b";",
        b",",
        b"%",
        b"%00",
        b"%ff",
    ),
    *(b"\r\n ", b"\x0b", b"\x0c", b"\x85", b"\xa0", b"\xff", b"/", b"//", b"?", b"#", b"@", b"+"),
    *(b"Content-Length: 3\r\n", b"content-length : 3\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(
        b"Host: y\r\n",
        b"Connection: close\r\n",
        b"0",
        b"-",
        b"_",
        b"HTTP/1.1",
        b"GET / HTTP/1.1\r\n\r\n",
    ),
]


@st.composite
def nearly_right(draw):
    """Requests behind each other, with a few changes of the kind that fools parsers."""
    data = bytearray(b"".join(draw(st.lists(st.sampled_from(RIGHT), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["insert", "delete", "replace", "repeat", "flip"])):
            case "insert":
                data[at:at] = draw(st.sampled_from(SEASONING))
            case "delete":
                del data[at : at + draw(st.integers(1, 9))]
            case "replace":
                more = draw(st.sampled_from(SEASONING))
                data[at : at + len(more)] = more
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 30))]
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


class Transport:
    """A transport that records the responses."""

    def __init__(self):
        self.sent = bytearray()
        self.is_over = False

    def get_extra_info(self, name):
        return ("127.0.0.1", 4711)

    def write(self, data):
        assert not self.is_over
        self.sent += data

    def close(self):
        self.is_over = True

    abort = close

    def is_closing(self):
        return self.is_over

    def pause_reading(self):
        pass

    def set_write_buffer_limits(self, high):
        assert high == 0


class Port:
    """Answers every request in one line, and remembers it."""

    def __init__(self):
        self.requests = []
        self.memory = AnswerMemory()
        self.clock = SystemClock()

    def answer(self, request, peer_host):
        self.requests.append(request)
        return text(200, "taken")

    def _ignored(self, *given):
        pass

    opened = request_received = answered = closed = _ignored


def exchange(data, pieces):
    """Send ``data`` in pieces; return the requests that were taken, the answers, and the end."""

    async def run():
        port, transport = Port(), Transport()
        connection = HttpConnection(port)
        connection.connection_made(transport)
        size = max(1, -(-len(data) // pieces))
        for start in range(0, len(data), size):
            if transport.is_over:
                break
            connection.data_received(data[start : start + size])
        connection.connection_lost(None)
        return port.requests, bytes(transport.sent), transport.is_over

    return asyncio.run(run())


def statuses(sent):
    """Return the statuses of answers that come whole."""
    found = []
    while sent:
        head, _, rest = sent.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = int(lines[0].split()[1])
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        found.append((status, headers))
        length = 0 if status == 100 else int(headers[b"content-length"])
        # An answer to HEAD has no body: what follows begins with another answer.
        sent = rest if rest.startswith(b"HTTP/1.1 ") else rest[length:]
    return found


def by_h11(data, count):
    """Return the first ``count`` requests as h11 reads them."""
    found = []
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(with_host(data))
    while len(found) < count:
        request = connection.next_event()
        assert isinstance(request, h11.Request), request
        body = b""
        while isinstance(event := connection.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(event, h11.EndOfMessage), event
        found.append((request, body, connection.their_state))
        if len(found) < count:
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
            rest = connection.trailing_data[0]
            connection = h11.Connection(h11.SERVER)
            connection.receive_data(with_host(rest))
    return found


def with_host(data):
    """HTTP/1.1 must name a host; programs forget it, and we let them."""
    head, blank, rest = data.partition(b"\r\n\r\n")
    if b"\r\nhost:" in head.lower():
        return data
    return head + b"\r\nHost: added" + blank + rest


def parts_of(target):
    """Read a path once more, in another way."""
    path = target.partition(b"#")[0].partition(b"?")[0]
    if not path.startswith(b"/") or path.startswith(b"//"):
        return None  # With a host: of that urllib is the judge.
    path = path.strip(b"/")
    return tuple(unquote_to_bytes(each).decode() for each in path.split(b"/")) if path else ()


@given(nearly_right(), st.integers(1, 12))
@example(RIGHT[0] + RIGHT[2], 1)
@example(b"".join(RIGHT), 7)
@example(RIGHT[6], 1)
@example(b"GET /api\x0fv1 HTTP/1.1\r\nHost: x\r\n\r\n", 1)
@example(b"GET / HTTP/1.1\r\nHost: x\r\nConnection:\x0b close\r\n\r\n", 1)
def test_accepted_requests_are_accepted_by_h11(data, pieces):
    requests, sent, is_over = exchange(data, pieces)
    answers = [each for each in statuses(sent) if each[0] != 100]
    refused = [(status, headers) for status, headers in answers if status != 200]
    assert len(answers) == len(requests) + len(refused)
    if refused:
        assert refused == answers[-1:]
        (status, headers) = refused[0]
        assert 400 <= status < 600
        assert headers[b"connection"] == b"close"
        assert is_over
    theirs = by_h11(data, len(requests))
    for number, (ours, (request, body, their_state)) in enumerate(
        zip(requests, theirs, strict=True)
    ):
        assert request.method.decode() == ours.method
        assert request.http_version == (b"1.0" if ours.is_old else b"1.1")
        assert body == ours.body
        assert headers_of(request) == ours.headers
        parts = parts_of(request.target)
        assert parts is None or parts == ours.parts
        if ours.keeps_alive:
            assert their_state is h11.DONE, "they would close here"
        if number + 1 < len(requests):
            assert ours.keeps_alive


def headers_of(request):
    by_name = {}
    for name, value in request.headers:
        if value != b"added":
            shown, key = value.decode("latin-1"), name.decode().lower()
            by_name[key] = f"{by_name[key]}, {shown}" if key in by_name else shown
    return by_name


def test_a_request_that_never_ends_is_refused_in_time(monkeypatch):
    monkeypatch.setattr(module, "QUESTION_SECONDS", 0.01)

    async def run():
        port, transport = Port(), Transport()
        connection = HttpConnection(port)
        connection.connection_made(transport)
        connection.data_received(b"GET / HT")
        await until(lambda: transport.is_over)
        connection.connection_lost(None)
        return port.requests, statuses(bytes(transport.sent))

    requests, [(status, headers)] = asyncio.run(run())
    assert (requests, status, headers[b"connection"]) == ([], 408, b"close")
