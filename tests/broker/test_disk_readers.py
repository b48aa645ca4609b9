"""Waits for the store of a cluster: they end with their work, their time, or their client."""

import asyncio

import pytest

from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.runtime.disk_readers import STORE_THREADS, DiskReaders
from barnabas.storage.runtime.threads import new_event
from tests.storage.stores import NOW_MS

MINUTE_S = 60.0


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


@pytest.fixture
async def readers(clock):
    made = DiskReaders(asyncio.get_running_loop(), clock)
    yield made
    made.close()


async def test_wait_for_the_store_ends_with_its_work(readers):
    until = []
    await readers.run_at_store(until.append, MINUTE_S)
    assert len(until) == 1
    assert readers.parked == 0


async def test_wait_for_the_store_ends_in_time_and_its_work_runs_on(readers, clock):
    released, ended = new_event(), new_event()

    def work(_until_s):
        assert released.wait(MINUTE_S)
        ended.set()

    waiting = readers.run_at_store(work, MINUTE_S)
    assert readers.parked == 1
    clock.advance(seconds=MINUTE_S)
    await asyncio.wait([waiting])
    await asyncio.sleep(0)
    assert readers.parked == 0
    assert not ended.is_set()
    released.set()
    await readers.run(lambda: ended.wait(MINUTE_S))
    assert ended.is_set()


async def test_error_of_the_work_ends_the_wait_for_the_store(readers):
    def fail(_until_s):
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        await readers.run_at_store(fail, MINUTE_S)
    assert readers.parked == 0


async def test_client_that_leaves_takes_its_queued_work_along(readers):
    released, run = new_event(), []

    def hold(_until_s):
        assert released.wait(MINUTE_S)

    holding = [readers.run_at_store(hold, MINUTE_S) for _ in range(STORE_THREADS)]
    left = readers.run_at_store(run.append, MINUTE_S)
    assert readers.parked == STORE_THREADS + 1
    left.cancel()
    await asyncio.wait([left])
    assert readers.parked == STORE_THREADS
    released.set()
    await asyncio.gather(*holding)
    await readers.run_at_store(lambda _until_s: None, MINUTE_S)
    assert run == []
