"""Markers that a coordinator sends to the brokers that lead the partitions of its transactions.

Broker 0 coordinates all transactions. Each rule names the mutant of ``remote_markers.py`` or
``marker_phase.py`` that turns its test red. Random failures: ``tests/cluster/test_at_random.py``.
"""

from __future__ import annotations

import contextlib
import logging
from itertools import pairwise

import pytest

from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.cluster.coordinating import remote_markers
from barnabas.broker.coordination import marker_phase
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.coordinator.transactions.state import CLASSIC
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.write_txn_markers import WRITE_TXN_MARKERS, WriteTxnMarkersResponse
from barnabas.protocol.records import read_header
from barnabas.storage.journal.refusal import Refusal
from tests.broker.coordinators_inside import check_coordinators
from tests.broker.data_plane import Named, Wire
from tests.broker.moves import gain, key_at, lead, led_cluster, log_of, lose, stored
from tests.broker.raw_producer import RawProducer
from tests.crash.transaction_life import batches_of
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

E = ErrorCode
T, BESIDE = Named("t"), Named("beside")
LEADERS = {T.name: [0, 1, 2], BESIDE.name: [1]}
WAIT = {"barnabas.transaction.wait.ms": "30000"}
HERE, AT_FIRST, AT_SECOND = range(3)
"""Partitions of ``t`` that the coordinator and the brokers 1 and 2 lead."""
REFUSALS = [
    E.NOT_LEADER_OR_FOLLOWER,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.INVALID_PRODUCER_EPOCH,
    E.TRANSACTION_COORDINATOR_FENCED,
    E.INVALID_REQUEST,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.KAFKA_STORAGE_ERROR,
    E.REQUEST_TIMED_OUT,
    E.UNKNOWN_SERVER_ERROR,
    E.UNKNOWN_TOPIC_OR_PARTITION,
]


class Decider(RawProducer):
    """A producer that writes nothing: its transactions are markers alone."""

    def __init__(self, cluster, index, name):
        self.cluster = cluster
        self.broker = cluster.brokers[0]
        self.index = index
        super().__init__(Wire(self.broker.address), key_at(index, name), version=11)

    def decide(self, *partitions, commit=True, topic=T):
        """End a transaction on these partitions."""
        assert self.add(topic, *partitions) == 0
        self.end(commit=commit)

    @property
    def is_idle(self):
        """Whether its transaction is complete."""
        transactions = self.broker.server.transactions
        return self.broker.call(lambda: transactions.transaction(self.name).state.is_idle)

    @property
    def owed(self):
        """Partitions that miss their marker."""
        return self.broker.call(lambda: self.broker.server.transactions.awaiting_markers(self.name))

    def complete(self):
        wait_until(lambda: self.is_idle, lambda: f"{self.name}: {self.owed}")
        check_coordinators(self.broker)

    def markers(self, topic, index):
        """Return the headers of its markers in a partition."""
        leader = self.cluster.brokers[self.cluster.leader(topic, index)]
        log = log_of(leader, topic, index)
        headers = leader.call(lambda: [read_header(memoryview(each)) for each in batches_of(log)])
        return [each for each in headers if each.producer_id == self.producer_id]

    def lose(self):
        lose(self.broker, TRANSACTION_STATE, self.index)

    def gain(self):
        gain(self.broker, TRANSACTION_STATE, self.index)


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster(LEADERS, **WAIT) as cluster:
        yield cluster


@pytest.fixture
def producers(cluster, request):
    """Producers of two partitions of the coordinator's topic."""
    lead(cluster, LEADERS)
    made = [Decider(cluster, index, request.node.name) for index in (0, 1)]
    yield made
    for each in made:
        each.wire.socket.close()


@pytest.fixture
def producer(producers):
    return producers[0]


@contextlib.contextmanager
def caught(cluster):
    """Record the requests for markers that the brokers 1 and 2 receive."""
    with (
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS) as first,
        cluster.brokers[2].intercept(WRITE_TXN_MARKERS) as second,
    ):
        yield first.requests, second.requests


def ids_in(request):
    """Return the producer ids of the markers in a request."""
    return [each.producer_id for each in request.markers]


@pytest.mark.parametrize("commit", [True, False])
def test_marker_names_its_transaction_and_its_partition(cluster, producer, commit):
    with caught(cluster) as requests:
        producer.decide(HERE, AT_FIRST, AT_SECOND, commit=commit)
        producer.complete()
    coordinator_epoch = stored(cluster, TRANSACTION_STATE, producer.index).leader_epoch
    for index, sent in zip((AT_FIRST, AT_SECOND), requests, strict=True):
        ((marker,),) = (each.markers for each in sent)
        assert (marker.producer_id, marker.producer_epoch) == (producer.producer_id, producer.epoch)
        assert marker.transaction_result == commit
        assert marker.transaction_version == CLASSIC
        assert marker.coordinator_epoch == coordinator_epoch
        (topic,) = marker.topics
        assert (topic.name, topic.partition_indexes) == (T.name, [index])
        assert topic.topic_id == cluster.brokers[0].server.catalogue.topics[T.name].topic_id
        assert topic.leader_epoch == stored(cluster, T.name, index).leader_epoch
    assert [len(producer.markers(T.name, index)) for index in range(3)] == [1, 1, 1]


# ------------------------------------------------------------------------------------------ order


def test_nothing_leaves_before_the_decision_is_durable_r2(world, cluster, producer):
    """Mutant: ``is_durable=True`` for every pending marker."""
    assert producer.add(T, HERE, AT_FIRST, AT_SECOND) == 0
    log = log_of(producer.broker, T.name, HERE)
    end = log.next_offset
    with caught(cluster) as requests:
        cluster.hold_commits(0)
        producer.wire.send(END_TXN, producer.end_request(commit=True), 4)
        wait_until(lambda: log.next_offset == end + 1, "the marker here is appended")
        world.sleep(3)
        assert requests == ([], [])
        cluster.release_commits(0)
        assert producer.wire.receive().error_code == 0
        producer.complete()
        assert [len(each) for each in requests] == [1, 1]


def test_refusal_of_a_decision_lets_no_marker_leave_r2(world, cluster, producer):
    """Mutant: a refused decision counts as durable. Its shard is still here at that moment."""
    assert producer.add(T, AT_FIRST) == 0
    markers = producer.broker.server.transactions.remote_markers
    with caught(cluster) as (sent, _):
        cluster.hold_commits(0)
        producer.wire.send(END_TXN, producer.end_request(commit=True), 4)
        wait_until(lambda: markers._debts)
        (debt,) = markers._debts.values()
        decided = remote_markers._Decided(markers, debt)
        producer.broker.call(lambda: decided.refused(Refusal([])))
        world.sleep(3)
        assert sent == []
        cluster.release_commits(0)
        producer.complete()
        assert len(sent) == 1


def test_transaction_completes_when_all_have_answered_r3(world, cluster, producer):
    """Mutants: ``answered`` completes every pending marker; a sent marker counts as written."""
    with (
        caught(cluster) as (_, second),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, fail=E.NOT_LEADER_OR_FOLLOWER),
    ):
        producer.decide(HERE, AT_FIRST, AT_SECOND)
        world.sleep(5)
        assert not producer.is_idle
        assert producer.owed == [(T.name, AT_FIRST)]
        assert len(second) == 1, "what was answered is not sent again"
    producer.complete()


def test_marker_here_that_cannot_be_written_is_waited_for_r3(world, cluster, producer, monkeypatch):
    writer = producer.broker.server.transactions._markers._markers
    with caught(cluster) as requests, monkeypatch.context() as patch:
        patch.setattr(writer, "write", lambda *_given: E.KAFKA_STORAGE_ERROR)
        producer.decide(HERE, AT_FIRST, AT_SECOND)
        world.sleep(5)
        assert not producer.is_idle
        assert producer.owed == [(T.name, HERE)]
        assert [len(each) for each in requests] == [1, 1]
    producer.complete()
    assert len(producer.markers(T.name, HERE)) == 1


def test_end_of_a_transaction_is_answered_before_its_markers_r4(world, cluster, producer):
    began_s = world.now_s
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, fail=E.NOT_LEADER_OR_FOLLOWER):
        producer.decide(AT_FIRST)
        assert world.now_s - began_s < 1
        assert producer.owed == [(T.name, AT_FIRST)]
    wait_until(lambda: producer.add(T, AT_FIRST) == 0, "the next transaction")
    producer.end()
    producer.complete()


# ---------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("code", [*REFUSALS, None], ids=lambda code: code.name if code else "none")
def test_refused_marker_is_sent_again(cluster, producer, code, caplog):
    """Mutant: UNKNOWN_TOPIC_OR_PARTITION of a peer ends the pending marker (R8).

    The response leaves the marker out if ``code`` is None.
    """
    caplog.set_level(logging.WARNING)
    fault = {"fail": code} if code else {"answer": lambda *_given: WriteTxnMarkersResponse([])}
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, times=20, **fault) as refused:
        producer.decide(AT_FIRST)
        producer.complete()
        assert refused.count == 20
    name = (code or E.UNKNOWN_SERVER_ERROR).name
    reason = f"{T.name}-1 at broker 1"
    reason += " is not known" if code == E.UNKNOWN_TOPIC_OR_PARTITION else f": {name}"
    assert f"id={producer.name} missing=1 attempts=1 reason={reason}" in caplog.text
    assert len(producer.markers(T.name, AT_FIRST)) == 1


def test_broker_that_loses_the_connection_is_asked_again_and_more_rarely(
    world, cluster, producer, caplog
):
    caplog.set_level(logging.WARNING)
    asked_s = []

    def lose_connection(_context, _request):
        asked_s.append(world.now_s)
        raise CloseConnection("lost by the test")

    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, answer=lose_connection, times=14):
        producer.decide(AT_FIRST, AT_SECOND)
        producer.complete()
    pauses_ms = [1000 * (later - former) for former, later in pairwise(asked_s)]
    for pause_ms, expected_ms in zip(pauses_ms, [*range(100, 1001, 100), *[1000] * 3], strict=True):
        assert expected_ms <= pause_ms < expected_ms + 1000, "the connection has pauses of its own"
    lines = [each for each in caplog.messages if "markers of a broker node=1" in each]
    assert len(lines) == 4, "one for each power of two"
    assert f"markers=1 id={producer.name} attempts=1 reason=LOST" in lines[0]


def test_answer_that_comes_too_late_is_asked_for_again(cluster, producer, caplog):
    caplog.set_level(logging.WARNING)
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, delay_ms=40_000, times=1):
        producer.decide(AT_FIRST)
        producer.complete()
    assert f"id={producer.name} attempts=1 reason=LATE" in caplog.text


def test_requests_wait_for_the_pause_of_their_broker(cluster, producers):
    """Mutant: a marker that comes meanwhile is sent at once."""
    first, second = producers
    with (
        caught(cluster) as (sent, _),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, drop=True, times=9) as dropped,
    ):
        first.decide(AT_FIRST)
        wait_until(lambda: dropped.count == 8)
        second.decide(AT_FIRST)
        for each in producers:
            each.complete()
        assert dropped.count == 9
        ids = [each.producer_id for each in producers]
        assert sorted(ids_in(dropped.requests[-1])) == sorted(ids)
        assert len(sent) == 1


# ---------------------------------------------------------------- partitions of the coordinator go


@pytest.mark.parametrize("comes_back", [False, True])
def test_answer_after_the_loss_of_the_shard_is_ignored_r6(world, cluster, producer, comes_back):
    """Mutants: ``forget`` keeps pending markers; a response counts for an ended marker."""
    counts = producer.broker.server.transactions.counts
    with (
        caught(cluster) as (sent, _),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, delay_ms=5_000, times=1),
    ):
        producer.decide(AT_FIRST)
        wait_until(lambda: sent)
        written = counts.markers_written
        producer.lose()
        check_coordinators(producer.broker)
        if comes_back:
            producer.gain()
            assert producer.owed == [(T.name, AT_FIRST)]
        world.sleep(4)
        assert len(sent) == 1, "one request at a time for each broker"
        world.sleep(60)
        assert len(sent) == 1 + comes_back
        assert counts.markers_written == written + comes_back
    if not comes_back:
        producer.gain()
    producer.complete()


def test_nothing_is_sent_for_a_lost_shard_r6(world, cluster, producer):
    """Mutant: ``forget`` leaves what waits, or a timer. One broker pauses, a timer runs."""
    with (
        caught(cluster) as (_, second),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, drop=True) as dropped,
        cluster.brokers[2].intercept(WRITE_TXN_MARKERS, fail=E.NOT_LEADER_OR_FOLLOWER) as refused,
    ):
        producer.decide(AT_FIRST, AT_SECOND)
        wait_until(lambda: dropped.count > 2 and refused.count > 2)
        producer.lose()
        check_coordinators(producer.broker)
        world.sleep(0.1)  # For a request that was on its way.
        counts = dropped.count, refused.count
        world.sleep(60)
        assert (dropped.count, refused.count) == counts
        assert second == []
    producer.gain()
    producer.complete()


def test_shard_is_lost_before_its_decision_is_durable_r6(world, cluster, producer):
    assert producer.add(T, AT_FIRST, AT_SECOND) == 0
    with caught(cluster) as requests:
        cluster.hold_commits(0)
        producer.wire.send(END_TXN, producer.end_request(commit=True), 4)
        transactions = producer.broker.server.transactions
        wait_until(lambda: producer.broker.call(lambda: transactions.is_deciding(producer.name)))
        producer.lose()
        cluster.release_commits(0)
        assert producer.wire.receive().error_code == 0
        world.sleep(60)
        assert requests == ([], [])
    producer.gain()
    producer.complete()


def test_markers_that_wait_behind_a_request_go_with_their_shard_r6(world, cluster, producers):
    first, second = producers
    with (
        caught(cluster) as (sent, _),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, delay_ms=2_000, times=1),
    ):
        first.decide(AT_FIRST)
        second.decide(AT_FIRST)
        second.lose()
        first.complete()
        world.sleep(10)
        assert [ids_in(each) for each in sent] == [[first.producer_id]]
    second.gain()
    second.complete()


def test_all_markers_are_sent_again_after_a_gain(cluster, producer):
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, drop=True):
        producer.decide(HERE, AT_FIRST, AT_SECOND)
        wait_until(lambda: producer.owed == [(T.name, AT_FIRST)])
        producer.lose()
        producer.gain()
    producer.complete()
    assert [len(producer.markers(T.name, index)) for index in range(3)] == [2, 1, 2], (
        "what is known of markers is in memory only"
    )


# -------------------------------------------------------------------------------- another leader


def test_markers_go_to_the_present_leader(cluster, producer, caplog):
    """The broker cannot be reached; it keeps no marker of a partition that has another leader."""
    caplog.set_level(logging.WARNING)
    cluster.cut(0, 1)
    producer.decide(AT_FIRST)
    wait_until(lambda: f"id={producer.name} attempts=2 reason=" in caplog.text)
    assert producer.broker.server.transactions.remote_markers.owed_by_node() == {1: 1}
    cluster.move(T.name, AT_FIRST, to=2)
    producer.complete()
    cluster.mend(0, 1)


def test_unreachable_broker_keeps_no_marker_that_has_another_leader(
    cluster, producers, monkeypatch
):
    """Mutant: only what is sent next has its leader looked up."""
    monkeypatch.setattr(remote_markers, "MARKERS_PER_REQUEST_MAX", 1)
    cluster.cut(0, 1)
    for each in producers:
        assert each.add(BESIDE, 0) == 0
        each.decide(AT_FIRST)
    cluster.move(T.name, AT_FIRST, to=2)
    for each in producers:
        wait_until(lambda each=each: each.owed == [(BESIDE.name, 0)])
    cluster.mend(0, 1)
    for each in producers:
        each.complete()


# ----------------------------------------------------------------------- many markers, and limits


def test_one_request_at_a_time_with_all_that_waits(world, cluster, producers):
    first, second = producers
    with (
        caught(cluster) as (sent, _),
        cluster.brokers[1].intercept(WRITE_TXN_MARKERS, delay_ms=2_000, times=1),
    ):
        assert second.add(BESIDE, 0) == 0
        first.decide(AT_FIRST)
        second.decide(AT_FIRST)
        world.sleep(1)
        assert len(sent) == 1
        for each in producers:
            each.complete()
        (marker,) = sent.pop().markers
        assert len(sent) == 1
        assert {(each.name, *each.partition_indexes) for each in marker.topics} == {
            (T.name, AT_FIRST),
            (BESIDE.name, 0),
        }


@pytest.mark.parametrize("limit", ["MARKERS_PER_REQUEST_MAX", "REQUEST_BYTES_MAX"])
def test_requests_are_limited(cluster, producers, monkeypatch, limit):
    monkeypatch.setattr(remote_markers, limit, 1)
    with caught(cluster) as (sent, _):
        for each in producers:
            assert each.add(BESIDE, 0) == 0
            each.decide(AT_FIRST)
        for each in producers:
            each.complete()
        topics = [topic for each in sent for marker in each.markers for topic in marker.topics]
        assert len(sent) == len(topics) == 4


def test_attempt_waits_for_the_turns_of_the_one_before(cluster, producer, monkeypatch):
    """Mutant: what is refused meanwhile is tried at once, and the rest is written twice."""
    monkeypatch.setattr(marker_phase, "MARKERS_PER_TURN", 1)
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, fail=E.NOT_LEADER_OR_FOLLOWER, times=5):
        assert producer.add(BESIDE, 0) == 0
        producer.decide(HERE, AT_FIRST, AT_SECOND)
        producer.complete()
    assert [len(producer.markers(T.name, index)) for index in range(3)] == [1, 1, 1]


# ------------------------------------------------------------------------- topics that are deleted


class Absent:
    """The topic ``t``, which a broker's catalogue does not show until it asks the MetaStore."""

    def __init__(self, broker, monkeypatch):
        self.is_shown = True
        self.comes_back = False
        self.refusal = None
        self.looks = 0
        catalogue = broker.server.catalogue
        self._partition = catalogue.partition
        monkeypatch.setattr(catalogue, "partition", self._look)
        monkeypatch.setattr(catalogue, "catch_up", self._catch_up)

    def _look(self, topic, index):
        return self._partition(topic, index) if self.is_shown or topic != T.name else None

    async def _catch_up(self):
        self.looks += 1
        if self.refusal is not None:
            raise self.refusal
        self.is_shown = self.is_shown or self.comes_back


@pytest.fixture
def absent(producers, monkeypatch):
    return Absent(producers[0].broker, monkeypatch)


@pytest.mark.parametrize("when", ["before", "asked", "refused", "unreachable"])
def test_deleted_topic_needs_no_marker_r8(cluster, producer, when):
    """The MetaStore alone reports a deletion, regardless of the former leader's response."""
    topic = Named(f"deleted-{when}")
    cluster.create_topic(topic.name, 1)
    cluster.move(topic.name, 0, to=1)
    catalogue = cluster.brokers[1].server.catalogue
    topic_id = catalogue.topics[topic.name].topic_id
    delete = lambda: cluster.brokers[1]._do(catalogue.delete_topic(topic_id))  # noqa: E731  short
    fault = {"drop": True} if when == "unreachable" else {"fail": E.NOT_LEADER_OR_FOLLOWER}
    if when == "asked":
        fault = {"fail": E.UNKNOWN_TOPIC_OR_PARTITION}
    assert producer.add(topic, 0) == 0
    if when == "before":
        delete()
    with cluster.brokers[1].intercept(WRITE_TXN_MARKERS, **fault) as asked:
        producer.end()
        if when != "before":
            wait_until(lambda: asked.count > 2)
            assert not producer.is_idle
            delete()
        producer.complete()


def test_marker_of_unknown_topic_stays_pending_r8(producer, absent):
    """Mutant: what is not known here counts as deleted."""
    assert producer.add(T, AT_FIRST) == 0
    absent.is_shown, absent.comes_back = False, True
    producer.end()
    producer.complete()
    assert absent.looks == 1
    assert len(producer.markers(T.name, AT_FIRST)) == 1


def test_metastore_that_cannot_be_asked_ends_no_debt_r8(world, producer, absent, caplog):
    assert producer.add(T, AT_FIRST) == 0
    absent.is_shown = False
    absent.refusal = KafkaError(E.KAFKA_STORAGE_ERROR)
    producer.end()
    world.sleep(5)
    assert not producer.is_idle
    assert "the MetaStore is unavailable, KAFKA_STORAGE_ERROR" in caplog.text
    absent.refusal = None
    producer.complete()
    absent.is_shown = True
    assert producer.markers(T.name, AT_FIRST) == []
