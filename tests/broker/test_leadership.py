"""What happens to the partitions that a broker leads, and to those that it leads no more."""

from __future__ import annotations

import gc
from random import Random
from weakref import WeakSet

import pytest

from barnabas.broker.cluster.view import NO_NODE, Leader
from barnabas.broker.topics import leadership
from barnabas.broker.topics.leadership import AFTER, State
from barnabas.storage.config import LogConfig
from barnabas.storage.log_directory import DELETED_SUFFIX, LOADING_SUFFIX
from tests.broker.leading import DATA, INTERNAL, Cluster, Member
from tests.seeds import SEED
from tests.storage.stores import ROOT, read_all

AWAY, READING, OPENED, SERVED, DRAINING = State
STEPS = 1500
"""Of a random run."""


@pytest.fixture
async def member():
    """A broker, with one batch in each partition that another one has written."""
    cluster = Cluster()
    before = Member(cluster, 3)
    await before.serve(INTERNAL, DATA)
    for partition_id in (INTERNAL, DATA):
        assert before.place(partition_id, b"first")
    await before.settle()
    assert cluster.held == []
    yield Member(cluster)
    cluster.check()


# ------------------------------------------------------------------- each event in each state


async def reach(member: Member, state: State) -> None:
    """Bring the partition of the coordinator into a state; the other one is served."""
    await member.serve(DATA)
    if state is AWAY:
        return
    member.cluster.assign(INTERNAL, member.session)
    await member.learn()
    if state is READING:
        return
    await member.read()
    if state is OPENED:
        return
    await member.settle()
    if state is DRAINING:
        assert member.place(INTERNAL)
        member.release(INTERNAL)


async def led_again(member):
    """In a later epoch, without a word of what was in between."""
    member.cluster.assign(INTERNAL, member.session)
    await member.learn()


async def led_elsewhere(member):
    member.cluster.assign(INTERNAL, member.cluster.stranger)
    await member.learn()


async def led_by_nobody(member):
    epoch = member.cluster.epoch_of(INTERNAL)
    await member.learn(member.cluster.leaders() | {INTERNAL: Leader(NO_NODE, epoch)})


async def nothing_new(member):
    await member.learn()


async def older_view(member):
    """As from a copy of the metadata that lags behind."""
    await member.learn(member.cluster.leaders() | {INTERNAL: Leader(3, 1)})


async def read(member):
    await member.read()


async def written(member):
    await member.commit()
    await member.write()


async def only_durable(member):
    await member.commit()


async def released(member):
    member.release(INTERNAL)


async def taken(member):
    """The store knows of another leader, and the view does not yet."""
    member.place(INTERNAL)
    member.cluster.assign(INTERNAL, member.cluster.stranger)
    await member.commit()


async def dropped(member):
    """Something else in the same flush is refused."""
    member.place(INTERNAL)
    assert member.place(DATA)
    member.cluster.assign(DATA, member.cluster.stranger)
    await member.commit()


async def session_lost(member):
    assert member.place(DATA)
    member.cluster.index.fence(member.session)
    await member.commit()


async def topic_deleted(member):
    (partition,) = member.topics[0].partitions
    member.leadership.deleted(partition)


EXPECTED = {
    led_again: (READING, READING, READING, READING, READING),
    led_elsewhere: (AWAY, AWAY, AWAY, AWAY, AWAY),
    led_by_nobody: (AWAY, AWAY, AWAY, AWAY, AWAY),
    nothing_new: (AWAY, READING, OPENED, SERVED, DRAINING),
    older_view: (AWAY, READING, OPENED, SERVED, DRAINING),
    read: (AWAY, OPENED, OPENED, SERVED, DRAINING),
    written: (AWAY, READING, SERVED, SERVED, AWAY),
    only_durable: (AWAY, READING, OPENED, SERVED, AWAY),
    released: (AWAY, AWAY, AWAY, AWAY, DRAINING),
    taken: (AWAY, READING, AWAY, AWAY, AWAY),
    dropped: (AWAY, READING, READING, READING, AWAY),
    session_lost: (AWAY, AWAY, AWAY, AWAY, AWAY),
    topic_deleted: (AWAY, AWAY, AWAY, AWAY, AWAY),
}
CASES = [
    pytest.param(state, event, after, id=f"{event.__name__}-{state.name}")
    for event, row in EXPECTED.items()
    for state, after in zip(State, row, strict=True)
]


@pytest.mark.parametrize(("state", "event", "after"), CASES)
async def test_row(member, state, event, after):
    await reach(member, state)
    member.check()
    assert member.state(INTERNAL) is state
    log = member.partitions[INTERNAL].log
    assert member.partitions[INTERNAL].is_coming == (state in {READING, OPENED})
    await event(member)
    assert member.state(INTERNAL) is after
    is_gone = log is not None and after in {AWAY, READING}
    assert (log in member.removed) == is_gone, "who waits for the log is told, and only then"
    if event is topic_deleted:
        assert INTERNAL not in member.store.logs
        return
    assert member.partitions[INTERNAL].is_coming == (after in {READING, OPENED})
    member.check()
    waits = len(member.asked_to_release) - len(member.released)
    assert waits == (len(member.asked_to_release) if after is DRAINING else 0)
    await member.settle()
    member.check()
    end = SERVED if after in {READING, OPENED, SERVED} and event is not taken else AWAY
    if (event, state) == (taken, READING):
        end = SERVED  # It does not write, so it does not learn before the view does.
    assert member.state(INTERNAL) is end
    names = {name for name in member.disk.list_directory("/data") if name.startswith("__")}
    assert names <= ({"__consumer_offsets-0"} if end is SERVED else set())
    if end is SERVED:
        assert member.partitions[INTERNAL].log.next_offset >= 1
    await member.serve(INTERNAL, DATA)
    assert member.place(INTERNAL, b"last")
    await member.settle()
    member.check()
    assert member.cluster.held == [], "what was read is in segments, or not any more"


def test_the_table_says_something_of_every_state():
    assert [*AFTER] == [*State]


@pytest.mark.parametrize("partition_id", [INTERNAL, DATA])
async def test_what_is_read_is_held_until_it_is_in_segments(member, partition_id):
    member.cluster.assign(partition_id, member.session)
    await member.learn()
    await member.read()
    assert member.cluster.held == [partition_id]
    await member.commit()
    assert member.cluster.held == [partition_id]
    assert member.partitions[partition_id].log.unflushed
    await member.write()
    assert not member.partitions[partition_id].log.unflushed
    assert member.cluster.held == []


def stored(log):
    """The batches that readers are given."""
    return [bytes(each) for _, each in read_all(log)]


@pytest.mark.parametrize("partition_id", [INTERNAL, DATA])
async def test_a_long_log_is_in_its_segments_when_it_is_opened(member, partition_id):
    member.cluster.are_long = lambda: True
    member.cluster.assign(partition_id, member.session)
    await member.learn()
    await member.read()
    assert member.state(partition_id) is SERVED
    log = member.partitions[partition_id].log
    assert not log.unflushed
    assert stored(log) == [*map(bytes, member.cluster.read(partition_id).batches)]
    (name,) = (each for each in member.disk.list_directory(ROOT) if LOADING_SUFFIX in each)
    await member.settle()
    assert member.cluster.held == []
    assert name not in member.disk.list_directory(ROOT)
    assert member.disk.list_directory(f"{ROOT}/{log.directory.name}")
    assert member.place(partition_id, b"more")
    await member.settle()
    assert stored(log) == [*map(bytes, member.cluster.read(partition_id).batches)]


@pytest.mark.parametrize("are_long", [False, True])
@pytest.mark.parametrize(
    "when", ["before it is read", "once it is read", "before it has its place"]
)
async def test_a_log_that_goes_again_leaves_nothing(member, when, are_long):
    member.cluster.are_long = lambda: are_long
    await reach(member, READING)
    if when == "before it has its place":
        await member.read()
        await led_elsewhere(member)
    elif when == "once it is read":
        await member.read(lambda: led_elsewhere(member))
    else:
        await led_elsewhere(member)
        await member.read()
    await member.settle()
    assert member.cluster.held == []
    names = member.disk.list_directory(ROOT)
    assert [each for each in names if each.startswith("__consumer_offsets")] == []
    await member.serve(INTERNAL)
    assert len(stored(member.partitions[INTERNAL].log)) == 1


@pytest.fixture
async def crowded(member, monkeypatch):
    """A broker to which two long logs come, for one of which its disk is too small."""
    for name in ("ROOM_PAUSE_S_MIN", "ROOM_PAUSE_S_MAX"):
        monkeypatch.setattr(leadership, name, 0)
    await member.serve(INTERNAL)
    assert member.place(INTERNAL, bytes(20_000))
    await member.settle()
    member.cluster.assign(INTERNAL, member.cluster.stranger)
    await member.learn()
    await member.settle()
    member.cluster.are_long = lambda: True
    member.disk.capacity_bytes = member.disk.used_bytes + 10_000
    for partition_id in (INTERNAL, DATA):
        member.cluster.assign(partition_id, member.session)
    await member.learn()
    return member


async def test_a_log_without_room_keeps_none_that_fits(crowded, caplog):
    """What it would wait for may never come."""
    await crowded.settle()
    assert (crowded.state(INTERNAL), crowded.state(DATA)) == (READING, SERVED)
    assert crowded.cluster.held == []
    assert not crowded.store.exhausted
    (name,) = (each for each in crowded.disk.list_directory(ROOT) if "-" in each)
    assert name == "data-0"
    readings = crowded.cluster.readings
    for _ in range(9):
        await crowded.settle()
    assert crowded.cluster.readings == readings, "there is no more room than before"
    crowded.disk.capacity_bytes += 20_000
    await crowded.turns()
    await crowded.settle()
    assert crowded.state(INTERNAL) is SERVED
    assert len(stored(crowded.partitions[INTERNAL].log)) == 2
    (said,) = (each for each in caplog.messages if "no room on the disk" in each)
    assert "__consumer_offsets-0 needed_bytes=20" in said


async def test_of_logs_without_room_one_at_a_time_is_tried_again(crowded):
    """Two that do not fit together would find none again and again."""
    crowded.disk.capacity_bytes = 0
    await crowded.settle()
    assert (crowded.state(INTERNAL), crowded.state(DATA)) == (READING, READING)
    crowded.disk.capacity_bytes = 1_000_000
    await crowded.turns()
    assert len(crowded.reads) == 1
    await crowded.settle()
    assert (crowded.state(INTERNAL), crowded.state(DATA)) == (SERVED, SERVED)


@pytest.mark.parametrize("ends", ["it is moved", "it is deleted", "the broker ends"])
async def test_who_goes_waits_for_no_room_on_the_disk(crowded, ends):
    await crowded.settle()
    (partition,) = crowded.topics[0].partitions
    assert len(crowded.tasks) == 1
    if ends == "it is moved":
        crowded.release(INTERNAL)
    elif ends == "it is deleted":
        crowded.leadership.deleted(partition)
    else:
        crowded.leadership.close()
    await crowded.turns()
    assert crowded.tasks == []
    assert crowded.cluster.held == []
    assert crowded.place(DATA)
    await crowded.settle()


async def test_nothing_is_held_of_a_damaged_log_until_it_is_read_again(member):
    held: WeakSet[Cluster] = WeakSet()

    def beginning() -> Cluster:
        made = Cluster()
        held.add(made)
        return made

    await reach(member, READING)
    member.cluster.beginning = beginning
    await member.read()
    assert member.leadership.damaged() == ["__consumer_offsets-0"]
    gc.collect()
    assert [*held] == []


# ----------------------------------------------------------------------------------- what is late


async def test_only_what_has_changed_is_compared_with_the_view(member):
    """A cluster has thousands of partitions, and a few of them move at a time."""
    assert sorted(member.compared) == [INTERNAL, DATA], "at first all of it"
    member.compared.clear()
    await member.learn()
    assert member.compared == []
    member.cluster.assign(DATA, member.session)
    await member.learn()
    assert member.compared == [DATA]
    await member.settle()
    assert member.state(DATA) is State.SERVED


async def test_a_gain_that_is_overtaken_by_a_loss_leaves_nothing(member):
    await reach(member, READING)
    readings = member.cluster.readings
    await led_elsewhere(member)
    await member.read()
    assert member.state(INTERNAL) is AWAY
    assert member.cluster.readings == readings, "nobody waits for it"
    assert member.removed == []
    await member.settle()
    member.check()
    assert INTERNAL not in member.store.logs


async def test_a_gain_that_is_overtaken_by_a_later_epoch_opens_that_one_once(member):
    await reach(member, READING)
    await led_again(member)
    assert len(member.reads) == 2
    await member.settle()
    log = member.partitions[INTERNAL].log
    assert log.leader_epoch == member.cluster.epoch_of(INTERNAL)
    assert member.shards == {"__consumer_offsets": log}
    assert member.removed == []


async def test_a_log_that_a_later_leader_has_written_to_is_not_opened(member):
    """The store knows of that one, and the view does not yet."""
    await reach(member, READING)
    other = Member(member.cluster, 2)
    await other.serve(INTERNAL)
    assert other.place(INTERNAL)
    await other.settle()
    await member.read()
    assert member.state(INTERNAL) is AWAY
    await member.learn()
    assert member.state(INTERNAL) is AWAY
    await member.serve(INTERNAL)
    assert member.partitions[INTERNAL].log.next_offset == 2


async def test_a_log_is_not_opened_again_before_all_is_known_of_the_former(member):
    """Else the refusal of what the former one has placed would close the new one."""
    await member.serve(DATA)
    assert member.place(DATA)
    member.engine.end_turns()
    await led_elsewhere(member)
    member.cluster.assign(DATA, member.cluster.stranger)
    await member.learn()
    member.cluster.assign(DATA, member.session)
    await member.learn()
    assert member.state(DATA) is READING
    assert not member.reads
    await member.commit()
    await member.read()
    assert member.state(DATA) is SERVED
    log = member.partitions[DATA].log
    assert member.place(DATA)
    await member.settle()
    assert member.partitions[DATA].log is log
    assert log.high_watermark == 2, "what was refused is not there, what came after is"


async def test_a_partition_that_was_released_is_not_taken_up_again_in_its_epoch(member):
    await reach(member, SERVED)
    member.release(INTERNAL)
    await member.settle()
    assert member.released == [INTERNAL]
    await member.learn()
    assert member.state(INTERNAL) is AWAY
    # A view that shows the same epoch again, as one does that shows all partitions.
    compared = len(member.compared)
    await member.learn(changed={INTERNAL})
    assert member.compared[compared:] == [INTERNAL]
    assert member.state(INTERNAL) is AWAY
    await led_again(member)
    await member.settle()
    assert member.state(INTERNAL) is SERVED


async def test_who_has_placed_nothing_waits_for_nothing_of_others(member):
    await reach(member, SERVED)
    assert member.place(DATA)
    member.release(INTERNAL)
    assert (member.released, member.state(INTERNAL)) == ([INTERNAL], AWAY)
    await member.settle()
    member.check()


async def test_what_was_placed_is_durable_when_a_partition_is_released(member):
    await reach(member, SERVED)
    assert member.place(INTERNAL)
    member.release(INTERNAL)
    member.release(INTERNAL)
    assert member.released == []
    assert not member.place(INTERNAL), "nothing more is placed"
    assert member.partitions[INTERNAL].log.high_watermark == 1
    assert member.shards, "it is still the coordinator"
    await member.commit()
    assert member.released == [INTERNAL, INTERNAL]
    assert member.cluster.index.rows[INTERNAL].log_end_offset == 2
    assert not member.shards
    assert member.partitions[INTERNAL].log is None


async def test_what_others_have_placed_does_not_keep_a_partition_when_it_is_refused(member):
    await reach(member, SERVED)
    assert member.place(DATA)
    member.release(INTERNAL)
    member.cluster.assign(DATA, member.cluster.stranger)
    await member.commit()
    assert member.released == [INTERNAL]
    assert (member.state(INTERNAL), member.state(DATA)) == (AWAY, AWAY)


async def test_who_releases_a_partition_of_a_deleted_topic_is_told(member):
    await reach(member, DRAINING)
    await topic_deleted(member)
    assert member.released == [INTERNAL]
    member.release(INTERNAL)
    assert member.released == [INTERNAL, INTERNAL]


async def test_a_refused_log_is_loaded_again_without_what_was_refused(member):
    await reach(member, SERVED)
    before = member.partitions[INTERNAL].log
    await dropped(member)
    assert before.closed
    assert member.partitions[INTERNAL].log is None
    await member.settle()
    log = member.partitions[INTERNAL].log
    assert (log.next_offset, log.leader_epoch) == (1, before.leader_epoch)
    assert member.shards == {"__consumer_offsets": log}


async def test_a_log_is_opened_with_the_settings_of_that_moment(member):
    await reach(member, READING)
    settings = LogConfig(retention_ms=5)
    member.topics[0].log_config = settings
    await member.settle()
    assert member.partitions[INTERNAL].log.config is settings


async def test_traffic_of_a_log_that_was_let_go_of_stays_what_it_was(member):
    await reach(member, SERVED)
    log = member.partitions[INTERNAL].log
    assert member.place(INTERNAL)
    await member.settle()
    assert log.traffic().records == 1
    await led_elsewhere(member)
    assert log.traffic().records == 1


async def test_nothing_is_opened_once_the_broker_ends(member):
    await reach(member, READING)
    member.leadership.close()
    await member.read()
    await member.learn()
    assert not member.store.logs.keys() - {DATA}


# ----------------------------------------------------------------------------------------- random


class ToAndFro:
    """Two brokers that pass partitions to and fro, and everything that may happen meanwhile."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster()
        self.cluster.are_long = lambda: self.random.random() < 0.5
        self.members = [Member(self.cluster, node_id) for node_id in (1, 2)]
        self.placed = 0

    async def step(self) -> None:
        member = self.random.choice(self.members)
        partition_id = self.random.choice((INTERNAL, DATA))
        kind = self.random.choices(
            ("place", "learn", "read", "commit", "write", "assign", "release", "lose"),
            (30, 12, 12, 20, 12, 3, 1, 0.3),
        )[0]
        if kind == "place":
            self.placed += 1
            member.place(partition_id, b"%d" % self.placed)
        elif kind == "assign":
            self.cluster.assign(partition_id, member.session)
        elif kind == "release":
            member.release(partition_id)
        elif kind == "lose":
            self.cluster.index.fence(member.session)
            member.engine.end_session(member.store)  # It learns it with what comes next.
        else:
            await getattr(member, kind)()
        for each in self.members:
            each.check()
        self.cluster.check()

    async def end(self) -> None:
        """All that the cluster has decided is known, and everything comes to rest."""
        for member in self.members:
            await member.settle()
        for partition_id in (INTERNAL, DATA):
            member = self.random.choice(self.members)
            self.cluster.assign(partition_id, member.session)
        for member in self.members:
            await member.learn()
            await member.settle()
        assert self.cluster.held == []
        for partition_id, leader in self.cluster.leaders().items():
            for member in self.members:
                leads = member.node_id == leader.node_id
                assert (member.state(partition_id) is SERVED) == leads
                if leads:
                    found = stored(member.partitions[partition_id].log)
                    assert found == [*map(bytes, self.cluster.read(partition_id).batches)]
        for member in self.members:
            member.check()
            names = member.disk.list_directory(ROOT)
            led = [each for each in (INTERNAL, DATA) if member.state(each) is SERVED]
            assert sum(name.endswith("-0") for name in names) == len(led)
            assert not any(name.endswith((LOADING_SUFFIX, DELETED_SUFFIX)) for name in names)
        self.cluster.check()


@pytest.mark.parametrize("number", range(12))
async def test_partitions_that_go_to_and_fro(number):
    run = ToAndFro(SEED + number)
    for _ in range(STEPS):
        await run.step()
    await run.end()
    counts = {each: len(found) for each, found in run.cluster.acknowledged.items()}
    assert all(counts.values()), counts
