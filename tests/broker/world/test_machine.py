"""Tests of the simulated clock, threads, locks, queues and executors."""

from __future__ import annotations

import pytest

from barnabas.broker.client.dialing import connect
from barnabas.storage.runtime.chance import random_uuid
from barnabas.storage.runtime.clock import monotonic, now_ns, sleep
from barnabas.storage.runtime.threads import (
    Empty,
    new_condition,
    new_event,
    new_executor,
    new_lock,
    new_queue,
    new_rlock,
    new_semaphore,
    start_thread,
    start_timer,
)
from barnabas.testing import Stuck, World

HOUR_S = 3600


def test_sleep_of_an_hour_takes_no_real_time() -> None:
    with World(seed=1) as world:
        began_ns = now_ns()
        sleep(HOUR_S)
        assert world.now_s == pytest.approx(HOUR_S, abs=0.01)
        assert now_ns() - began_ns == pytest.approx(HOUR_S * 1e9, abs=1e7)


def test_loop_that_only_reads_the_clock_ends() -> None:
    with World(seed=1):
        until_s = monotonic() + 0.001
        while monotonic() < until_s:
            pass


def test_deadlock_reports_all_waiting_threads() -> None:
    with World(seed=1):
        start_thread("a reader", new_queue().get)
        with pytest.raises(Stuck) as raised:
            new_event().wait()
    assert "the test: an event" in str(raised.value)
    assert "a reader: an item of a queue" in str(raised.value)


def test_run_until_timeout_reports_waiting_threads() -> None:
    with World(seed=1) as world:

        def tick() -> None:
            while True:
                sleep(1)

        start_thread("ticks", tick)
        with pytest.raises(
            Stuck, match=r"new moon not reached within 600 s(.|\n)*ticks: 1 s to pass"
        ):
            world.run_until(lambda: False, "new moon")
        assert world.now_s > 600


def test_lock_is_held_by_one_thread_at_a_time() -> None:
    with World(seed=1) as world:
        lock, inside, seen = new_lock(), [], []

        def work(name: str) -> None:
            with lock:
                inside.append(name)
                seen.append(len(inside))
                sleep(1)
                inside.remove(name)

        joins = [world.start(name, lambda name=name: work(name)) for name in "abc"]
        for join in joins:
            join()
        assert seen == [1, 1, 1]
        assert not lock.acquire(timeout=0) if lock.acquire() else False


def test_lock_acquire_returns_false_on_timeout() -> None:
    with World(seed=1) as world:
        lock = new_lock()
        lock.acquire()
        before_s = world.now_s
        assert not lock.acquire(timeout=5)
        assert world.now_s - before_s == pytest.approx(5, abs=0.01)
        assert not lock.acquire(blocking=False)


def test_reentrant_lock_is_free_after_its_last_release() -> None:
    with World(seed=1) as world:
        lock, taken = new_rlock(), new_event()

        def take() -> None:
            with lock:
                taken.set()

        with lock, lock:
            world.start("other", take)
            assert not taken.wait(1)
        assert taken.wait(1)


def test_semaphore_admits_only_its_count() -> None:
    with World(seed=1):
        semaphore = new_semaphore(2)
        assert [semaphore.acquire(timeout=1) for _ in range(3)] == [True, True, False]
        semaphore.release()
        assert semaphore.acquire(timeout=1)


def test_semaphore_release_of_two_admits_two_waiting_threads() -> None:
    with World(seed=1) as world:
        semaphore, admitted = new_semaphore(2), []
        assert semaphore.acquire()
        assert semaphore.acquire()

        def enter() -> None:
            semaphore.acquire()
            admitted.append(1)

        for number in range(3):
            world.start(f"thread {number}", enter)
        world.sleep(1)
        semaphore.release(2)
        world.sleep(1)
        assert len(admitted) == 2
        semaphore.release(2)
        with pytest.raises(ValueError, match="too many"):
            semaphore.release()


def test_condition_wait_releases_the_lock() -> None:
    with World(seed=1) as world:
        changed, numbers = new_condition(), []

        def add() -> None:
            for number in range(3):
                sleep(1)
                with changed:
                    numbers.append(number)
                    changed.notify_all()

        world.start("adds", add)
        with changed:
            assert changed.wait_for(lambda: len(numbers) == 3, timeout=10)
            assert not changed.wait(timeout=1)
            assert not changed.wait_for(lambda: False, timeout=1)


def test_queue_keeps_the_order_of_items() -> None:
    with World(seed=1):
        items = new_queue()
        start_timer("later", 1, lambda: [items.put(number) for number in range(3)])
        assert [items.get(timeout=2) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(Empty):
            items.get(timeout=1)
        with pytest.raises(Empty):
            items.get_nowait()


def test_cancelled_timer_does_not_run() -> None:
    with World(seed=1):
        fired = []
        start_timer("first", 1, lambda: fired.append(1))
        start_timer("second", 1, lambda: fired.append(2)).set()
        sleep(2)
        assert fired == [1]


def test_executor_limits_its_threads_and_raises_errors() -> None:
    with World(seed=1) as world:
        executor, at_once, most = new_executor("pool", 2), [0], [0]

        def work() -> None:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            sleep(1)
            at_once[0] -= 1

        futures = [executor.submit(work) for _ in range(6)]
        failing = executor.submit(lambda: 1 // 0)
        for future in futures:
            future.result()
        with pytest.raises(ZeroDivisionError):
            failing.result()
        assert most == [2]
        assert world.now_s == pytest.approx(3, abs=0.1)
        executor.shutdown(wait=True)
        with pytest.raises(RuntimeError):
            executor.submit(work)


def interleaving(seed: int) -> tuple[list[str], str]:
    """Return the order in which three threads run, and the digest of the world."""
    with World(seed) as world:
        steps: list[str] = []

        def walk(name: str) -> None:
            for _ in range(5):
                steps.append(name)
                sleep(0)
            steps.append(str(random_uuid()))

        for join in [world.start(name, lambda name=name: walk(name)) for name in "abc"]:
            join()
        return steps, world.digest


def test_seed_decides_the_order_of_threads() -> None:
    seen = {seed: interleaving(seed) for seed in range(10)}
    assert len({tuple(steps) for steps, _ in seen.values()}) == 10
    assert {seed: interleaving(seed) for seed in range(10)} == seen


def test_waiting_thread_ends_with_the_world() -> None:
    left = []
    with World(seed=1) as world:

        def work() -> None:
            try:
                new_event().wait()
            finally:
                left.append("left")

        world.start("waits", work)
        sleep(1)
    assert left == ["left"]


def test_connect_to_unbound_port_is_refused() -> None:
    with World(seed=1), pytest.raises(ConnectionRefusedError):
        connect(("127.0.0.1", 9092), 1)
