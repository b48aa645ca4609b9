"""Large reads share a memory limit, and do not wait for each other in a circle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.broker.cluster.membership.held_bytes import HeldBytes, Share
from barnabas.storage.errors import IndexClosed
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import new_executor, new_lock
from tests.seeds import SEED

MOST = 100
THREADS = 8
LOGS = 400


@pytest.fixture
def held():
    return HeldBytes(MOST)


@pytest.fixture
def threads():
    with new_executor("threads", THREADS) as running:
        yield running


def growing(threads: Any, held: HeldBytes, share: Share, size: int) -> Any:
    """Return a future that is done when a share has grown."""
    future = threads.submit(share.grow, size)
    sleep(1)  # Of simulated time, after which all threads wait.
    return future


def test_share_waits_for_released_bytes(held, threads):
    first, second = held.begin(), held.begin()
    first.grow(60)
    first.settle()
    waiting = growing(threads, held, second, 50)
    assert not waiting.done()
    assert held.held == 60
    first.close()
    waiting.result(60)
    assert held.held == 50
    second.close()
    second.close()
    assert held.held == 0


def test_held_bytes_count_without_waiting(held, threads):
    there = held.hold(3 * MOST)
    share = held.begin()
    waiting = growing(threads, held, share, 1)
    assert not waiting.done()
    there.close()
    waiting.result(60)
    assert held.held == 1


def test_oldest_growing_share_does_not_wait_for_growing_ones(held, threads):
    first, second = held.begin(), held.begin()
    first.grow(50)
    second.grow(50)
    waiting = growing(threads, held, second, 50)
    first.grow(5 * MOST)
    assert not waiting.done()
    first.settle()
    assert not waiting.done(), "it waits for what is on its way to be given back"
    first.close()
    waiting.result(60)
    assert held.held == 100


def test_a_close_ends_all_waits(held, threads):
    held.hold(MOST)
    waiting = growing(threads, held, held.begin(), 1)
    held.close()
    assert isinstance(waiting.exception(60), IndexClosed)


def test_all_shares_get_memory_in_random_order(held, threads):
    """Ones that are larger than all there is among them."""
    chance = random.Random(SEED)
    settled: list[Share] = []
    lock = new_lock()

    def load(sizes: list[int]) -> None:
        share = held.begin()
        for size in sizes:
            share.grow(size)
        share.settle()
        with lock:
            settled.append(share)
            given_back = settled.pop(len(settled) // 2)
        given_back.close()

    logs = [[chance.randrange(1, 60) for _ in range(chance.randrange(1, 6))] for _ in range(LOGS)]
    for each in [threads.submit(load, sizes) for sizes in logs]:
        each.result(60)
    assert held.held == 0
