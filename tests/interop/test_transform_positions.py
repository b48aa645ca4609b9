"""Workers begin where their group is, though their libraries do not.

kafka-python 3.0.12 keeps the position of a partition that it gets back, also when it has missed a
generation in which another member had the partition and committed. Its own generation is in force
then: what it commits behind the others no broker can refuse, here or of Apache Kafka 4.3.0, and
every record in between takes effect twice. So the worker seeks to what is committed.

librdkafka 2.16.0 asks a coordinator that has just moved once where its group is, and reads nothing
until the next rebalance. So the worker assigns itself what it has once more.

aiokafka 0.14.0 reads the committed offset while `on_partitions_assigned` still runs, in which the
worker fences the previous owner. So the worker seeks to the committed offset afterwards.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from barnabas.broker.cli.proving.instances import Instances
from barnabas.broker.cli.proving.timeline import Timeline
from barnabas.broker.cli.records.group_protocol import encode_assignment, encode_subscription
from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.testing import Broker
from tests.checkout import PYTHONPATH
from tests.interop.clients import kafka
from tests.interop.transactional import COMMITTED, committed_offset, read_with_kafka_python
from tests.interop.transform_worker import (
    GAVE_UP,
    OUTPUT_PARTITIONS,
    POLL_S,
    Settings,
    command_line,
    run_with_kafka_python,
    transformed,
)
from tests.requests import codes_of, commit_request
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore")]
GROUP, INPUT, OUTPUT = "application", "input", "output"
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
BEFORE, BY_ANOTHER, AFTER = 10, 40, 10
"""Records that the worker takes, that another member takes, and the worker again."""
REBALANCE_MS = 60_000
SESSION_MS = 90_000
"""Long enough that the leader stays a member: it sends heartbeats only while a test polls for a
rebalance."""


class Leader:
    """The first member of the group, by raw requests: it assigns the partition."""

    def __init__(self, client: WireClient, assignor: str = "range") -> None:
        self._client = client
        self._assignor = assignor
        self._id = ""
        self._generation = -1

    def join(self) -> list[str]:
        """Start a generation as soon as all members have joined; return the other members."""
        protocol = JoinGroupRequestProtocol(self._assignor, encode_subscription([INPUT]))
        request = JoinGroupRequest(
            GROUP, SESSION_MS, REBALANCE_MS, self._id, None, "consumer", [protocol]
        )
        answer = self._client.ask(JOIN_GROUP, request, 3)
        assert answer.error_code == ErrorCode.NONE
        self._id, self._generation = answer.member_id, answer.generation_id
        return [each.member_id for each in answer.members if each.member_id != self._id]

    def give_partition(self, member_id: str | None = None) -> None:
        """Assign the partition to a member, to itself if none is named."""
        assignment = encode_assignment({INPUT: [0]})
        given = [SyncGroupRequestAssignment(member_id or self._id, assignment)]
        request = SyncGroupRequest(
            GROUP, self._generation, self._id, None, "consumer", self._assignor, given
        )
        assert self._client.ask(SYNC_GROUP, request, 5).error_code == ErrorCode.NONE

    def is_to_rejoin(self) -> bool:
        request = HeartbeatRequest(GROUP, self._generation, self._id)
        code = self._client.ask(HEARTBEAT, request, 4).error_code
        return code == ErrorCode.REBALANCE_IN_PROGRESS

    def commit(self, offset: int) -> None:
        request = commit_request(GROUP, {(INPUT, 0): offset}, self._generation, self._id)
        assert codes_of(self._client.ask(OFFSET_COMMIT, request, 8)) == [ErrorCode.NONE]


@contextmanager
def working(servers: str) -> Iterator[Future[None]]:
    """Run the worker on a thread until the block ends; it must not have ended before."""
    stop = threading.Event()
    settings = Settings("kafka-python", "worker", servers, GROUP, INPUT, OUTPUT, SESSION_MS)
    with ThreadPoolExecutor() as pool:
        worker = pool.submit(run_with_kafka_python, settings, stop.is_set)
        try:
            yield worker
        finally:
            stop.set()
        worker.result()


def send(servers: str, numbers: range) -> None:
    with kafka.KafkaProducer(bootstrap_servers=servers) as producer:
        for number in numbers:
            producer.send(INPUT, b"%d" % number, partition=0)
        producer.flush()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        broker.create_topic(INPUT, partitions=1)
        broker.create_topic(OUTPUT, partitions=OUTPUT_PARTITIONS)
        yield broker


def test_a_missed_generation_leaves_no_position_behind(broker):
    servers = broker.bootstrap_servers

    with WireClient(broker.address) as client:
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        leader = Leader(client)
        leader.join()
        leader.give_partition()
        with working(servers) as work:

            def has_taken(count: int) -> bool:
                return work.done() or committed_offset(servers, GROUP, INPUT, 0) == count

            wait_until(leader.is_to_rejoin, "the worker joins")
            (worker,) = leader.join()
            leader.give_partition(worker)
            send(servers, range(BEFORE))
            wait_until(lambda: has_taken(BEFORE), "the worker has taken what there is")

            def refuse_worker(_context: object, request: SyncGroupRequest) -> object:
                """Delay the assignment of this generation until it is too late."""
                if request.member_id != worker:
                    return None
                return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

            with broker.intercept(SYNC_GROUP, answer=refuse_worker) as refused:
                leader.join()
                leader.give_partition()
                others = range(BEFORE, BEFORE + BY_ANOTHER)
                send(servers, others)
                wait_until(lambda: refused.count > 1, "the worker asks for its assignment")
                leader.commit(others.stop)
                leader.join()
            # For longer than it polls, it knows of the generation and not of what it has in it.
            time.sleep(3 * POLL_S)
            leader.give_partition(worker)
            everything = range(others.stop + AFTER)
            send(servers, range(others.stop, everything.stop))
            wait_until(lambda: has_taken(everything.stop), "the worker has taken the rest")
    output = read_with_kafka_python(servers, OUTPUT, OUTPUT_PARTITIONS, COMMITTED)
    values = Counter(value for values in output.values() for value in values)
    assert values == Counter(
        transformed(b"%d" % number) for number in everything if number not in others
    )


def test_a_coordinator_that_has_just_moved_is_asked_again(broker, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    servers = broker.bootstrap_servers
    words = command_line("confluent-kafka", GROUP)
    workers = Instances(words, servers, tmp_path, Timeline())
    with (
        broker.intercept(OFFSET_FETCH, fail=ErrorCode.NOT_COORDINATOR, times=1) as refused,
        closing(workers),
    ):
        workers.start(1)
        wait_until(lambda: refused.count, "the worker asks where its group is")
        send(servers, range(BEFORE))

        def has_taken_all() -> bool:
            workers.supervise()
            return committed_offset(servers, GROUP, INPUT, 0) == BEFORE

        wait_until(has_taken_all, lambda: workers.last_words(1))
    assert {code for _, code in workers.ended} <= GAVE_UP


def test_an_offset_that_is_committed_before_the_fence_is_not_passed_over(
    broker, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    servers = broker.bootstrap_servers
    everything = range(BEFORE + AFTER)
    send(servers, everything)
    workers = Instances(command_line("aiokafka", GROUP), servers, tmp_path, Timeline())
    with WireClient(broker.address) as client, closing(workers):
        client.ask(FIND_COORDINATOR, FindCoordinatorRequest(GROUP), 3)
        leader = Leader(client, "roundrobin")
        leader.join()
        leader.give_partition()
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with broker.intercept(FETCH, fail=ErrorCode.NOT_LEADER_OR_FOLLOWER):
            with (
                broker.intercept(OFFSET_FETCH) as positions,
                broker.intercept(INIT_PRODUCER_ID, fail=loading) as fencing,
            ):
                workers.start(1)
                wait_until(leader.is_to_rejoin, lambda: workers.last_words(1))
                (worker,) = leader.join()
                leader.give_partition(worker)
                wait_until(lambda: positions.count and fencing.count > 2, "it is about to fence")
                # The previous owner, which is not fenced yet, commits what it has processed.
                leader.commit(BEFORE)
            with broker.intercept(INIT_PRODUCER_ID) as fencing:
                wait_until(lambda: fencing.count, "it fences")
            # For longer than it polls: the records come after the partition.
            time.sleep(10 * POLL_S)

        def has_taken_all() -> bool:
            return committed_offset(servers, GROUP, INPUT, 0) == everything.stop

        wait_until(has_taken_all, lambda: workers.last_words(1))
    output = read_with_kafka_python(servers, OUTPUT, OUTPUT_PARTITIONS, COMMITTED)
    values = Counter(value for values in output.values() for value in values)
    assert values == Counter(transformed(b"%d" % number) for number in everything[BEFORE:])
