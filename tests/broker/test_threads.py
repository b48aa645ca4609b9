"""Pools of threads: what comes out on the loop, and what is dropped."""

from __future__ import annotations

import asyncio
import weakref
from functools import partial

import pytest

from barnabas.broker.runtime.threads import Pool
from barnabas.storage.runtime.threads import new_event
from tests.waiting import until
from tests.worlds import thread_name, world

__all__ = ["world"]


@pytest.fixture
def pool():
    made = Pool("trial")
    yield made
    made.close(waits=True)


async def blocked(pool):
    """Return the event that frees the pool's only thread, once the thread waits for it."""
    begun, free = new_event(), new_event()

    def wait():
        begun.set()
        free.wait()

    pool.start(wait)
    await until(begun.is_set)
    return free


async def test_a_result_and_an_exception_come_out_on_the_loop(pool):
    assert await pool.run(thread_name) == "barnabas-trial_0"
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 / 0)


async def test_work_is_done_in_its_order(pool):
    done = []
    free = await blocked(pool)
    later = [pool.run(lambda number=number: done.append(number)) for number in range(9)]
    free.set()
    await asyncio.gather(*later)
    assert done == [*range(9)]


async def test_close_cancels_work_that_has_not_started(pool):
    free = await blocked(pool)
    dropped = pool.run(lambda: 1)
    pool.close()
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await dropped
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.run(lambda: 1)


@pytest.mark.parametrize("is_counted", [False, True])
async def test_cancelled_work_in_the_queue_refers_to_nothing(pool, is_counted):
    class Large:
        """The argument of the work."""

    free, large = await blocked(pool), Large()
    found = weakref.ref(large)
    work = partial(str, large)
    later = pool.run_counted(work, lambda: None) if is_counted else pool.run(work)
    later.cancel()
    del large, work
    try:
        await until(lambda: found() is None)
    finally:
        free.set()


async def test_close_may_let_all_work_end(pool):
    free = await blocked(pool)
    kept = pool.run(lambda: 1)
    asyncio.get_running_loop().call_soon(free.set)
    await asyncio.to_thread(pool.close, waits=True, drops=False)
    assert await kept == 1


async def test_counted_work_ends_when_its_thread_has_done_it(pool):
    """The waiter may be cancelled earlier: the work continues, and counts."""
    begun, free, ended = new_event(), new_event(), asyncio.Event()

    def work():
        begun.set()
        free.wait()

    running = pool.run_counted(work, ended.set)
    await until(begun.is_set)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not ended.is_set()
    free.set()
    await ended.wait()


async def test_counted_work_that_is_refused_has_ended(pool):
    pool.close()
    ended = []
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.run_counted(lambda: 1, lambda: ended.append(1))
    assert ended == [1]
