"""Threads of a World that wait outside of it, and threads outside that wait for it."""

from __future__ import annotations

import threading

import pytest

from barnabas.broker.testing.world import scheduler
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import new_event, start_thread
from barnabas.testing import Stuck, World


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(scheduler, "BLOCKED_S", 0.1)


def test_blocked_thread_is_named_with_its_stack(capsys):
    go_on = threading.Event()

    def block_for_real():
        go_on.wait(60)

    with World(seed=1):
        start_thread("a reader", block_for_real)
        start_thread("a writer", new_event().wait)
        with pytest.raises(Stuck) as raised:
            sleep(1)
    message = str(raised.value)
    assert message.startswith("a reader waits outside of the World")
    assert "block_for_real" in message
    assert message in capsys.readouterr().err
    go_on.set()


def test_blocked_test_is_reported_to_standard_error(capsys):
    reported = threading.Event()
    with World(seed=1):
        started = start_thread("a waiting thread", new_event().wait)
        sleep(0.001)
        assert started.is_alive()
        while "the test waits outside of the World" not in capsys.readouterr().err:
            reported.wait(0.01)


def test_computing_thread_is_not_blocked():
    def compute():
        return sum(range(1_000_000))

    with World(seed=1):
        for _ in range(10):
            start_thread("computes", compute)
            sleep(1)


def test_wait_outside_of_the_world_raises_an_error():
    with World(seed=1):
        event, errors = new_event(), []

        def wait():
            try:
                event.wait()
            except RuntimeError as error:
                errors.append(str(error))

        outside = threading.Thread(target=wait)
        outside.start()
        outside.join()
    (error,) = errors
    assert error.startswith("a thread outside of the simulation waits for an event")
