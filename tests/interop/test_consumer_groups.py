"""Consumer groups (KIP-848) with real clients: from one protocol to the other and back under load,
regular expressions, kill -9, and Apache Kafka's own tool reading the records.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
)
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool
from tests.counterparts.wire_client import WireClient
from tests.interop.administration import create
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 6
WAIT_S = 60
CLASSIC, CONSUMER = "classic", "consumer"


class Member:
    """A consumer that reads and commits on its own thread until the test ends it."""

    def __init__(self, broker: BarnabasProcess, group: str, protocol: str, topic: str) -> None:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if protocol == CLASSIC:
            settings["heartbeat.interval.ms"] = 500
        self.read: list[bytes] = []
        self.owned: set[tuple[str, int]] = set()
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._leaving.is_set():
            for message in self._consumer.consume(100, 0.2):
                if not message.error():
                    self.read.append(message.value())
            # Asked on this thread: from another one librdkafka may never answer.
            self.owned = {(each.topic, each.partition) for each in self._consumer.assignment()}
        self._consumer.close()

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(WAIT_S)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BarnabasProcess]:
    with BarnabasProcess(tmp_path_factory.mktemp("groups"), **SETTINGS) as broker:
        yield broker


def described(broker: BarnabasProcess, group: str) -> DescribedGroup:
    with WireClient(broker) as client:
        request = ConsumerGroupDescribeRequest([group])
        return client.ask(CONSUMER_GROUP_DESCRIBE, request, 1).groups[0]


def type_of(broker: BarnabasProcess, group: str) -> tuple[str, str] | None:
    """Type and state of a group, as ListGroups has them."""
    with WireClient(broker) as client:
        for each in client.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups:
            if each.group_id == group:
                return each.group_type, each.group_state
    return None


def wait_for_type(broker: BarnabasProcess, group: str, kind: str) -> None:
    wait_until(lambda: type_of(broker, group) == (kind, "Stable"), lambda: type_of(broker, group))


def shared(members: list[Member], topic: str, count: int = PARTITIONS) -> Callable[[], bool]:
    """Whether the members own every partition once, and each of them something."""

    def true() -> bool:
        owned = [each for member in members for each in member.owned]
        return sorted(owned) == [(topic, each) for each in range(count)] and all(
            member.owned for member in members
        )

    return true


class Load:
    """Numbers, written all the time; ``sent`` of them are certain."""

    def __init__(self, broker: BarnabasProcess, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
        self._topic = topic
        self.sent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._producer.produce(self._topic, b"%d" % self.sent)
            self.sent += 1
            self._producer.poll(0.01)
        assert self._producer.flush(WAIT_S) == 0

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(WAIT_S)


def test_a_group_changes_its_protocol_and_back_under_load(broker: BarnabasProcess) -> None:
    topic = group = "changing"
    create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    members: list[Member] = []

    def join(protocol: str) -> Member:
        members.append(Member(broker, group, protocol, topic))
        return members[-1]

    def settle(*there: Member) -> None:
        wait_until(
            shared(list(there), topic),
            lambda: ([member.owned for member in there], described(broker, group)),
        )

    load = Load(broker, topic)
    try:
        old = [join(CLASSIC), join(CLASSIC)]
        settle(*old)
        wait_for_type(broker, group, CLASSIC)
        new = join(CONSUMER)
        settle(*old, new)
        wait_for_type(broker, group, CONSUMER)
        kinds = sorted(member.member_type for member in described(broker, group).members)
        assert kinds == [0, 0, 1]
        old[0].leave()
        settle(old[1], new)
        another = join(CONSUMER)
        settle(old[1], new, another)
        another.leave()
        new.leave()
        settle(old[1])
        wait_for_type(broker, group, CLASSIC)
    finally:
        load.stop()
        wait_until(lambda: len({*_read(members)}) >= load.sent, lambda: len({*_read(members)}))
        for member in members:
            member.leave()
    assert {int(value) for value in _read(members)} == set(range(load.sent))


def _read(members: list[Member]) -> list[bytes]:
    return [value for member in members for value in member.read]


def test_a_regular_expression_finds_topics_that_come(broker: BarnabasProcess) -> None:
    create(broker.bootstrap_servers, "found-1", partitions=2)
    create(broker.bootstrap_servers, "lost-1", partitions=2)
    member = Member(broker, "finders", CONSUMER, "^found-.*")
    try:
        first = {("found-1", 0), ("found-1", 1)}
        wait_until(lambda: member.owned == first, lambda: member.owned)
        create(broker.bootstrap_servers, "found-2", partitions=1)
        wait_until(lambda: member.owned == first | {("found-2", 0)}, lambda: member.owned)
        (seen,) = described(broker, "finders").members
        assert "^found-.*" in seen.subscribed_topic_regex
    finally:
        member.leave()


def test_a_group_survives_kill_9_and_its_records_are_kafkas(broker: BarnabasProcess) -> None:
    topic = group = "surviving"
    create(broker.bootstrap_servers, topic, partitions=PARTITIONS)
    members = [Member(broker, group, CONSUMER, topic) for _ in range(3)]
    try:
        wait_until(shared(members, topic), lambda: described(broker, group))
        wait_until(
            lambda: described(broker, group).group_state == "Stable",
            lambda: described(broker, group),
        )
        before = described(broker, group)
        broker.kill()
        broker.restart()
        wait_until(lambda: not described(broker, group).error_code, lambda: "not loaded")
        assert described(broker, group) == before
        epochs = {member.member_id: member.member_epoch for member in before.members}
        time.sleep(2)  # Their heartbeats continue, in the same epoch: no member noticed.
        assert {m.member_id: m.member_epoch for m in described(broker, group).members} == epochs
    finally:
        for member in members:
            member.leave()
    broker.terminate()
    # Classic groups, consumer groups (3, 5 to 8), regular expressions; offsets are others' matter.
    assert _kinds(broker.data_directory) >= {2, 3, 5, 6, 7, 8, 16}


def _kinds(data_directory: Path) -> set[int]:
    """The kinds of records that Apache Kafka's DumpLogSegments reads in the groups' topic."""
    logs = data_directory.glob("__consumer_offsets-*/*.log")
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    arguments = ["--offsets-decoder", "--files", files]
    output = run_tool(DUMP_LOG_SEGMENTS, *arguments, timeout_s=300).output
    lines = [line for line in output.splitlines() if line.startswith("| offset")]
    known = [re.search(r'key: \{"type":"(\d+)","data":\{', line) for line in lines]
    assert all(known), [line for line, found in zip(lines, known, strict=True) if not found]
    return {int(found.group(1)) for found in known if found}
