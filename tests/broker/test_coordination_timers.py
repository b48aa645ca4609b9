"""Timers of a coordinator meeting decisions whose records are on their way to the disk."""

from types import SimpleNamespace

from barnabas.broker.coordination.runner import Coordination
from barnabas.broker.runtime.clock import ManualClock
from barnabas.coordinator.decision import Cancel, Decision, Record, Schedule, Timer
from barnabas.protocol.messages.group_metadata_record import (
    GROUP_METADATA_RECORD,
    GroupMetadataKey,
    GroupMetadataValue,
)

TIMER = Timer("group", "session", "member")
RECORD = Record(GROUP_METADATA_RECORD, GroupMetadataKey("group"), GroupMetadataValue())


class Disk:
    """A log whose appends become durable when the test says so."""

    next_offset = 0

    def __init__(self):
        self.waiters = []
        self.cleaning = SimpleNamespace(walkers=0)

    def append_records(self, batch):
        durable = SimpleNamespace(add_waiter=self.waiters.append)
        return SimpleNamespace(base_offset=0, durable=durable)

    def sync(self):
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()


class Machine:
    """Does what the command says, and notes the timers it is given."""

    def __init__(self):
        self.expired = []

    def decide(self, command, now):
        if isinstance(command, Decision):
            return command
        self.expired.append(command.timer)
        return Decision()

    def apply(self, record, offset):
        pass


def run(effects_before, effects_in_flight):
    """Let the timer expire while a decision is on its way to the disk; return what expired."""
    clock = ManualClock(0)
    disk = Disk()
    machine = Machine()
    partition = SimpleNamespace(log=disk)
    coordination = Coordination(
        "__consumer_offsets",
        lambda: machine,
        lambda timer: SimpleNamespace(timer=timer),
        catalogue=SimpleNamespace(topic=lambda name: SimpleNamespace(partitions=[partition])),
        clock=clock,
        after=lambda: None,
        spawn=lambda coroutine, name: None,
        on_fatal=lambda error: None,
        batch_max_bytes=1 << 20,
    )
    disk.segments = ()
    machine.begin = lambda now: effects_before
    coordination.open()
    coordination.submit("group", Decision("done", (RECORD,), (), effects_in_flight), lambda _: None)
    clock.advance(seconds=2)
    assert machine.expired == [], "it waits behind the decision"
    disk.sync()
    assert not coordination._shards[0].lanes
    at_once = list(machine.expired)
    clock.advance(seconds=10)
    return at_once, machine.expired


def test_a_timer_that_expires_meanwhile_is_decided_afterwards():
    at_once, later = run((Schedule(TIMER, 1000),), ())
    assert at_once == later == [TIMER]


def test_a_timer_that_the_decision_starts_again_has_not_expired():
    at_once, later = run((Schedule(TIMER, 1000),), (Schedule(TIMER, 5000),))
    assert at_once == []
    assert later == [TIMER]


def test_a_timer_that_the_decision_cancels_has_not_expired():
    assert run((Schedule(TIMER, 1000),), (Cancel(TIMER),)) == ([], [])
