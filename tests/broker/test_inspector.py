"""The thread that looks into batches: fair to all, bounded, and silent after it was closed."""

import asyncio

from barnabas.broker.api.inspector import Inspected, Inspector
from barnabas.protocol.compression import ZSTD
from barnabas.protocol.records import Record, encode_batch
from tests.broker.data_plane import batch
from tests.waiting import until

LIMIT = 1000


def large():
    """A batch that takes many slices: a hundred thousand records, of 700 KB."""
    return memoryview(encode_batch([Record(at, 0, None, None) for at in range(100_000)]))


async def inspector():
    return Inspector(asyncio.get_running_loop(), lambda: LIMIT)


async def test_everything_is_told_in_its_order():
    here = await inspector()
    told = []
    first = Inspected([batch(b"a"), batch(b"b", None, compression=ZSTD)], told.append, 10)
    here.inspect(first)
    assert not told
    await until(lambda: told)
    assert [(each.fault, each.keyless) for each in told[0]] == [("", 0), ("", 0)]
    assert here.held_bytes == 0
    here.close()


async def test_a_small_request_overtakes_a_large_one():
    here = await inspector()
    order = []
    here.inspect(Inspected([large()] * 5, lambda _: order.append("large"), 1))
    here.inspect(Inspected([batch()], lambda _: order.append("small"), 1))
    await until(lambda: len(order) == 2)
    assert order == ["small", "large"]
    here.close()


async def test_what_waits_is_bounded_but_one_may_always():
    here = await inspector()
    assert here.has_room(LIMIT + 1)
    here.inspect(Inspected([large()], lambda _: None, LIMIT - 10))
    assert here.has_room(10)
    assert not here.has_room(11)
    await until(lambda: here.held_bytes == 0)
    assert here.has_room(LIMIT + 1)
    here.close()


async def test_nobody_hears_of_what_was_dropped():
    here = await inspector()
    told = []
    gone = Inspected([large()] * 50, told.append, 7)
    here.inspect(gone)
    gone.dropped = True
    await until(lambda: here.held_bytes == 0)
    assert not told
    assert not gone.contents or len(gone.contents) < 50
    here.close()


async def test_it_begins_again_after_it_had_nothing_to_do():
    here = await inspector()
    told = []
    for number in range(20):
        here.inspect(Inspected([batch()], told.append, 1))
        await until(lambda number=number: len(told) == number + 1)
    here.close()


async def test_nobody_is_told_anything_after_the_end():
    here = await inspector()
    told = []
    here.inspect(Inspected([large()] * 50, told.append, 1))
    here.close()
    await asyncio.sleep(0.05)
    assert not told
