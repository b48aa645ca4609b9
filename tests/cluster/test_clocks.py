"""Wall clocks of brokers that are set forward and back: leases and timeouts do not depend on
them.
"""

from __future__ import annotations

import pytest

from barnabas.coordinator.transactions.state import State
from tests.cluster.stage import BROKERS, Scripted, Stage, running_stage, written_everywhere
from tests.history.model import FAILED, OK
from tests.waiting import wait_until
from tests.workload.wire_transactions import CLASSIC
from tests.worlds import world

__all__ = ["world"]

TIMEOUT_S = 600
FORWARD, BACK = 1, -1
JUMPS = pytest.mark.parametrize("hours", [FORWARD, BACK])


@pytest.fixture
def stage():
    with running_stage() as made:
        yield made


def begun(stage: Stage) -> Scripted:
    """Return a client with a short transaction over partitions of all brokers."""
    client: Scripted = stage.add(Scripted("timed", stage, CLASSIC))
    client.timeout_ms = TIMEOUT_S * 1000
    client.begin()
    written_everywhere(stage, client)
    return client


def state_of(stage: Stage, client: Scripted) -> State:
    """Return the coordinator's state of the client's transaction."""
    server = stage.cluster.brokers[stage.leader(client.coordinator)].server
    return server.transactions.transaction(client.name).state


@JUMPS
def test_no_session_ends_and_no_transaction(stage, hours):
    client = begun(stage)
    before = stage.snapshot()
    for broker in stage.cluster.brokers:
        broker.clock.jump(hours=hours)
    for number in range(BROKERS):
        stage.heartbeat(number)
    client._ask_coordinator(*client.end_request(commit=True))
    client.note(OK)
    stage.judge(set())
    assert stage.snapshot() == before


@JUMPS
def test_a_transaction_times_out_when_its_time_is_over(stage, hours):
    client = begun(stage)
    coordinator = stage.cluster.brokers[stage.leader(client.coordinator)]
    coordinator.clock.jump(hours=hours)
    coordinator.clock.advance(seconds=TIMEOUT_S - 60)
    assert state_of(stage, client) is State.ONGOING
    coordinator.clock.advance(seconds=120)
    client.note(FAILED)
    stage.judge(set())


@JUMPS
def test_a_successor_whose_clock_is_another_ends_it_whole(stage, hours):
    """A clock ahead ends the transaction at take-over; a clock behind restarts its timeout."""
    client = begun(stage)
    former = stage.leader(client.coordinator)
    for number in stage.others(former):
        stage.cluster.brokers[number].clock.jump(hours=hours)
    stage.cluster.kill(former)
    wait_until(lambda: stage.cluster.leader(*stage.led(client.coordinator)) in stage.others(former))
    stage.cluster.restart(former)
    stage.cluster.wait_until_served()
    if hours == FORWARD:
        wait_until(lambda: state_of(stage, client) is State.COMPLETE_ABORT)
    else:
        assert state_of(stage, client) is State.ONGOING
        successor = stage.cluster.brokers[stage.leader(client.coordinator)]
        successor.clock.advance(seconds=TIMEOUT_S)
    client.note(FAILED)
    stage.judge(set())
