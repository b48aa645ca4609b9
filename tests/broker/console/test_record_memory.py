"""Memory of reading records: counted before a batch is expanded, one record at a time."""

from __future__ import annotations

import asyncio
import io
import json
import tracemalloc

import pytest

from barnabas.broker.console.encoding import size_of
from barnabas.broker.console.records import export
from barnabas.broker.console.records.examining import (
    EXPANDED_BYTES_MAX,
    HEADERS_MOST,
    Wanted,
    examine,
)
from barnabas.broker.console.records.filters import Filter, read_filter
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.pieces import (
    KEPT_BYTES_MOST,
    LARGE_BYTES,
    Batch,
    Piece,
    RecordReaders,
)
from barnabas.broker.console.records.places import READERS_MOST, Places
from barnabas.broker.console.records.ranges import FOR_EVER_MS
from barnabas.broker.console.records.rows import Formats, json_rows, written_bytes
from barnabas.broker.console.records.standing import Standing
from barnabas.broker.console.shapes import Error
from barnabas.broker.http.messages.answer import text
from barnabas.broker.http.messages.answer_memory import MIB, AnswerMemory
from barnabas.broker.security.acls.access import Access, Generation
from barnabas.protocol import compression
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.internal_records import bytes_as_json
from barnabas.protocol.records import Record, encode_batch, read_header
from barnabas.storage.runtime.threads import new_event
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP, fetch
from tests.waiting import until
from tests.worlds import thread_name

BOTH_LOOPS = True


class Unhurried(ThreadPace):
    """Never rests: what is measured here is memory."""

    def step(self):
        pass

    rest = step


def piece_of(*batches):
    found = [Batch(read_header(each), memoryview(each)) for each in batches]
    end = found[-1].header.next_offset
    standing = Standing(0, end, end, {}, None, ())
    size = sum(map(len, batches))
    return Piece(0, end, found, size, standing, [])


def batch_of(records, codec=compression.NONE):
    return encode_batch(records, compression=codec, base_offset=records[0].offset)


def numbered(start, end, value=None):
    return [Record(each, 1000 + each, None, value or b"%d" % each) for each in range(start, end)]


def looked(piece, *, newest_first, rows=10, kept_bytes=4096, low=0, filter_=None):
    wanted = Wanted(
        0,
        low,
        piece.until_offset,
        -FOR_EVER_MS,
        FOR_EVER_MS,
        all_states=True,
        filter=filter_ or Filter(),
        rows=rows,
        kept_bytes=kept_bytes,
        newest_first=newest_first,
    )
    return examine(piece, wanted, Unhurried())


@pytest.mark.parametrize("newest_first", [True, False])
def test_one_record_of_a_batch_exists_at_a_time(newest_first):
    batch = batch_of(numbered(0, 10_000), compression.GZIP)
    expanded_bytes = sum(len(each) for each in compression.expand(1, batch[61:], MIB * 64))
    tracemalloc.start()
    found = looked(piece_of(batch), newest_first=newest_first)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.rows) == 10
    assert peak_bytes < 2 * expanded_bytes + MIB


def test_newest_records_are_counted_from_the_end():
    piece = piece_of(batch_of(numbered(0, 50)), batch_of(numbered(50, 100)))
    found = looked(piece, newest_first=True, rows=70)
    assert [each.offset for each in found.rows] == list(range(99, 29, -1))
    assert (found.records, found.position, found.last_ms) == (70, 30, 1030)


def test_newest_records_of_a_filter_are_those_that_the_oldest_first_finds_last():
    piece = piece_of(batch_of(numbered(0, 100)))
    found = looked(piece, newest_first=True, rows=3, filter_=read_filter("7"))
    assert [each.offset for each in found.rows] == [97, 87, 79]
    assert (found.records, found.position, found.last_ms) == (21, 79, 1079)
    rest = looked(piece, newest_first=False, rows=100, filter_=read_filter("7"))
    assert [each.offset for each in rest.rows][-3:] == [79, 87, 97]


class Undecided:
    """A filter that even offsets pass; for the others the verdict is None."""

    is_empty = False

    def matches(self, record):
        return True if record.offset % 2 == 0 else None


def test_undecided_records_before_a_full_page_are_left_for_the_next():
    piece = piece_of(batch_of(numbered(0, 10)))
    found = looked(piece, newest_first=True, rows=2, filter_=Undecided())
    assert (found.records, found.undecided, found.position) == (4, 2, 6)
    found = looked(piece, newest_first=False, rows=2, filter_=Undecided())
    assert (found.records, found.undecided, found.position) == (3, 1, 3)
    whole = looked(piece, newest_first=True, rows=20, filter_=Undecided())
    assert (whole.records, whole.undecided) == (10, 5)


def test_look_stops_once_it_keeps_too_much():
    value = bytes(MIB)
    batches = [batch_of(numbered(each, each + 1, value)) for each in range(20)]
    found = looked(piece_of(*batches), newest_first=False, rows=100, kept_bytes=EXPANDED_BYTES_MAX)
    assert found.kept_bytes <= KEPT_BYTES_MOST + 2 * MIB
    assert found.position == len(found.rows) < 20


def test_record_with_too_many_headers_is_unread_and_few_are_kept_whole():
    many = Record(0, 0, None, None, (("", None),) * (HEADERS_MOST + 1))
    found = looked(piece_of(batch_of([many])), newest_first=False)
    assert [each.reason for each in found.unread] == [f"{HEADERS_MOST + 1} headers in one record"]
    large = Record(0, 0, None, None, (("h", bytes(10 * MIB)),))
    whole = looked(piece_of(batch_of([large])), newest_first=False, kept_bytes=EXPANDED_BYTES_MAX)
    assert not whole.rows[0].headers[0][1].is_cut


def test_headers_of_one_record_together_are_cut():
    headers = tuple((f"name-{each}", bytes(100_000)) for each in range(100))
    piece = piece_of(batch_of([Record(0, 0, None, None, headers)]))
    (row,) = looked(piece, newest_first=False, kept_bytes=MIB).rows
    assert row.kept_bytes < 2 * MIB
    assert all(each.is_cut for _, each in row.headers[20:])


def test_long_names_of_headers_are_cut_in_a_list():
    piece = piece_of(batch_of([Record(0, 0, None, None, (("n" * MIB, b""),) * 10)]))
    (row,) = looked(piece, newest_first=False).rows
    assert row.kept_bytes < 64 * 1024


class Budget(AnswerMemory):
    """Takes down the sizes of all work."""

    def __init__(self, **more):
        super().__init__(**more)
        self.asked = []

    async def begin_work(self, size_bytes):
        self.asked.append(size_bytes)
        return await super().begin_work(size_bytes)


async def test_expansion_counts_before_it_happens():
    memory = Budget()
    readers = RecordReaders(memory)
    large = batch_of(numbered(0, 1, bytes(30 * MIB)), compression.GZIP)
    assert len(large) < 64 * 1024
    seen = []
    piece = piece_of(large)
    await readers.expand(piece.batches, lambda: seen.append(memory.work_bytes), 64 * MIB)
    assert memory.asked[0] == 64 * MIB
    assert seen[0] >= 2 * 30 * MIB
    plain = piece_of(batch_of(numbered(0, 10)))
    await readers.expand(plain.batches, lambda: seen.append(memory.work_bytes), 64 * MIB)
    assert seen[1] < 5 * MIB
    await asyncio.sleep(0)
    assert memory.work_bytes == 0


async def test_expansion_waits_for_room():
    memory = AnswerMemory(limit_bytes=20 * MIB, work_bytes_max=20 * MIB)
    readers = RecordReaders(memory)
    piece = piece_of(batch_of(numbered(0, 10)))
    end = await memory.begin_work(18 * MIB)
    begun = new_event()
    waiting = asyncio.create_task(readers.expand(piece.batches, begun.set, 64 * MIB))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not begun.is_set()
    end()
    await waiting
    assert begun.is_set()


async def test_cancelled_work_counts_until_its_thread_ends():
    memory = AnswerMemory()
    readers = RecordReaders(memory)
    begun, may_end = new_event(), new_event()

    def work():
        begun.set()
        may_end.wait(60)

    running = asyncio.create_task(readers.run_within(1000, work))
    await until(begun.is_set)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert memory.work_bytes == 1000
    may_end.set()
    async with asyncio.timeout(60):
        while memory.work_bytes:  # noqa: ASYNC110  a budget has no event
            await asyncio.sleep(0.001)


def access_of(user):
    return Access(f"User:{user}", "127.0.0.1", None, Generation())


async def test_place_is_kept_until_the_answer_is_released():
    places = Places()
    with places.take(access_of("alice")) as place:
        place.hold(1000)
        answer = place.answered(text(200, "x"))
    for _ in range(READERS_MOST - 1):
        places.take(access_of("alice"))
    with pytest.raises(KafkaError) as refused:
        places.take(access_of("alice"))
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    answer.holding.release()
    with places.take(access_of("alice")):
        pass
    with places.take(access_of("alice")):
        pass


async def test_user_with_all_places_loses_one_to_another():
    places = Places()
    reading = asyncio.Event()

    async def read():
        with places.take(access_of("mallory")):
            reading.set()
            await asyncio.Event().wait()

    first = asyncio.create_task(read())
    await reading.wait()
    others = [places.take(access_of("mallory")) for _ in range(READERS_MOST - 1)]
    with (
        places.take(access_of("alice")),
        pytest.raises(KafkaError, match="another user needs the memory"),
    ):
        await first
    assert not first.cancelled()
    assert len(others) == READERS_MOST - 1


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"plain",
        b"\x00\x01\n" * 20_000,
        "ü\N{PILE OF POO}".encode() * 20_000,
        b"x" * 16_383 + "ü".encode() + b"y" * 40_000,
        b"\xff" * 100_000,
        b"x" * 100_000 + "ü".encode()[:1],
    ],
    ids=["empty", "short", "control", "wide", "cut-character", "binary", "half-character"],
)
def test_exported_line_in_pieces_is_what_json_writes_at_once(value):
    record = Record(7, 1007, b"k", value, (("h\N{PILE OF POO}", value), ("n", None)))
    found = looked(
        piece_of(batch_of([record])), newest_first=False, kept_bytes=EXPANDED_BYTES_MAX
    ).rows
    body = io.BytesIO()
    for piece in export._body("t", export._lines(found, Unhurried())):
        assert len(piece) < 256 * 1024
        body.write(piece)
    expected = {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestamp": 1007,
        "key": "k",
        "value": bytes_as_json(value),
        "headers": [
            {"key": "h\N{PILE OF POO}", "value": bytes_as_json(value)},
            {"key": "n", "value": None},
        ],
    }
    assert body.getvalue() == json.dumps(expected, ensure_ascii=False).encode() + b"\n"


def test_long_list_counts_until_it_is_read_and_is_refused_without_room():
    with Broker(config=HTTP) as broker:
        broker.create_topic("wide", partitions=200)
        memory = broker.server.answer_memory
        asked = []
        hold = memory.hold
        memory.hold = lambda holding, size_bytes: (
            asked.append(size_bytes),
            hold(holding, size_bytes),
        )
        answer = fetch(broker, "topics", "wide", "partitions", limit=200)
        assert len(json.dumps(answer)) / 4 < asked[0] < 20 * len(json.dumps(answer))
        assert memory.held_bytes == 0
        memory._limit_bytes = memory._work_bytes_max
        refused = fetch(broker, "topics", "wide", "partitions", limit=200, expected=429)
        assert refused["error"] == "THROTTLING_QUOTA_EXCEEDED"
        assert memory.held_bytes == 0
        assert fetch(broker, "topics", "wide", "records", partition="0")["items"] == []


def test_size_of_a_list_is_judged_by_rows_of_all_of_it():
    rows = tuple(Error("NAME", "x" * (1000 if number >= 900 else 10)) for number in range(1000))
    assert 100 * 1000 < size_of(rows) < 1000 * 1000
    assert size_of(()) < 100


async def test_large_work_has_one_thread():
    """The C library keeps for each thread what it has freed, so more threads hold more memory."""
    readers = RecordReaders(AnswerMemory())
    names = await asyncio.gather(
        *(
            readers.run_within(size_bytes, thread_name)
            for size_bytes in (LARGE_BYTES, 0, LARGE_BYTES)
        )
    )
    assert names[0] == names[2] != names[1]


async def test_snappy_is_bounded_by_its_size_and_others_are_measured():
    async def asked(codec):
        memory = Budget()
        piece = piece_of(batch_of(numbered(0, 1, bytes(MIB)), codec))
        await RecordReaders(memory).expand(piece.batches, list, 64 * MIB)
        return memory.asked

    (snappy,) = await asked(compression.SNAPPY)
    assert 2 * MIB < snappy < 8 * MIB
    for codec in (compression.GZIP, compression.LZ4, compression.ZSTD):
        measure, work = await asked(codec)
        assert (measure, 2 * MIB < work < 8 * MIB) == (64 * MIB, True)


def test_written_rows_take_no_more_than_is_counted():
    worst = Record(0, 0, b"\x01" * 4096, b"\x01" * 5000, (("\x01" * 500, b"\x01" * 600),) * 20)
    piece = piece_of(batch_of([worst]))
    found = looked(piece, newest_first=False).rows
    rows = json_rows(found, Formats("text", "text"), {}, Unhurried())
    assert len(rows[0]) <= written_bytes(found)
