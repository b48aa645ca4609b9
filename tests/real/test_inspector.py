"""The thread that looks into batches: fair to all, bounded, and silent after it was closed."""

import asyncio

from barnabas.broker.api.inspector import Inspected, Inspector
from barnabas.protocol.compression import ZSTD
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.batches.batch_contents import Inspection
from barnabas.storage.batches.batch_encoding import Encoding
from tests.broker.data_plane import batch
from tests.waiting import until

LIMIT = 1000


def large():
    """A batch that takes many slices: a hundred thousand records, of 700 KB."""
    return memoryview(encode_batch([Record(at, 0, None, None) for at in range(100_000)]))


def request(batches, on_done, size_bytes, encoding=None):
    """A request as handlers make it; an internal error fails the test."""
    inspections = [Inspection(each, encoding) for each in batches]
    return Inspected(inspections, on_done, on_done, size_bytes)


async def inspector():
    return Inspector(asyncio.get_running_loop(), lambda: LIMIT)


async def test_results_arrive_in_the_order_of_requests():
    here = await inspector()
    told = []
    first = request([batch(b"a"), batch(b"b", None, compression=ZSTD)], told.append, 10)
    here.inspect(first)
    assert not told
    await until(lambda: told)
    assert [(each.fault, each.keyless) for each in told[0]] == [("", 0), ("", 0)]
    assert here.held_bytes == 0
    here.close()


async def test_a_small_request_overtakes_a_large_one():
    here = await inspector()
    order = []
    here.inspect(request([large()] * 5, lambda _: order.append("large"), 1))
    here.inspect(request([batch()], lambda _: order.append("small"), 1))
    await until(lambda: len(order) == 2)
    assert order == ["small", "large"]
    here.close()


async def test_waiting_bytes_are_limited_except_for_one_request():
    here = await inspector()
    assert here.has_room(LIMIT + 1)
    here.inspect(request([large()], lambda _: None, LIMIT - 10))
    assert here.has_room(10)
    assert not here.has_room(11)
    await until(lambda: here.held_bytes == 0)
    assert here.has_room(LIMIT + 1)
    here.close()


async def test_dropped_request_gets_no_result():
    here = await inspector()
    told = []
    gone = request([large()] * 50, told.append, 7)
    here.inspect(gone)
    gone.dropped = True
    await until(lambda: here.held_bytes == 0)
    assert not told
    assert not gone.contents or len(gone.contents) < 50
    here.close()


async def test_inspector_restarts_after_idling():
    here = await inspector()
    told = []
    for number in range(20):
        here.inspect(request([batch()], told.append, 1))
        await until(lambda number=number: len(told) == number + 1)
    here.close()


async def test_closed_inspector_sends_no_result():
    here = await inspector()
    told = []
    here.inspect(request([large()] * 50, told.append, 1))
    here.close()
    await asyncio.sleep(0.05)
    assert not told


async def test_requests_that_change_codecs_go_one_after_the_other():
    here = await inspector()
    order = []
    zstd = Encoding(ZSTD, 3, 1 << 20)
    requests = [
        request([large()] * 3, lambda _, at=at: order.append(at), 1, zstd) for at in range(3)
    ]
    for each in requests:
        here.inspect(each)
    here.inspect(request([batch()], lambda _: order.append("plain"), 1))
    requests[1].dropped = True
    await until(lambda: here.held_bytes == 0)
    assert order == ["plain", 0, 2]
    here.inspect(request([batch()], lambda _: order.append("again"), 1, zstd))
    await until(lambda: order[-1] == "again")
    here.close()


class Broken:
    """An inspection that fails."""

    encoding = Encoding(ZSTD, 3, 1)

    def step(self):
        raise MemoryError("no memory")


async def test_an_error_ends_one_request_and_no_other():
    here = await inspector()
    told = []
    here.inspect(Inspected([Broken()], told.append, lambda error: told.append(str(error)), 1))
    here.inspect(request([batch()], lambda found: told.append(len(found)), 1, Broken.encoding))
    await until(lambda: len(told) == 2)
    assert told == ["no memory", 1]
    assert here.held_bytes == 0
    here.close()
