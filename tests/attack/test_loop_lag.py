"""The probe sees what holds a loop, and for how long."""

from __future__ import annotations

import time

from barnabas.testing import Broker
from tests.attack.loop_lag import LoopLag, loop_lag, round_trips
from tests.waiting import wait_until

HELD_SECONDS = 0.2


def burn() -> None:
    enough = time.thread_time() + HELD_SECONDS
    while time.thread_time() < enough:
        pass


def is_seen_to_burn(broker: Broker, trips: LoopLag) -> bool:
    broker.call(burn)
    return trips.held_ms >= HELD_SECONDS * 1000 * 0.8


def test_work_on_the_loop_is_seen_from_within_and_from_outside():
    with Broker(config={"barnabas.http.listener": "127.0.0.1:0"}) as broker:
        address = broker.call(lambda: broker.server.http.address)
        with loop_lag(broker) as lag, round_trips(address) as trips:
            wait_until(lambda: trips.looks > 1, "it is asked from outside")
            # Requests are sent now and then: some work begins while one is on its way.
            wait_until(lambda: is_seen_to_burn(broker, trips), lambda: f"{trips}")
        assert lag.busy_ms >= HELD_SECONDS * 1000
        assert lag.held_ms >= lag.busy_ms * 0.9
        assert not trips.failed


def test_a_loop_that_waits_is_not_busy():
    with Broker() as broker:
        with loop_lag(broker) as lag:
            broker.call(lambda: time.sleep(HELD_SECONDS))
        assert lag.held_ms >= HELD_SECONDS * 1000 * 0.9
        assert lag.busy_ms < HELD_SECONDS * 1000 / 2
