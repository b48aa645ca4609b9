"""The requests of one connection without a socket: frames in, answers out, reasons to pause."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.network import pipeline
from barnabas.broker.network.flow import Backlog
from barnabas.broker.network.pauses import BACKLOGGED, DRAINING, HANDLING, PIPELINED
from barnabas.broker.network.pipeline import TURN_REQUESTS, Pipeline
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.quotas.quota_limits import CLIENT_ID, PRODUCER_BYTES, entity
from barnabas.broker.security.quotas.quotas import Quotas
from barnabas.broker.security.session import NOBODY
from barnabas.protocol.errors import Malformed
from barnabas.protocol.frame import FrameBuffer, RingPool
from tests.broker.toy import ECHO, FETCH, PRODUCE, Toy, request, small_config

LIMIT = 8
BUFFER_BYTES = 1 << 13


class Line:
    """Notes what the pipeline wants of its connection."""

    endpoint = ("broker.example", 9092)
    peer_host = "client.example"
    frame_is_owned = False
    gate = None
    session = NOBODY
    seen = ClientSeen()

    def __init__(self):
        self.queued = 0
        self.closed = []
        self.bugs = []

    def queue_delivery(self):
        self.queued += 1

    def close(self, reason):
        self.closed.append(reason)

    def bug(self, name, error):
        self.bugs.append((name, error))


class Running:
    """A pipeline over toy handlers, and all that it put out."""

    def __init__(self, toy):
        self.toy = toy
        self.line = Line()
        self.backlog = Backlog()
        frames = FrameBuffer(RingPool(), 1 << 20)
        self.frames = frames
        generation = Generation()
        self.quotas = Quotas(SystemClock(), generation)
        self.pipeline = Pipeline(
            self.line,
            SimpleNamespace(
                frames=frames, begin_large=lambda: None, handled=lambda: None, is_lent=False
            ),
            SimpleNamespace(
                routes=toy.routes,
                large=toy.server.large,
                backlog=self.backlog,
                generation=generation,
                quotas=self.quotas,
                clock=SystemClock(),
                pipeline_limit=LIMIT,
                write_buffer_bytes=BUFFER_BYTES,
                at_work=set(),
            ),
        )

    def put(self, *requests):
        for each in requests:
            self.frames.writable()[: len(each)] = each
            self.frames.received(len(each))

    def process(self, most=TURN_REQUESTS, begun_ns=0):
        return self.pipeline.process(begun_ns, most)

    def written(self):
        """Return the bytes that the pipeline sends next."""
        self.pipeline.collect()
        out, self.pipeline.out, self.pipeline.out_bytes = self.pipeline.out, [], 0
        return b"".join(bytes(each) for each in out)


@pytest.fixture
async def running(monkeypatch):
    monkeypatch.setattr(pipeline, "TURN_NS", 1 << 62)  # No turn ends because the machine is slow.
    toy = Toy(small_config())
    yield Running(toy)
    toy.server.cut_off()


def echo(number, body=b"x"):
    return request(ECHO, body, correlation_id=number)


def answer(number, body=b"x"):
    return (len(body) + 4).to_bytes(4) + number.to_bytes(4) + body


async def test_request_in_pieces_is_handled_when_complete(running):
    whole = echo(1, b"in pieces")
    running.put(whole[:7])
    assert running.process() == 0
    assert running.written() == b""
    running.put(whole[7:], echo(2))
    running.process()
    assert running.written() == answer(1, b"in pieces") + answer(2)
    assert running.pipeline.requests == 2


async def test_a_missing_answer_holds_up_those_behind_it(running):
    running.put(request(PRODUCE, b"p", version=3, correlation_id=1), echo(2))
    running.process()
    assert running.written() == b""
    assert running.pipeline.owes
    running.toy.produces[0].complete(b"done")
    assert running.line.queued == 1
    assert running.written() == answer(1, b"done") + answer(2)
    assert not running.pipeline.owes


async def test_nothing_is_handled_beside_a_parked_fetch(running):
    running.put(request(FETCH, b"f", correlation_id=1), request(FETCH, b"g", correlation_id=2))
    running.process()
    assert running.pipeline.pauses == HANDLING
    assert [each.request for each in running.toy.fetches] == [b"f"]
    running.toy.fetches[0].complete(b"data")
    assert running.written() == answer(1, b"data")
    assert running.pipeline.pauses == 0
    running.process()
    assert [each.request for each in running.toy.fetches] == [b"f", b"g"]


async def test_a_parked_fetch_is_completed_early_for_what_is_no_fetch(running):
    running.put(request(FETCH, b"f", correlation_id=1))
    running.process()
    running.put(request(FETCH, b"g", correlation_id=2))
    running.pipeline.complete_parked_early()
    assert running.written() == b""
    running = Running(running.toy)
    running.put(request(FETCH, b"f", correlation_id=1))
    running.process()
    running.put(echo(2))
    running.pipeline.complete_parked_early()
    assert running.written() == answer(1, b"early f")


async def test_pipeline_pauses_at_the_limit_of_pending_responses(running):
    running.put(*(request(PRODUCE, b"p", version=3, correlation_id=n) for n in range(LIMIT + 1)))
    running.process()
    assert running.pipeline.pauses == PIPELINED
    assert len(running.toy.produces) == LIMIT
    running.toy.produces[0].complete(b"done")
    assert running.written() == answer(0, b"done")
    assert running.pipeline.pauses == 0
    running.process()
    assert len(running.toy.produces) == LIMIT + 1


async def test_pipeline_pauses_at_the_limit_of_bytes_after_a_missing_response(running):
    body = b"b" * (BUFFER_BYTES // 2)
    running.put(request(PRODUCE, b"p", version=3, correlation_id=1), echo(2, body), echo(3, body))
    running.process()
    assert running.pipeline.pauses == PIPELINED
    assert running.pipeline.requests == 3


async def test_pipeline_pauses_while_the_journal_is_behind(running):
    running.backlog.set(True)
    running.put(request(PRODUCE, b"p", version=3, correlation_id=1), echo(2))
    running.process()
    assert running.pipeline.pauses == BACKLOGGED
    assert running.pipeline.requests == 1
    running.backlog.set(False)
    assert (running.pipeline.pauses, running.line.queued) == (0, 1)


async def test_answers_are_to_be_written_before_they_pile_up(running, monkeypatch):
    monkeypatch.setattr(pipeline, "WRITE_BYTES", 3 * len(answer(1)))
    running.put(*(echo(number) for number in range(5)))
    left = running.process(most=10)
    assert left == 7
    assert running.written() == b"".join(answer(number) for number in range(3))
    assert running.process(most=left) == 0
    assert running.written() == answer(3) + answer(4)


async def test_a_turn_ends_after_so_many_requests(running):
    running.put(*(echo(number) for number in range(5)))
    assert running.process(most=2) == 0
    assert running.line.queued == 1
    assert running.written() == answer(0) + answer(1)


async def test_draining_waits_for_nothing(running):
    running.put(request(FETCH, b"f", correlation_id=1), echo(2))
    running.process()
    running.pipeline.drain()
    assert running.written() == answer(1, b"early f")
    assert running.pipeline.pauses == DRAINING
    running.process()
    assert running.pipeline.requests == 1


@pytest.mark.parametrize(
    ("frame", "error", "described"),
    [
        (request(ECHO, b"bad bytes"), Malformed, "api=Echo version=0 "),
        (request(99, b""), CloseConnection, "api=99 version=0 "),
        (request(ECHO, b"", version=7), CloseConnection, "api=Echo version=7 "),
    ],
)
async def test_fatal_frame_raises_an_error(running, frame, error, described):
    running.put(echo(1), frame, echo(2))
    with pytest.raises(error):
        running.process()
    assert running.pipeline.describe_frame() == described
    assert running.written() == answer(1)


async def test_request_of_a_client_that_leaves_before_its_response_is_charged(running):
    running.quotas.change([(entity({CLIENT_ID: None}), PRODUCER_BYTES, 1.0)])
    running.put(request(PRODUCE, b"p" * 40, version=3, correlation_id=1))
    running.process()
    quota = running.quotas.client_quota(NOBODY.principal.name, "toy")
    assert quota.produced(0) == 0
    running.pipeline.abandon()
    assert quota.produced(0) > 0


async def test_closed_connection_is_not_referenced(running):
    running.put(request(PRODUCE, b"p", version=3, correlation_id=1))
    running.process()
    (produce,) = running.toy.produces
    running.pipeline.abandon()
    assert produce.gone
    produce.complete(b"done")
    assert running.written() == b""
    assert running.line.queued == 0
