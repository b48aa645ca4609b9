"""Refused flushes, lost sessions, and logs that are loaded again."""

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.errors import LedSince, LogClosed, OutOfOrderSequence
from barnabas.storage.journal.refusal import Refusal
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.readable_log import READ_COMMITTED
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.replicated.loading import DurableLog
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec
from tests.storage.flushes import FlushEngine, Stranger, assign
from tests.storage.journals import Waiting
from tests.storage.stores import NOW_MS, ROOT, Host, batch, from_producer, read_all


class Member:
    """A broker of a cluster with some partitions, and another session that may take them away."""

    def __init__(self, *partition_ids, config=None):
        self.engine = FlushEngine()
        self.index = self.engine.index
        self.stranger = Stranger(self.index).session
        self.disk = SimulatedFileSystem()
        self.disk.make_directory(ROOT)
        self.config = config or LogConfig()
        self.store = LogStore(self.disk, ROOT, engine=self.engine, now_ms=lambda: NOW_MS)
        self.store.callbacks.on_fatal = self._fatal
        self.store.callbacks.on_forgotten = self._forgotten
        self.engine.start(self.store)
        self.heard = []
        for partition_id in partition_ids:
            assign(self.index, partition_id, self.engine.session)
            self.store.create(
                partition_id, f"t{partition_id}", 0, bytes([partition_id] * 16), self.config, 0
            )

    def _fatal(self, error):
        raise error

    def _forgotten(self, logs, moved):
        self.heard.append(("forgotten", sorted(log.partition_id for log in logs), set(moved)))

    def append(self, partition_id, sent=None):
        """Append, wait for it; the answer says "<partition>@<offset>"."""
        appended = self.store.get(partition_id).append(batch() if sent is None else sent)
        word = f"{partition_id}@{appended.base_offset}"
        appended.group.add_waiter(Waiting(self.heard, word))
        return appended

    def settle(self):
        self.engine.settle()

    def take_heard(self):
        heard = [*self.heard]
        self.heard.clear()
        return [entry[:2] if entry[0] == "refused" else entry for entry in heard]

    def load(self, partition_id):
        topic_id = bytes([partition_id] * 16)
        epoch = self.index.rows[partition_id].leader_epoch
        spec = PartitionSpec(partition_id, f"t{partition_id}", 0, topic_id, self.config, epoch)
        return self.store.load(spec, read_log(self.index, partition_id))

    def directories(self):
        return {name for name in self.disk.list_directory(ROOT) if name.startswith("t")}


def test_only_logs_of_refused_or_later_batches_are_forgotten():
    member = Member(1, 2, 3, 4)
    for partition_id in (1, 2, 3, 4):
        member.append(partition_id)
    member.settle()
    assert member.take_heard() == ["1@0", "2@0", "3@0", "4@0"]
    logs = [member.store.get(partition_id) for partition_id in (1, 2, 3)]
    assign(member.index, 1, member.stranger)
    member.append(1)
    member.append(2)
    member.engine.end_turns()
    member.engine.commit()
    member.append(3)
    member.engine.end_turns()
    member.append(3)
    member.engine.hear(1000)
    assert member.take_heard() == [
        ("refused", "1@1"),
        ("refused", "2@1"),
        ("refused", "3@1"),
        ("refused", "3@2"),
        ("forgotten", [1, 2, 3], {1}),
    ]
    assert [log.high_watermark for log in logs] == [1, 1, 1]
    assert list(member.store.logs) == [4]
    member.append(4)
    member.settle()
    assert member.take_heard() == ["4@1"], "what was submitted before is not committed any more"
    assert [member.index.rows[each].log_end_offset for each in (1, 2, 3, 4)] == [1, 1, 1, 2]


def test_a_session_that_is_lost_takes_every_log_along():
    member = Member(1, 2)
    member.append(1)
    member.settle()
    member.append(2)
    member.index.fence(member.engine.session)
    member.settle()
    assert member.take_heard() == ["1@0", ("refused", "2@0"), ("forgotten", [1, 2], {1, 2})]
    assert not member.store.logs


def test_session_loss_is_reported_before_its_logs():
    member = Member(1)
    member.store.callbacks.on_session_lost = lambda: member.heard.append(("session lost",))
    member.append(1)
    member.index.fence(member.engine.session)
    member.settle()
    assert member.take_heard() == [
        ("session lost",),
        ("refused", "1@0"),
        ("forgotten", [1], {1}),
    ]


def test_released_log_still_reports_its_last_batches():
    member = Member(1, 2)
    log = member.store.get(1)
    member.append(1)
    member.engine.end_turns()
    member.store.release(1)
    assert list(member.store.logs) == [2]
    with pytest.raises(LogClosed):
        log.plan_read(0, 100)
    with pytest.raises(LogClosed):
        log.append(batch())
    member.settle()
    assert member.take_heard() == ["1@0"], "it was durable before the partition went"
    assert "t1-0" not in member.directories()


def test_a_released_log_whose_flush_is_refused_is_forgotten_once():
    member = Member(1, 2)
    member.append(1)
    member.append(2)
    member.engine.end_turns()
    member.store.release(1)
    assign(member.index, 1, member.stranger)
    member.settle()
    assert member.take_heard() == [("refused", "1@0"), ("refused", "2@0"), ("forgotten", [2], {1})]


def test_loaded_log_reports_when_it_is_in_its_segments():
    member = Member(1, 2)
    for partition_id in (1, 2):
        member.append(partition_id)
    member.settle()
    for partition_id in (1, 2):
        member.store.release(partition_id)
        assign(member.index, partition_id, member.engine.session)
    member.settle()
    told = []
    for partition_id in (1, 2):
        log = member.load(partition_id)
        member.store.when_written(log, lambda log=log: told.append((log, [*log.unflushed])))
    member.store.release(2)
    member.engine.end_turns()
    member.engine.commit()
    member.engine.hear(1000)
    assert told == []
    member.settle()
    assert told == [(member.store.get(1), [])], "of the one that is gone nothing is told"
    member.store.when_written(member.store.get(1), lambda: told.append("at once"))
    assert told[-1] == "at once"


def test_a_log_with_batches_of_a_later_leader_is_not_loaded():
    member = Member(1)
    assign(member.index, 1, member.engine.session)
    member.store.release(1)
    member.load(1)
    member.append(1)
    member.settle()
    member.store.release(1)
    durable = read_log(member.index, 1)
    spec = PartitionSpec(1, "t1", 0, bytes([1] * 16), member.config, 0)
    with pytest.raises(LedSince):
        member.store.load(spec, durable)
    assert not member.store.logs


def test_repeated_flush_gets_the_lost_outcome():
    """The call is repeated; its batches exist once."""
    member = Member(1)
    member.append(1)
    member.engine.end_turns()
    member.engine.commit_unheard()
    assert member.take_heard() == []
    assign(member.index, 1, member.stranger)
    member.index.fence(member.engine.session)
    member.settle()
    assert member.take_heard() == ["1@0"]
    assert member.index.rows[1].log_end_offset == 1


def test_a_log_start_that_is_refused_closes_its_log():
    """An open log would keep a start that a rebuild does not have (D4)."""
    member = Member(1, 2)
    member.append(1)
    member.settle()
    log = member.store.get(1)
    log.delete_records(1).add_waiter(Waiting(member.heard, "start"))
    assign(member.index, 2, member.stranger)
    member.append(2)
    member.settle()
    assert member.take_heard()[1:] == [
        ("refused", "start"),
        ("refused", "2@0"),
        ("forgotten", [1, 2], {2}),
    ]
    assert log.log_start_offset == 0
    assert member.load(1).log_start_offset == 0


def test_deleted_topic_is_reported_once():
    member = Member(1, 2)
    member.append(1)
    member.settle()
    assert member.directories() == {"t1-0"}
    member.append(1)
    member.append(2)
    member.store.delete(1)
    assign(member.index, 2, member.stranger)
    member.settle()
    assert member.take_heard()[1:] == [
        ("refused", "1@1"),
        ("refused", "2@0"),
        ("forgotten", [2], {2}),
    ]
    assert member.directories() == set(), "what was to be done to its files is done all the same"


def test_the_files_of_a_forgotten_log_make_room_for_those_that_are_loaded():
    member = Member(1, config=LogConfig(segment_bytes=300))
    for _ in range(5):
        member.append(1, batch(value=b"v" * 100))
        member.settle()
    assign(member.index, 1, member.engine.session)
    member.append(1)
    member.engine.end_turns()
    member.engine.commit()
    member.engine.hear(1000)
    row = member.index.rows[1]
    del row.extents[2:]
    row.log_end_offset = 2
    log = member.load(1)
    assert len(read_all(log)) == 2, "from memory"
    member.settle()
    assert not log.unflushed
    assert len(read_all(log)) == 2, "from the files"
    assert {name[:20] for name in member.disk.list_directory(f"{ROOT}/t1-0") if "log" in name} == {
        segment.stem for segment in log.segments
    }


def test_a_log_that_took_a_deleted_ones_place_is_forgotten_with_what_both_had_to_write():
    member = Member(1, 2, config=LogConfig(segment_bytes=150))
    member.append(1, batch(value=b"v" * 100))
    member.settle()
    member.append(1, batch(value=b"v" * 100))
    member.engine.end_turns()
    member.store.delete(1)
    assign(member.index, 1, member.engine.session)
    member.load(1)
    member.append(1)
    member.settle()
    assert member.take_heard() == [
        "1@0",
        ("refused", "1@1"),
        ("refused", "1@1"),
        ("forgotten", [1], {1}),
    ]
    assert member.directories() == set()
    log = member.load(1)
    member.append(1)
    member.settle()
    assert member.take_heard() == ["1@1"]
    assert len(read_all(log)) == 2


def test_a_forgotten_log_has_nothing_for_anybody():
    member = Member(1)
    member.append(1, from_producer(7, 0))
    member.settle()
    log = member.store.get(1)
    assign(member.index, 1, member.stranger)
    member.append(1, from_producer(7, 1))
    member.settle()
    for ask in (
        lambda: log.append(from_producer(7, 0)),
        lambda: log.append_records(batch()),
        lambda: log.append_marker(TransactionMarker(7, -1, coordinator_epoch=0, commit=True)),
        lambda: log.delete_records(0),
        lambda: log.plan_read(0, 100),
        lambda: log.plan_read(1, 100, READ_COMMITTED),
        lambda: log.plan_read(99, 100),
        lambda: log.end_offset_for_epoch(0),
    ):
        with pytest.raises(LogClosed):
            ask()
    assert log.high_watermark == 1


def test_backlog_ends_when_waiting_groups_are_dropped():
    member = Member(1)
    told = []
    member.store.callbacks.on_backlogged = told.append
    assign(member.index, 1, member.stranger)
    for _ in range(13):
        member.append(1, batch(value=bytes(900_000)))
    member.append(1, batch(value=bytes(900_000)))
    member.engine.end_turns()
    assert told == []
    for _ in range(45):
        member.append(1, batch(value=bytes(900_000)))
    assert told == [True]
    member.settle()
    assert told == [True, False]
    assert member.store.journal.backlog_bytes == 0


def test_a_log_is_loaded_at_its_own_epoch_with_all_that_is_known_of_its_producers():
    member = Member(1, 2)
    member.append(1, from_producer(7, 0, transactional=True))
    member.append(2)
    member.settle()
    assign(member.index, 1, member.stranger)
    member.append(1, from_producer(7, 1, transactional=True))
    member.settle()
    assign(member.index, 1, member.engine.session)
    log = member.load(1)
    assert (log.leader_epoch, member.store.get(2).leader_epoch) == (2, 0)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    with pytest.raises(OutOfOrderSequence):
        log.append(from_producer(7, 2, transactional=True))
    assert member.append(1, from_producer(7, 1, transactional=True)).base_offset == 1
    member.settle()
    assert log.leader_epochs == [(0, 0), (2, 1)]
    assert log.end_offset_for_epoch(0) == (0, 1)
    headers = [header.partition_leader_epoch for header, _ in read_all(log)]
    assert headers == [0, 2]


def test_log_without_its_first_batches_is_loaded_from_a_snapshot():
    member = Member(1, config=LogConfig(segment_bytes=200))
    for sequence in range(4):
        member.append(1, from_producer(7, sequence))
        member.settle()
    live = member.store.get(1)
    snapshot = take_snapshot(live)
    durable = DurableLog([], log_start_offset=4, base_offset=4, snapshot=snapshot)
    member.store.delete(1)
    log = member.store.load(PartitionSpec(1, "t1", 0, bytes([1] * 16), member.config, 0), durable)
    assert (log.log_start_offset, log.high_watermark, log.next_offset) == (4, 4, 4)
    assert log.append(from_producer(7, 3)).group is None, "a duplicate (S4)"
    assert member.append(1, from_producer(7, 4)).base_offset == 4
    member.settle()
    assert [header.base_offset for header, _ in read_all(log)] == [4]
    assert [segment.base_offset for segment in log.segments] == [4]


def test_a_start_leaves_the_epoch_of_a_partition_that_has_one_of_its_own():
    host = Host(topics=("mine", "given"))
    mine, given = host.specs
    host.specs = [mine, PartitionSpec(2, "given", 0, given.topic_id, given.config, 17)]
    host.boot()
    assert [log.leader_epoch for log in host.store.logs.values()] == [1, 17]
    appended = host.store.get(2).append(batch())
    host.step()
    assert appended.group.durable
    host.kill()
    host.specs[1] = PartitionSpec(2, "given", 0, given.topic_id, given.config, 18)
    host.boot()
    assert [log.leader_epoch for log in host.store.logs.values()] == [18, 18], "above all found"
    (found,) = read_all(host.store.get(2))
    assert found[0].partition_leader_epoch == 17


def test_a_journal_in_files_refuses_nothing():
    host = Host()
    host.boot()
    host.store.refused(1, {1})
    (error,) = host.failures
    assert "refuses nothing" in str(error)


class Closed:
    """The state of a closed log that the tests use."""

    def __init__(self, topic, topic_id, high_watermark):
        self.topic = topic
        self.topic_id = topic_id
        self.partition = 3
        self.high_watermark = high_watermark


def test_a_refusal_takes_back_what_is_not_durable_by_name_and_by_id():
    refusal = Refusal([Closed("a", b"1", 10), Closed("b", b"2", 5)])
    for topic in ("a", b"1"):
        assert not refusal.takes_back(topic, 3, 9)
        assert refusal.takes_back(topic, 3, 10)
        assert not refusal.takes_back(topic, 4, 10)
    assert refusal.takes_back("b", 3, 5)
    assert not refusal.takes_back("c", 3, 5)


def test_two_topics_of_one_name_are_not_mixed_up_to_anybodys_loss():
    refusal = Refusal([Closed("a", b"1", 10), Closed("a", b"2", 0)])
    assert refusal.takes_back("a", 3, 0)
    assert not refusal.takes_back(b"1", 3, 0)
