"""Changes of ACLs apply at once to undecoded, waiting and cached requests."""

from __future__ import annotations

import pytest

from barnabas.broker.coordination.groups import Groups
from barnabas.broker.handlers.groups import group_offsets
from barnabas.broker.handlers.records.produce_shortcut import ProduceShortcut
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.runtime.disk_readers import DiskReaders
from barnabas.broker.security.acls.operations import Operation, Permission
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
)
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from tests.broker.data_plane import Wire, batch, fetch_request, produce_request, values
from tests.broker.held_markers import Markers
from tests.broker.raw_producer import RawProducer
from tests.broker.security.changing_rights import (
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    become,
    controlled_broker,
    log_end,
    right,
    topic_of,
)
from tests.requests import (
    add_partitions_request,
    added_codes,
    commit_in_transaction_request,
    commit_request,
)
from tests.waiting import wait_until

NONE = ErrorCode.NONE
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN_SESSION = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
ID_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
READ_TOPICS = right(Operation.READ, TOPIC)
WRITE_TOPICS = right(Operation.WRITE, TOPIC)
WRITE_IDS = right(Operation.WRITE, TRANSACTIONAL_ID)
READ_GROUPS = right(Operation.READ, GROUP)
EVERYTHING = (READ_TOPICS, WRITE_TOPICS, WRITE_IDS, READ_GROUPS)
MALLORY = "User:mallory"
LONG_MS = 600_000


# ------------------------------------------------------------------------- the shortcut of Produce


@pytest.fixture
def taken(monkeypatch):
    """Whether the shortcut took each of the requests that it was offered."""
    offered = []
    take = ProduceShortcut.take

    def counted(shortcut, frames):
        pending = take(shortcut, frames)
        offered.append(pending is not None)
        return pending

    monkeypatch.setattr(ProduceShortcut, "take", counted)
    return offered


@pytest.mark.parametrize("version", [9, 13])
def test_the_shortcut_of_produce_forgets_what_was_allowed(taken, version):
    with controlled_broker(WRITE_TOPICS) as (broker, rights), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        for _ in range(5):
            assert wire.produce(topic, batch(b"v"), version=version).error_code == NONE
        assert sum(taken) == 4
        rights.take(WRITE_TOPICS)
        for _ in range(3):
            refused = wire.produce(topic, batch(b"never"), version=version)
            assert (refused.error_code, refused.base_offset) == (TOPIC_DENIED, -1)
        assert (sum(taken), log_end(broker, topic)) == (4, 5)
        rights.give(WRITE_TOPICS)
        for _ in range(2):
            assert wire.produce(topic, batch(b"v"), version=version).error_code == NONE
        assert (sum(taken), log_end(broker, topic)) == (5, 7)


def test_denied_produce_does_not_teach_shortcut(taken):
    """The first request that is decoded teaches the shortcut before its handler refuses it."""
    with controlled_broker() as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        for _ in range(4):
            assert wire.produce(topic, batch(b"never")).error_code == TOPIC_DENIED
        assert (sum(taken), log_end(broker, topic)) == (0, 0)


def test_requests_that_came_together_with_a_change_are_all_allowed_or_not(taken):
    with controlled_broker(WRITE_TOPICS) as (broker, rights), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        request = produce_request(9, topic, (0, batch(b"v")))
        frames = [wire.encode(PRODUCE, request, 9) for _ in range(99)]
        wire.socket.sendall(b"".join(frames[:50]))
        answered = [wire.receive() for _ in range(50)]
        rights.take(WRITE_TOPICS)
        wire.socket.sendall(b"".join(frames[50:]))
        answered += [wire.receive() for _ in range(49)]
        errors = [answer.responses[0].partition_responses[0].error_code for answer in answered]
        assert errors == [NONE] * 50 + [TOPIC_DENIED] * 49
        assert log_end(broker, topic) == 50


@pytest.mark.parametrize("version", [11, 12])
def test_the_shortcut_asks_for_the_transactional_id_too(taken, version):
    with controlled_broker(*EVERYTHING) as (broker, rights), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        producer = RawProducer(wire, "id", version)
        producer.begin(topic, b"first")
        for _ in range(3):
            assert producer.send(topic, b"v").error_code == NONE
        assert sum(taken) >= 2
        known = sum(taken)
        rights.take(WRITE_IDS)
        before = log_end(broker, topic)
        for _ in range(3):
            refused = producer.send(topic, b"never", sequence=4)
            assert refused.error_code == ID_DENIED
        assert (sum(taken), log_end(broker, topic)) == (known, before)


def test_denied_produce_with_acks_0_closes_connection():
    with controlled_broker() as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        request = produce_request(9, topic, (0, batch(b"never")), acks=0)
        wire.send(PRODUCE, request, 9, answered=False)
        assert wire.hung_up()
        assert log_end(broker, topic) == 0


@pytest.mark.parametrize("place", [0, 1])
def test_every_batch_is_looked_at_cve_2018_17196(place):
    """A transactional batch anywhere in a request asks for the transactional id."""
    with controlled_broker(WRITE_TOPICS) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t", 2)
        settings = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
        batches = [batch(b"v"), batch(b"v")]
        batches[place] = batch(b"v", transactional=True, **settings)
        for transactional_id in (None, "id"):
            request = produce_request(
                12, topic, *enumerate(batches), transactional_id=transactional_id
            )
            answer = wire.ask(PRODUCE, request, 12)
            codes = [each.error_code for each in answer.responses[0].partition_responses]
            assert codes == [ID_DENIED, ID_DENIED]
        assert log_end(broker, topic, 0) == log_end(broker, topic, 1) == 0


# ----------------------------------------------------------------------------------------- fetches


@pytest.mark.parametrize("version", [12, 16])
def test_a_session_is_asked_for_each_of_its_partitions_in_every_fetch(version):
    with controlled_broker(right(Operation.READ, TOPIC, "a"), READ_TOPICS) as (broker, rights):
        a, b = topic_of(broker, "a"), topic_of(broker, "b")
        rights.give(WRITE_TOPICS)
        with Wire(broker.address) as wire:
            first = wire.fetch((a, (0, 0)), (b, (0, 0)), session=(0, 0), version=version)
            session, epoch = first.session_id, 1
            assert session

            def next_fetch():
                nonlocal epoch
                answer = wire.fetch(session=(session, epoch), version=version)
                epoch += 1
                return {
                    topic.topic or topic.topic_id: (
                        topic.partitions[0].error_code,
                        values(topic.partitions[0].records),
                    )
                    for topic in answer.responses
                }

            key_of_a, key_of_b = (a.name, b.name) if version < 13 else (a.id, b.id)
            wire.produce(a, batch(b"1"))
            wire.produce(b, batch(b"1"))
            assert next_fetch() == {key_of_a: (NONE, [b"1"]), key_of_b: (NONE, [b"1"])}
            rights.take(READ_TOPICS)
            assert next_fetch()[key_of_b] == (TOPIC_DENIED, [])
            assert next_fetch()[key_of_a] == (NONE, [b"1"])
            rights.take(right(Operation.READ, TOPIC, "a"))
            assert next_fetch() == {key_of_a: (TOPIC_DENIED, []), key_of_b: (TOPIC_DENIED, [])}
            rights.give(READ_TOPICS)
            assert next_fetch()[key_of_b] == (NONE, [b"1"])


@pytest.mark.parametrize("ends", ["data", "time", "another request", "committed data"])
def test_waiting_fetch_returns_no_data_after_permission_loss(ends):
    with controlled_broker(*EVERYTHING) as (broker, rights):
        topic = topic_of(broker, "t")
        with Wire(broker.address) as wire, Wire(broker.address) as writer:
            isolation = int(ends == "committed data")
            request = fetch_request(
                12, (topic, (0, 0)), max_wait_ms=LONG_MS, min_bytes=1, isolation=isolation
            )
            wire.send(FETCH, request, 12)
            wait_until(lambda: broker.call(lambda: len(broker.server.fetch_waits)))
            rights.take(READ_TOPICS)
            if ends == "time":
                broker.clock.advance(milliseconds=LONG_MS + 1)
            elif ends == "another request":
                wire.send(METADATA, MetadataRequest([]), 12)
            else:
                assert writer.produce(topic, batch(b"secret")).error_code == NONE
            (partition,) = wire.receive().responses[0].partitions
            assert (partition.error_code, values(partition.records)) == (TOPIC_DENIED, [])
            assert partition.high_watermark == partition.log_start_offset == -1


def test_a_session_shows_nothing_to_another_client_that_knows_it():
    with controlled_broker(READ_TOPICS, WRITE_TOPICS) as (broker, _):
        topic = topic_of(broker, "t")
        with Wire(broker.address) as wire, Wire(broker.address) as other:
            wire.produce(topic, batch(b"secret"))
            session = wire.fetch((topic, (0, 0)), session=(0, 0)).session_id
            assert session

            become(broker, other, MALLORY)
            answer = other.fetch(session=(session, 1))
            assert (answer.error_code, answer.responses) == (UNKNOWN_SESSION, [])
            for epoch in (0, -1):  # Would end a session of its own.
                assert other.fetch(session=(session, epoch)).error_code == NONE
            (partition,) = wire.fetch(session=(session, 1)).responses
            assert values(partition.partitions[0].records) == [b"secret"]


def test_partitions_that_are_denied_count_like_such_as_are_not_there():
    """Sessions keep little for a missing partition: the session's size must not reveal others."""
    with controlled_broker() as (broker, _), Wire(broker.address) as wire:
        here, gone = topic_of(broker, "here", 101), topic_of(broker, "gone")._replace(name="gone?")
        sessions = []
        for topic in (here, gone):
            asked = [FetchPartition(index, partition_max_bytes=1) for index in range(101)]
            answer = wire.fetch((topic, *asked), session=(0, 0))
            sessions.append(bool(answer.session_id))
            assert {each.error_code for each in answer.responses[0].partitions} == {TOPIC_DENIED}
        assert sessions == [False, False]


# ------------------------------------------------------------- held until a transaction has ended


@pytest.fixture
def markers(monkeypatch):
    return Markers(monkeypatch)


@pytest.fixture
def ending(markers):
    """A producer whose transaction is decided and has no marker yet, and all that is around it."""
    settings = {"barnabas.transaction.wait.ms": str(LONG_MS)}
    with controlled_broker(*EVERYTHING, **settings) as (broker, rights):
        topic = topic_of(broker, "t", 2)
        with Wire(broker.address) as wire:
            wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
            producer = RawProducer(wire, "id")
            producer.begin(topic, b"first")
            markers.stop()
            producer.end()
            yield broker, rights, producer, topic


def goes_on(broker, rights, markers, lost):
    """Take a right away from what is held, and let the transaction end."""
    transactions = broker.server.transactions
    wait_until(
        lambda: broker.call(lambda: transactions.requests_waiting or transactions.held_bytes)
    )
    rights.take(lost)
    markers.go_on()


@pytest.mark.parametrize(("lost", "code"), [(WRITE_TOPICS, TOPIC_DENIED), (WRITE_IDS, ID_DENIED)])
def test_a_produce_that_was_held(ending, markers, lost, code):
    broker, rights, producer, topic = ending
    before = log_end(broker, topic)
    producer.wire.send(PRODUCE, producer.request(topic, (0, producer.batch(topic, b"never"))), 12)
    goes_on(broker, rights, markers, lost)
    (answer,) = producer.wire.receive().responses[0].partition_responses
    assert answer.error_code == code
    wait_until(lambda: log_end(broker, topic) == before + 1)  # The marker of the one before.
    transaction = broker.call(lambda: broker.server.transactions.transaction("id"))
    assert not transaction.partitions


def txn_commit_request(producer, topic):
    identity = producer.producer_id, producer.epoch
    return commit_in_transaction_request("id", "g", identity, {(topic.name, 0): 5})


@pytest.mark.parametrize(
    ("lost", "code"),
    [(WRITE_IDS, ID_DENIED), (READ_GROUPS, GROUP_DENIED), (READ_TOPICS, TOPIC_DENIED)],
)
def test_a_commit_in_a_transaction_that_was_held(ending, markers, lost, code):
    broker, rights, producer, topic = ending
    request = txn_commit_request(producer, topic)
    producer.wire.send(TXN_OFFSET_COMMIT, request, 5)
    goes_on(broker, rights, markers, lost)
    (partition,) = producer.wire.receive().topics[0].partitions
    assert partition.error_code == code
    transaction = broker.call(lambda: broker.server.transactions.transaction("id"))
    assert not transaction.partitions


def test_a_new_instance_of_a_producer_that_was_held(ending, markers):
    broker, rights, producer, _ = ending
    producer.wire.send(INIT_PRODUCER_ID, InitProducerIdRequest("id", 1000), 5)
    goes_on(broker, rights, markers, WRITE_IDS)
    answer = producer.wire.receive()
    assert (answer.error_code, answer.producer_id) == (ID_DENIED, -1)
    transaction = broker.call(lambda: broker.server.transactions.transaction("id"))
    assert transaction.owner == (producer.producer_id, producer.epoch)


@pytest.mark.parametrize(
    ("lost", "codes"),
    [(WRITE_IDS, [ID_DENIED, ID_DENIED]), (WRITE_TOPICS, [TOPIC_DENIED, TOPIC_DENIED])],
)
def test_partitions_that_were_held(ending, markers, lost, codes):
    broker, rights, producer, topic = ending
    identity = producer.producer_id, producer.epoch
    request = add_partitions_request("id", identity, (topic.name, 0), (topic.name, 1))
    producer.wire.send(ADD_PARTITIONS_TO_TXN, request, 3)
    goes_on(broker, rights, markers, lost)
    assert added_codes(producer.wire.receive()) == codes
    transaction = broker.call(lambda: broker.server.transactions.transaction("id"))
    assert not transaction.partitions


@pytest.mark.parametrize(("lost", "code"), [(WRITE_IDS, ID_DENIED), (READ_GROUPS, GROUP_DENIED)])
def test_offsets_that_were_held(ending, markers, lost, code):
    broker, rights, producer, _ = ending
    request = AddOffsetsToTxnRequest("id", producer.producer_id, producer.epoch, "g")
    producer.wire.send(ADD_OFFSETS_TO_TXN, request, 3)
    goes_on(broker, rights, markers, lost)
    assert producer.wire.receive().error_code == code


def test_an_end_that_was_held(ending, markers):
    """An abort behind the commit that is under way."""
    broker, rights, producer, _ = ending
    producer.wire.send(END_TXN, producer.end_request(commit=False), 5)
    goes_on(broker, rights, markers, WRITE_IDS)
    assert producer.wire.receive().error_code == ID_DENIED


# ------------------------------------------------------------------------------------------ groups


def join(member_id="", group="g"):
    return JoinGroupRequest(
        group, 10_000, 10_000, member_id, None, "consumer", [JoinGroupRequestProtocol("range")]
    )


def has_group(shard):
    return "g" in shard.machine.groups


def test_a_member_that_waits_for_the_others_loses_the_group():
    settings = {"group.initial.rebalance.delay.ms": "5000"}
    with (
        controlled_broker(READ_GROUPS, **settings) as (broker, rights),
        Wire(broker.address) as wire,
    ):
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        wire.send(JOIN_GROUP, join(), 3)
        log = broker.server.groups.log
        wait_until(lambda: broker.call(lambda: any(map(has_group, log.shards))))
        rights.take(READ_GROUPS)
        broker.clock.advance(milliseconds=5001)
        answer = wire.receive()
        assert (answer.error_code, answer.generation_id, answer.members) == (GROUP_DENIED, -1, [])


def test_a_member_that_waits_for_its_leader_loses_the_group():
    hers = READ_GROUPS._replace(principal=MALLORY)
    with (
        controlled_broker(READ_GROUPS, hers) as (broker, rights),
        Wire(broker.address) as leader,
        Wire(broker.address) as member,
    ):
        become(broker, member, MALLORY)
        leader.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        first = leader.ask(JOIN_GROUP, join(), 3)
        member.send(JOIN_GROUP, join(), 3)
        wait_until(lambda: broker.call(lambda: _state_of(broker)) == "PreparingRebalance")
        leader.ask(JOIN_GROUP, join(first.member_id), 3)
        joined = member.receive()
        member.send(SYNC_GROUP, SyncGroupRequest("g", joined.generation_id, joined.member_id), 2)
        assert member.silent()
        rights.take(hers)
        assignments = [
            SyncGroupRequestAssignment(each, b"assigned")
            for each in (first.member_id, joined.member_id)
        ]
        sync = SyncGroupRequest("g", joined.generation_id, first.member_id, assignments=assignments)
        assert leader.ask(SYNC_GROUP, sync, 2).assignment == b"assigned"
        answer = member.receive()
        assert (answer.error_code, answer.assignment) == (GROUP_DENIED, b"")


def _state_of(broker):
    return broker.server.groups.machine_of("g").groups["g"].state_name


class Member:
    """A member of a consumer group that subscribes by names or by a regular expression."""

    def __init__(self, wire):
        self._wire = wire
        self.epoch = 0
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)

    def heartbeat(self, **more):
        if not self.epoch:
            more = {"rebalance_timeout_ms": LONG_MS, "topic_partitions": [], **more}
        request = ConsumerGroupHeartbeatRequest("g", "m", self.epoch, **more)
        answer = self._wire.ask(CONSUMER_GROUP_HEARTBEAT, request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return answer


def subscription(broker):
    """The names that the group's only member wants now."""

    def look():
        group = broker.server.groups.machine_of("g").groups["g"]
        return sorted(group.subscription_of(group.members["m"]))

    return broker.call(look)


def test_a_regular_expression_finds_what_may_be_described_as_soon_as_that_changes():
    may_see_a, may_see_b = (right(Operation.DESCRIBE, TOPIC, name) for name in ("a", "b"))
    with (
        controlled_broker(READ_GROUPS, may_see_a) as (broker, rights),
        Wire(broker.address) as wire,
    ):
        topic_of(broker, "a"), topic_of(broker, "b")
        member = Member(wire)
        member.heartbeat(subscribed_topic_regex=".*")

        def found(names):
            """The next heartbeat has all topics looked at, if that is ten seconds ago."""
            broker.clock.advance(seconds=11)
            assert member.heartbeat().error_code == NONE

            def is_found():
                broker.clock.advance(milliseconds=1)
                return subscription(broker) == names

            wait_until(is_found, lambda: subscription(broker))

        found(["a"])
        rights.give(may_see_b)
        found(["a", "b"])
        rights.take(may_see_a)
        found(["b"])
        rights.take(may_see_b)
        found([])


def test_a_subscription_by_names_is_asked_for_in_every_heartbeat():
    may_see = right(Operation.DESCRIBE, TOPIC, "a")
    with controlled_broker(READ_GROUPS, may_see) as (broker, rights), Wire(broker.address) as wire:
        topic_of(broker, "a"), topic_of(broker, "b")
        member = Member(wire)
        refused = member.heartbeat(subscribed_topic_names=["a", "b"])
        assert (refused.error_code, refused.assignment) == (TOPIC_DENIED, None)
        assert member.heartbeat(subscribed_topic_names=["a"]).error_code == NONE
        assert member.heartbeat().error_code == NONE
        rights.take(may_see)
        assert member.heartbeat().error_code == TOPIC_DENIED
        member.epoch = -1
        assert member.heartbeat().error_code == NONE, "it may leave"


@pytest.fixture
def late(monkeypatch):
    """``late.loses(broker, acl)``: what is submitted to a group from now on loses it on its way."""
    return Late(monkeypatch)


class Late:
    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def loses(self, broker, acl):
        submit, server = Groups.submit, broker.server

        def submitted(groups, *arguments, **options):
            server.authorizer.change([], [acl])
            submit(groups, *arguments, **options)

        self._patch.setattr(Groups, "submit", submitted)


LOST = [(READ_TOPICS, TOPIC_DENIED), (READ_GROUPS, GROUP_DENIED)]


def commit_of(topic, partitions):
    return commit_request("g", {(topic.name, index): 5 for index in range(partitions)})


@pytest.mark.parametrize(("lost", "code"), LOST)
@pytest.mark.parametrize("partitions", [1, 2500])
def test_a_commit_that_had_to_wait_for_others_of_its_group(late, partitions, lost, code):
    with controlled_broker(READ_TOPICS, READ_GROUPS) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t", partitions)
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        late.loses(broker, lost)
        answer = wire.ask(OFFSET_COMMIT, commit_of(topic, partitions), 9)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        assert codes == [code] * partitions
        offsets = broker.server.groups.machine_of("g").offsets
        assert not broker.call(lambda: offsets.knows("g"))


@pytest.mark.parametrize(("lost", "code"), [*LOST, (WRITE_IDS, ID_DENIED)])
@pytest.mark.parametrize("version", [4, 5])
def test_a_commit_in_a_transaction_that_had_to_wait_for_others(late, version, lost, code):
    with controlled_broker(*EVERYTHING) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        producer = RawProducer(wire, "id")
        added = AddOffsetsToTxnRequest("id", producer.producer_id, producer.epoch, "g")
        assert wire.ask(ADD_OFFSETS_TO_TXN, added, 3).error_code == NONE
        late.loses(broker, lost)
        request = txn_commit_request(producer, topic)
        (partition,) = wire.ask(TXN_OFFSET_COMMIT, request, version).topics[0].partitions
        assert partition.error_code == code
        offsets = broker.server.groups.machine_of("g").offsets
        assert not broker.call(lambda: offsets.knows("g"))


def test_a_right_that_a_long_commit_loses_between_its_slices(monkeypatch):
    with controlled_broker(READ_TOPICS, READ_GROUPS) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t", 2500)
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        server, turns = broker.server, []

        async def next_turn():
            if not turns:
                server.authorizer.change([], [READ_TOPICS])
            turns.append(1)

        monkeypatch.setattr(group_offsets, "next_turn", next_turn)
        answer = wire.ask(OFFSET_COMMIT, commit_of(topic, 2500), 9)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        assert (codes, bool(turns)) == ([TOPIC_DENIED] * 2500, True)
        offsets = server.groups.machine_of("g").offsets
        assert not broker.call(lambda: offsets.knows("g"))


def test_a_long_commit_is_refused_as_a_whole():
    with controlled_broker(READ_TOPICS) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t", 2500)
        wire.ask(FIND_COORDINATOR, FindCoordinatorRequest("g"), 3)
        answer = wire.ask(OFFSET_COMMIT, commit_of(topic, 2500), 9)
        codes = [each.error_code for topic in answer.topics for each in topic.partitions]
        assert codes == [GROUP_DENIED] * 2500


# --------------------------------------------------------------------------- what is done in steps


def test_long_search_returns_no_data_after_permission_loss(monkeypatch):
    with controlled_broker(WRITE_TOPICS) as (broker, _), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        wire.produce(topic, batch(b"v"))
        run, server = DiskReaders.run, broker.server

        def searched(readers, work):
            future = run(readers, work)
            future.add_done_callback(lambda _: server.authorizer.change([], [WRITE_TOPICS]))
            return future

        monkeypatch.setattr(DiskReaders, "run", searched)
        assert wire.list_offset("t", 0) == (TOPIC_DENIED, -1, -1, -1)


def test_topics_are_deleted_as_long_as_that_is_allowed(monkeypatch):
    may_delete = right(Operation.DELETE, TOPIC)
    with controlled_broker(may_delete) as (broker, _), Wire(broker.address) as wire:
        names = [topic_of(broker, name).name for name in ("a", "b", "c")]
        delete, server = Catalogue.delete_topic, broker.server

        async def deleted(catalogue, topic_id, until_s):
            await delete(catalogue, topic_id, until_s)
            if may_delete in server.authorizer.acls:
                server.authorizer.change([], [may_delete])

        monkeypatch.setattr(Catalogue, "delete_topic", deleted)
        answer = wire.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=names), 5)
        assert [each.error_code for each in answer.responses] == [NONE, TOPIC_DENIED, TOPIC_DENIED]
        assert sorted(broker.call(lambda: [*server.catalogue.topics])) == ["b", "c"]


def test_a_denial_wins_over_what_was_remembered_as_allowed():
    with controlled_broker(WRITE_TOPICS) as (broker, rights), Wire(broker.address) as wire:
        topic = topic_of(broker, "t")
        for _ in range(3):
            assert wire.produce(topic, batch(b"v")).error_code == NONE
        rights.give(right(Operation.WRITE, TOPIC, "t", permission=Permission.DENY))
        assert wire.produce(topic, batch(b"never")).error_code == TOPIC_DENIED
