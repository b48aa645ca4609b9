"""Partitions that a broker leads, and those that it leads no more.

In any order: ``tests/cluster/test_at_random.py``, which makes the same checks
(``tests/broker/leadership_inside.py``) now and then, and at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from weakref import WeakSet

import pytest

from barnabas.broker.cluster.leading.states import AFTER, State
from barnabas.broker.cluster.leading.upkeep import Upkeep
from barnabas.broker.cluster.view import Leader
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.errors import Corrupt
from tests.broker.data_plane import Named, Wire, batch, produce_request
from tests.broker.handlers.test_group_offsets import Client
from tests.broker.leadership_inside import check_at_rest, check_leadership
from tests.broker.moves import (
    Held,
    assign,
    key_at,
    lead,
    led_cluster,
    log_of,
    named,
    partition_id,
    seize,
    state,
    stored,
)
from tests.requests import commit_request
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

AWAY, READING, OPENED, SERVED, DRAINING = State
PLACE = (GROUP_OFFSETS, 0)
"""The partition that goes through all states."""
GROUP = key_at(0, "g")
LONG = 70
"""Batches of a log that is read by more than one question."""
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster({"data": [0]}, brokers=2) as cluster:
        for each in cluster.brokers:
            each.port = each.address[1]
        with Client(cluster.brokers[0]) as client:
            assert client.commit(GROUP, {("data", 0): 7}) == {0}
        yield cluster


@pytest.fixture
def first(cluster):
    """Broker 0, which leads everything before each test, and is at rest after it."""
    check_at_rest(cluster)
    lead(cluster, {"data": [0]})
    yield cluster.brokers[0]
    cluster.release_commits(0)
    check_at_rest(cluster)


@pytest.fixture
def data(cluster, first):
    """A new topic, which broker 0 leads."""
    name = f"data-{next(NUMBERS)}"
    cluster.create_topic(name, 1)
    lead(cluster, {name: [0]})
    return named(first, name)


@pytest.fixture
def wire(first):
    with Wire(first.address) as wire:
        yield wire


# ------------------------------------------------------------------------ each event in each state


class Stage:
    """The partition of a coordinator, in a state that a test chooses."""

    def __init__(self, cluster, monkeypatch):
        self.cluster = cluster
        self.broker = cluster.brokers[0]
        self.leadership = self.broker.server.leadership
        self.partition_id = partition_id(self.broker, *PLACE)
        self.patch = monkeypatch
        self.held = []
        self.wires = contextlib.ExitStack()

    @property
    def state(self):
        return state(self.broker, *PLACE)

    def becomes(self, expected):
        wait_until(lambda: self.state is expected, lambda: f"{self.state}, not {expected}")

    def hold(self, owner, name):
        self.held.append(Held(self.patch, owner, name))

    def reach(self, wanted):
        if wanted in {AWAY, READING, OPENED}:
            seize(self.cluster, *PLACE, 1)
            self.becomes(AWAY)
        if wanted is READING:
            self.hold(self.broker.server._member.durable_logs, "reading")
        elif wanted is OPENED:
            self.hold(self.broker.server._home.committer, "write_segments")
        if wanted in {READING, OPENED}:
            assign(self.cluster, *PLACE, 0)
        elif wanted is DRAINING:
            self.place()
            self.cluster.want(*PLACE, 1)
        self.becomes(wanted)
        check_leadership(self.broker)

    def place(self):
        """Send a commit that does not reach the store yet."""
        log = log_of(self.broker, *PLACE)
        self.cluster.hold_commits(0)
        wire = self.wires.enter_context(Wire(self.broker.address))
        wire.send(OFFSET_COMMIT, commit_request(GROUP, {("data", 0): 8}), 8)
        wait_until(lambda: log.next_offset > log.high_watermark)

    def let_go(self):
        for each in self.held:
            each.release()
        self.cluster.release_commits(0)

    # Events

    def is_led_again(self):
        """Name this broker again, in a later epoch."""
        assign(self.cluster, *PLACE, 0)

    def is_led_elsewhere(self):
        assign(self.cluster, *PLACE, 1)

    def is_compared_again(self):
        """Compare all partitions with a view that shows nothing new."""

        def look():
            self.leadership._compared_version = None
            self.leadership.follow_view()

        self.broker.call(look)
        wait_until(lambda: not self.leadership._is_looking)

    def has_an_older_view(self):
        """Compare with a copy of the metadata that lags behind; mutant: it is believed."""
        view = self.broker.server.view
        genuine = view.leader_of
        older = Leader(1, stored(self.cluster, *PLACE).leader_epoch - 2)
        with self.patch.context() as patch:
            patch.setattr(
                view, "leader_of", lambda at: older if at == self.partition_id else genuine(at)
            )
            self.is_compared_again()

    def is_released(self):
        self.broker.call(lambda: self.leadership.release(self.partition_id, lambda: None))

    def is_damaged(self):
        """Read another copy of its files."""
        log = log_of(self.broker, *PLACE)
        if log is not None:
            self.broker.call(lambda: self.leadership.reload(log))


EXPECTED = {
    Stage.is_led_again: (READING, READING, READING, READING, READING),
    Stage.is_led_elsewhere: (AWAY, AWAY, AWAY, AWAY, AWAY),
    Stage.is_compared_again: (AWAY, READING, OPENED, SERVED, DRAINING),
    Stage.has_an_older_view: (AWAY, READING, OPENED, SERVED, DRAINING),
    Stage.is_released: (AWAY, AWAY, AWAY, AWAY, DRAINING),
    Stage.is_damaged: (AWAY, READING, READING, READING, DRAINING),
}
CASES = [
    pytest.param(before, event, after, id=f"{event.__name__}-{before.name}")
    for event, row in EXPECTED.items()
    for before, after in zip(State, row, strict=True)
]


@pytest.mark.parametrize(("before", "event", "after"), CASES)
def test_event_in_each_state(cluster, first, monkeypatch, before, event, after):
    stage = Stage(cluster, monkeypatch)
    with stage.wires:
        stage.reach(before)
        if after is READING and before is not READING:
            stage.hold(first.server._member.durable_logs, "reading")
        event(stage)
        stage.becomes(after)
        check_leadership(first)
        stage.let_go()
        if cluster.leader(*PLACE) == 0 and stage.state is AWAY:
            assign(cluster, *PLACE, 0)  # In a later epoch, or no broker leads it.
        check_at_rest(cluster)
        lead(cluster, {"data": [0]})
        with Client(first) as client:
            assert client.fetch(GROUP)[("data", 0)] in {7, 8}
            assert client.commit(GROUP, {("data", 0): 7}) == {0}


def test_table_has_every_state():
    assert [*AFTER] == [*State]


@pytest.mark.parametrize("before", [READING, SERVED, DRAINING])
def test_partition_of_a_deleted_topic(cluster, first, data, wire, monkeypatch, before):
    reads = Held(monkeypatch, first.server._member.durable_logs, "reading")
    if before is READING:
        assign(cluster, data.name, 0, 1)
        wait_until(lambda: state(first, data.name, 0) is AWAY)
        assign(cluster, data.name, 0, 0)
    elif before is DRAINING:
        cluster.hold_commits(0)
        wire.send(PRODUCE, produce_request(9, data, (0, batch())), 9)
        wait_until(lambda: log_of(first, data.name, 0).next_offset == 1)
        cluster.want(data.name, 0, 1)
    wait_until(lambda: state(first, data.name, 0) is before)
    released = []
    found = partition_id(first, data.name, 0)
    first._do(first.server.catalogue.delete_topic(data.id))
    cluster.release_commits(0)
    first.call(lambda: first.server.leadership.release(found, lambda: released.append(found)))
    assert released == [found], "of what is not there, nothing is waited for"
    assert found not in first.server.logs.logs
    reads.release()


# --------------------------------------------------------------------------------- logs that come


@pytest.mark.parametrize("count", [1, LONG])
def test_log_that_goes_again_leaves_nothing(cluster, first, data, monkeypatch, count):
    """Mutant: what was read too late is taken. ``check_at_rest`` finds what it holds."""
    seize(cluster, data.name, 0, 1)
    with Wire(cluster.brokers[1].address) as other:
        for _ in range(count):
            assert other.produce(data, batch(b"v" * 100)).error_code == 0
    loads = Held(monkeypatch, first.server.leadership, "_load", has_result=True)
    assign(cluster, data.name, 0, 0)
    wait_until(lambda: loads.calls)
    assert state(first, data.name, 0) is READING
    seize(cluster, data.name, 0, 1)
    wait_until(lambda: state(first, data.name, 0) is AWAY)
    loads.release()
    check_at_rest(cluster)
    assert log_of(first, data.name, 0) is None


def test_log_that_is_led_again_while_it_is_read_is_opened_once(cluster, first, data, monkeypatch):
    seize(cluster, data.name, 0, 1)
    wait_until(lambda: state(first, data.name, 0) is AWAY)
    loads = Held(monkeypatch, first.server.leadership, "_load", has_result=True)
    assign(cluster, data.name, 0, 0)
    wait_until(lambda: loads.calls == 1)
    assign(cluster, data.name, 0, 0)
    wait_until(lambda: loads.calls == 2)
    loads.release()
    wait_until(lambda: state(first, data.name, 0) is SERVED)
    epoch = stored(cluster, data.name, 0).leader_epoch
    assert log_of(first, data.name, 0).leader_epoch == epoch


def test_long_log_is_in_its_segments_when_it_is_served(cluster, first, data):
    seize(cluster, data.name, 0, 1)
    expected = [b"%d" % number for number in range(LONG)]
    with Wire(cluster.brokers[1].address) as other:
        for value in expected:
            assert other.produce(data, batch(value)).error_code == 0
    cluster.move(data.name, 0, to=0)
    assert not log_of(first, data.name, 0).unflushed
    check_at_rest(cluster)
    with Wire(first.address) as wire:
        assert wire.read(data) == expected
        assert wire.produce(data, batch(b"more")).error_code == 0
        assert wire.read(data) == [*expected, b"more"]


async def offload_nothing(_upkeep):
    """Remove no segments that the store has."""


@pytest.fixture
def crowded(cluster, first, monkeypatch):
    """Broker 0 is to lead a long log, for which its disk is too small, and a short one.

    Its other logs make no room for them.
    """
    monkeypatch.setattr(Upkeep, "_offload", offload_nothing)
    names = [f"crowd-{next(NUMBERS)}" for _ in range(2)]
    for name in names:
        cluster.create_topic(name, 1)
        lead(cluster, {name: [1]})
    with Wire(cluster.brokers[1].address) as other:
        for name, count in zip(names, (2 * LONG, LONG), strict=True):
            for _ in range(count):
                assert other.produce(Named(name), batch(bytes(100))).error_code == 0
    disk = first._file_system
    disk.capacity_bytes = disk.used_bytes + 20_000
    for name in names:
        assign(cluster, name, 0, 0)
    yield names
    disk.capacity_bytes = None
    wait_until(lambda: not first.server.logs.full, "the broker has found room again")
    for name in names:
        topic_id = first.server.catalogue.topics[name].topic_id
        first._do(first.server.catalogue.delete_topic(topic_id))


def test_log_without_room_keeps_none_that_fits(world, first, crowded, caplog):
    """The room for the long one might never come."""
    long, short = crowded
    wait_until(lambda: state(first, short, 0) is SERVED)
    world.sleep(300)
    assert state(first, long, 0) is READING
    assert not first.server.logs.exhausted
    assert first.server._member.durable_logs.short_bytes.held == 0
    first._file_system.capacity_bytes += 100_000
    wait_until(lambda: state(first, long, 0) is SERVED, seconds=120)
    assert log_of(first, long, 0).next_offset == 2 * LONG
    (line,) = (each for each in caplog.messages if "disk full, partition not loaded yet" in each)
    assert f"{long}-0 needed_bytes=" in line


@pytest.mark.parametrize("ends", ["is moved", "is deleted"])
def test_log_that_goes_waits_for_no_room(cluster, first, crowded, ends):
    long, short = crowded
    wait_until(lambda: state(first, short, 0) is SERVED)
    if ends == "is moved":
        seize(cluster, long, 0, 1)
    tasks = first.call(asyncio.all_tasks)
    waiting = [each for each in tasks if each.get_name() == f"load {long}"]
    if ends == "is deleted":
        assert len(waiting) == 1
        topic_id = first.server.catalogue.topics[long].topic_id
        first._do(first.server.catalogue.delete_topic(topic_id))
        cluster.create_topic(long, 1)  # For the fixture.
    wait_until(lambda: all(each.done() for each in waiting))


def test_nothing_is_held_of_a_damaged_log_until_it_is_read_again(cluster, first, data, monkeypatch):
    held = WeakSet()

    class Beginning:
        """All that there is of a damaged log."""

    @contextlib.contextmanager
    def reading(*_given, **_more):
        beginning = Beginning()
        held.add(beginning)
        raise Corrupt("partition in the store", 0, f"{beginning} ends too early")
        yield

    seize(cluster, data.name, 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(first.server._member.durable_logs, "reading", reading)
        assign(cluster, data.name, 0, 0)
        wait_until(lambda: first.server.leadership.damaged() == [f"{data.name}-0"])
        gc.collect()
        assert [*held] == []
    wait_until(lambda: state(first, data.name, 0) is SERVED)
    assert first.server.leadership.damaged() == []


def test_log_is_not_read_before_all_is_known_of_the_former(cluster, first, data, wire, monkeypatch):
    """Mutant: else the refusal of what the former one has placed would close the new one."""
    reads = Held(monkeypatch, first.server._member.durable_logs, "reading")
    reads.release()
    cluster.hold_commits(0)
    wire.send(PRODUCE, produce_request(9, data, (0, batch(b"lost"))), 9)
    wait_until(lambda: log_of(first, data.name, 0).next_offset == 1)
    seize(cluster, data.name, 0, 1)
    wait_until(lambda: state(first, data.name, 0) is AWAY)
    assign(cluster, data.name, 0, 0)
    wait_until(lambda: state(first, data.name, 0) is READING)
    first.call(lambda: None)
    assert reads.calls == 0
    cluster.release_commits(0)
    answer = wire.receive().responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    wait_until(lambda: state(first, data.name, 0) is SERVED)
    log = log_of(first, data.name, 0)
    assert wire.produce(data, batch(b"kept")).base_offset == 0
    assert log_of(first, data.name, 0) is log
    assert wire.read(data) == [b"kept"]


def test_log_is_opened_with_the_settings_of_that_moment(cluster, first, data, monkeypatch):
    seize(cluster, data.name, 0, 1)
    loads = Held(monkeypatch, first.server.leadership, "_load", has_result=True)
    assign(cluster, data.name, 0, 0)
    wait_until(lambda: loads.calls)
    configs = first.server.catalogue.configs
    first._do(configs.alter_topic_configs(data.name, lambda _: {"retention.ms": "5"}))
    loads.release()
    wait_until(lambda: state(first, data.name, 0) is SERVED)
    assert log_of(first, data.name, 0).config.retention_ms == 5


# ------------------------------------------------------------------------------------ the view


def test_released_partition_is_not_taken_up_again_in_its_epoch(cluster, first, monkeypatch):
    """A view that shows all partitions names this broker still (R11)."""
    stage = Stage(cluster, monkeypatch)
    stage.is_released()
    stage.becomes(AWAY)
    stage.is_compared_again()
    assert stage.state is AWAY
    stage.is_led_again()
    stage.becomes(SERVED)


def test_only_what_has_changed_is_compared_with_the_view(cluster, first, data, monkeypatch):
    """A cluster has thousands of partitions, and a few of them move at a time."""
    view, compared = first.server.view, []
    genuine = view.leader_of
    compare = first.server.leadership._compare

    def record(place):
        compared.append(place.partition.partition_id)
        return compare(place)

    monkeypatch.setattr(first.server.leadership, "_compare", record)
    cluster.move(data.name, 0, to=1)
    assert {*compared} == {partition_id(first, data.name, 0)}
    assert genuine(compared[0]).node_id == 1


def test_commits_of_other_partitions_keep_none_from_being_released(cluster, first, data, wire):
    cluster.hold_commits(0)
    wire.send(PRODUCE, produce_request(9, data, (0, batch())), 9)
    wait_until(lambda: log_of(first, data.name, 0).next_offset == 1)
    cluster.move("data", 0, to=1)
    cluster.release_commits(0)
    assert wire.receive().responses[0].partition_responses[0].error_code == 0


def test_traffic_of_released_log_is_unchanged(cluster, first, data, wire):
    log = log_of(first, data.name, 0)
    assert wire.produce(data, batch()).error_code == 0
    cluster.move(data.name, 0, to=1)
    assert log.traffic().records == 1
