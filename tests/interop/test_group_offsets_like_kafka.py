"""Committed offsets, plain and in transactions: every version answers what Apache Kafka 4.3.0 does.

One script of requests is for both; see comparison.py. That of transactions, and of members that
commit in them, is in transactional_offsets.py.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.coordination.shard import java_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.wire import ZERO_UUID
from tests.counterparts.apache_kafka import ApacheKafka
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.kafka_tools import DUMP_LOG_SEGMENTS, run_tool
from tests.counterparts.wire_client import WireClient
from tests.interop import transactional_offsets
from tests.interop.comparison import Answer, check_alike, check_equal, comparable
from tests.interop.consumer_group import wait_for_coordinator
from tests.interop.recorded_kafka import Barnabas, plain
from tests.requests import create_topic

UNKNOWN_ID = bytes([9] * 16)
NOT_READY = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
PATIENCE_SECONDS = 60

ON_PURPOSE = {
    "fetch a group twice": "a small request must not ask for any amount; Kafka answers again",
}


class Script:
    """The requests, one method per family; each yields labels and comparable answers."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.ids: dict[str, bytes] = {}

    # ------------------------------------------------------------------------------------- set-up

    def wait(self, group: str, name: str) -> None:
        """Wait until the group's coordinator is available and accepts commits for the topic."""
        self.client.ask(FIND_COORDINATOR, FindCoordinatorRequest(group), 3)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while set(self.codes(self.commit(group, {name: {0: 0}}))) & NOT_READY:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        asked = MetadataRequest([MetadataRequestTopic(ZERO_UUID, name)], False)
        (topic,) = self.client.ask(METADATA, asked, 12).topics
        self.ids[name] = topic.topic_id

    def commit(self, group: str, offsets, version: int = 9, metadata="m", **more):
        topics = [
            OffsetCommitRequestTopic(
                name,
                self.ids.get(name, UNKNOWN_ID),
                [
                    OffsetCommitRequestPartition(index, offset, 4, metadata)
                    for index, offset in partitions.items()
                ],
            )
            for name, partitions in offsets.items()
        ]
        request = OffsetCommitRequest(group, topics=topics)
        for field, value in more.items():
            setattr(request, field, value)
        return self.client.ask(OFFSET_COMMIT, request, version)

    @staticmethod
    def codes(response) -> list[int]:
        return [each.error_code for topic in response.topics for each in topic.partitions]

    def fetch(self, group: str, wanted, version: int = 9, *, stable: bool = False, **more):
        old = new = None
        if wanted is not None:
            old = [OffsetFetchRequestTopic(name, indexes) for name, indexes in wanted.items()]
            new = [
                OffsetFetchRequestTopics(name, self.ids.get(name, UNKNOWN_ID), indexes)
                for name, indexes in wanted.items()
            ]
        groups = [OffsetFetchRequestGroup(group, topics=new, **more)]
        request = OffsetFetchRequest(group, old, groups, stable and version >= 7)
        return self.client.ask(OFFSET_FETCH, request, version)

    def delete(self, group: str, places):
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(at) for at in indexes])
            for name, indexes in places.items()
        ]
        return self.client.ask(OFFSET_DELETE, OffsetDeleteRequest(group, topics), 0)

    # ------------------------------------------------------------------------------------ families

    def versions(self) -> Iterator[Answer]:
        create_topic(self.client, "every", 3)
        self.wait("versions", "every")
        for version in range(2, 11):
            offsets = {"every": {0: version, 1: 10 * version}, "missing": {0: 1}}
            answer = self.commit("versions", offsets, version)
            yield f"commit v{version}", comparable(answer)
            for stable in (False, True):
                answer = self.fetch("versions", {"every": [0, 1, 2]}, stable=stable)
                yield f"committed by v{version}, stable {stable}", comparable(answer)
        for version in range(1, 11):
            for label, wanted in (
                ("some", {"every": [0, 1, 2, 7], "missing": [0]}),
                ("nothing", {}),
                ("all", None),
            ):
                if wanted is None and version < 2:
                    continue
                for group in ("versions", "nobody"):
                    answer = self.fetch(group, wanted, version)
                    yield f"fetch {label} of {group} v{version}", comparable(answer)

    def commits(self) -> Iterator[Answer]:
        create_topic(self.client, "kept", 2)
        self.wait("commits", "kept")
        for label, offsets in (
            ("nothing", {}),
            ("a missing topic", {"missing": {0: 1}}),
            ("a missing partition", {"kept": {0: 1, 2: 1, -1: 1}}),
            ("below zero", {"kept": {0: -1}}),
            ("far below zero", {"kept": {1: -7}}),
            ("a large number", {"kept": {0: 2**63 - 1}}),
        ):
            for version in (2, 9, 10):
                answer = self.commit("commits", offsets, version)
                yield f"commit {label} v{version}", comparable(answer)
            yield f"after committing {label}", comparable(self.fetch("commits", None))
        for metadata in (None, "", "x" * 4096, "x" * 4097, "ü" * 4096, "😀" * 2048, "😀" * 2049):
            answer = self.commit("commits", {"kept": {0: 5}}, metadata=metadata)
            label = f"{metadata[:1]} {len(metadata)}" if metadata is not None else "null"
            yield f"commit with metadata {label}", comparable(answer)
            yield f"metadata {label}", comparable(self.fetch("commits", {"kept": [0]}))
        for group in ("", "commits", "unheard-of"):
            for version in (6, 8, 9, 10):
                for label, more in (
                    ("generation", {"generation_id_or_member_epoch": 3, "member_id": "m"}),
                    ("generation alone", {"generation_id_or_member_epoch": 0}),
                    ("member", {"member_id": "m"}),
                    ("instance", {"group_instance_id": "i"}),
                ):
                    if label == "instance" and version < 7:
                        continue
                    name = f"{group}-{label}-{version}" if group == "unheard-of" else group
                    answer = self.commit(name, {"kept": {0: 1}}, version, **more)
                    yield f"commit of {group!r} with {label} v{version}", comparable(answer)
        for keep_ms in (-1, 0, 1_000_000):
            answer = self.commit("kept", {"kept": {0: 1}}, 3, retention_time_ms=keep_ms)
            yield f"commit to keep for {keep_ms} ms", comparable(answer)

    def fetches(self) -> Iterator[Answer]:
        create_topic(self.client, "read", 2)
        self.wait("fetches", "read")
        self.commit("fetches", {"read": {0: 5, 1: 6}})
        for group in ("fetches", "unheard-of", ""):
            for label, more in (
                ("a member", {"member_id": "m", "member_epoch": 3}),
                ("an epoch", {"member_epoch": 3}),
                ("an empty member", {"member_id": ""}),
            ):
                answer = self.fetch(group, None, **more)
                yield f"fetch of {group!r} by {label}", comparable(answer)
        several = [
            OffsetFetchRequestGroup("fetches", topics=None),
            OffsetFetchRequestGroup("unheard-of", topics=None),
            OffsetFetchRequestGroup(
                "fetches-2", topics=[OffsetFetchRequestTopics("read", partition_indexes=[0, 0])]
            ),
        ]
        for label, groups in (
            ("several groups", several),
            ("no group", []),
            ("a group twice", [several[0], several[0]]),
        ):
            response = self.client.ask(OFFSET_FETCH, OffsetFetchRequest(groups=groups), 8)
            yield f"fetch {label}", comparable(response)
        twice = [OffsetFetchRequestTopics("read", partition_indexes=[0])] * 2
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("fetches", topics=twice)])
        yield "fetch a topic twice", comparable(self.client.ask(OFFSET_FETCH, request, 8))

    def deletions(self) -> Iterator[Answer]:
        create_topic(self.client, "deleted", 3)
        self.wait("deletions", "deleted")
        self.commit("deletions", {"deleted": {0: 5, 1: 6, 2: 7}})
        for label, group, places in (
            ("of nobody", "unheard-of", {"deleted": [0]}),
            ("of a missing topic of nobody", "unheard-of", {"missing": [0]}),
            ("of no group", "", {"deleted": [0]}),
            ("of nothing", "deletions", {}),
            ("of a missing topic", "deletions", {"missing": [0, 1]}),
            ("of a missing partition", "deletions", {"deleted": [0, 3]}),
            ("again", "deletions", {"deleted": [0]}),
            ("of two", "deletions", {"deleted": [1, 2], "missing": [0]}),
        ):
            yield f"delete {label}", comparable(self.delete(group, places))
            yield f"after deletion {label}", comparable(self.fetch("deletions", None))

    def topics_that_go(self) -> Iterator[Answer]:
        create_topic(self.client, "stays", 1)
        create_topic(self.client, "goes", 1)
        self.wait("going", "stays")
        self.wait("going", "goes")
        self.commit("going", {"stays": {0: 5}, "goes": {0: 6}})
        former = self.ids["goes"]
        self.client.ask(
            DELETE_TOPICS, DeleteTopicsRequest(topic_names=["goes"], timeout_ms=9000), 5
        )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.fetch("going", None).groups[0].topics) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for version in (9, 10):
            answer = self.fetch("going", {"goes": [0], "stays": [0]}, version)
            yield f"fetch of a deleted topic v{version}", comparable(answer)
            answer = self.commit("going", {"goes": {0: 7}}, version)
            yield f"commit of a deleted topic v{version}", comparable(answer)
        create_topic(self.client, "goes", 1)
        self.wait("another", "goes")
        assert self.ids["goes"] != former
        for version in (9, 10):
            for wanted in ({"goes": [0]}, None):
                answer = self.fetch("going", wanted, version)
                yield f"fetch {wanted} of a topic made again v{version}", comparable(answer)
        self.ids["goes"] = former
        answer = self.commit("going", {"goes": {0: 9}, "stays": {0: 8}}, 10)
        yield "commit by an id that is gone", comparable(answer)
        yield "after all", comparable(self.fetch("going", None))


FAMILIES = {
    name: getattr(Script, name)
    for name in ("versions", "commits", "fetches", "deletions", "topics_that_go")
}


SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Iterator[BrokerProcess]:
    yield from serving(Barnabas(tmp_path_factory.mktemp("ours"), **SETTINGS))


@pytest.fixture(scope="module")
def live_kafka(tmp_path_factory) -> Iterator[BrokerProcess]:
    yield from serving(ApacheKafka(tmp_path_factory.mktemp("theirs"), **SETTINGS))


def serving(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Start a broker and wait for its coordinators of groups."""
    with broker:
        with WireClient(broker) as client:
            wait_for_coordinator(client)
        yield broker


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_kafkas(ours, kafka, family):
    script = lambda client: FAMILIES[family](Script(client))  # noqa: E731
    check_alike(ours, kafka, family, script, ON_PURPOSE)


@pytest.mark.parametrize("family", transactional_offsets.FAMILIES)
def test_answers_in_transactions_are_kafkas(ours, kafka, family):
    def answers(broker: BrokerProcess) -> dict[str, Any]:
        with transactional_offsets.Script(broker, family) as script:
            return dict(transactional_offsets.FAMILIES[family](script))

    theirs = kafka.observe(f"transactions: {family}", answers)
    check_equal(answers(ours), theirs, transactional_offsets.ON_PURPOSE)


def written(broker: BrokerProcess, count: int) -> list[dict[str, object]]:
    """The first records of a group's offsets, as Kafka's tool reads them; times are left out."""
    partition = java_hash("written") % 50
    log = broker.data_directory / f"__consumer_offsets-{partition}" / f"{0:020}.log"
    records: list[dict[str, object]] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, records
        output = run_tool(DUMP_LOG_SEGMENTS, "--offsets-decoder", "--files", str(log)).output
        found = re.findall(r"key: (\{.*?\}\}) payload: (\{.*\}|<DELETE>)", output)
        records = [
            {"key": json.loads(key), "value": None if value == "<DELETE>" else json.loads(value)}
            for key, value in found
            if json.loads(key)["data"].get("group") == "written"
        ]
    for record in records:
        if record["value"] is not None:
            data = record["value"]["data"]
            assert data.pop("commitTimestamp") > 1_700_000_000_000
            if data.get("expireTimestamp", -1) != -1:
                data["expireTimestamp"] = "set"
            if "topicId" in data:
                data["topicId"] = "set"
    return records[:count]


def committed_and_deleted(broker: BrokerProcess) -> list[dict[str, object]]:
    """Commit, and delete offsets and their group; return the records of all that."""
    with WireClient(broker) as client:
        script = Script(client)
        create_topic(script.client, "recorded", 3)
        script.wait("another", "recorded")
        script.client.ask(FIND_COORDINATOR, FindCoordinatorRequest("written"), 3)
        wanted = {"recorded": {0: 7, 1: 8}}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while set(script.codes(script.commit("written", wanted))) & NOT_READY:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        script.commit("written", {"recorded": {2: 9}}, 10, metadata=None)
        script.commit("written", {"recorded": {2: 10}}, 3, retention_time_ms=100_000)
        script.delete("written", {"recorded": [0]})
        deleted = client.ask(DELETE_GROUPS, DeleteGroupsRequest(["written"]), 2)
        assert deleted.results[0].error_code == 0
    records = written(broker, 7)
    # Those of the deleted group are one batch, in no order that would mean anything.
    return [*records[:5], *sorted(records[5:], key=str)]


def test_the_records_are_kafkas(ours, kafka):
    records = plain(committed_and_deleted(ours))
    assert records == kafka.observe("records", committed_and_deleted)
    assert [record["value"] is None for record in records] == [False] * 4 + [True] * 3


BATCH_FIELDS = (
    "count baseSequence lastSequence producerEpoch isTransactional isControl compresscodec "
    "keySize sequence endTxnMarker key payload"
)


def written_in_transactions(broker: BrokerProcess, group: str, batches: int) -> list[list[str]]:
    """All batches and records of a group's partition, as Kafka's tool reads them."""
    partition = java_hash(group) % 50
    log = broker.data_directory / f"__consumer_offsets-{partition}" / f"{0:020}.log"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        output = run_tool(DUMP_LOG_SEGMENTS, "--offsets-decoder", "--files", str(log)).output
        lines = [line for line in output.splitlines() if "Offset: " in line or "offset: " in line]
        if sum(line.startswith("baseOffset") for line in lines) >= batches:
            break
        assert time.monotonic() < deadline, output
    fields = "|".join(BATCH_FIELDS.split())
    shown = []
    for line in lines:
        equal = re.sub(r'"(commitTimestamp|topicId)":"?[^,}"]+"?,?', "", line)
        shown.append(re.findall(rf"(?:^|[ |])((?:{fields}): (?:\{{.*\}}|\S+))", equal))
    return shown


def committed_in_transactions(broker: BrokerProcess) -> list[list[str]]:
    """Commit offsets in transactions of both kinds; return the records of all that."""
    group = "written-in-transactions"
    with transactional_offsets.Script(broker, "written") as script:
        client = script.client
        for version in (transactional_offsets.CLASSIC, transactional_offsets.IMPLICIT):
            producer = script.producer()
            for commit in (True, False):
                places = {(transactional_offsets.TOPIC, at): at for at in range(3)}
                client.committed(producer, group, places, version)
                client.committed(producer, group, {(transactional_offsets.OTHER, 0): 1}, version)
                producer = client.ended(producer, version, commit=commit)
            # Apache Kafka writes markers behind its answer, and this waits for them.
            client.begin_life(producer.transactional_id)
    return written_in_transactions(broker, group, 12)


def test_the_records_of_transactions_are_kafkas(ours, kafka):
    records = committed_in_transactions(ours)
    assert records == kafka.observe("records of transactions", committed_in_transactions)
    assert sum(bool(fields) for fields in records) == 12 + 4 * 5
    assert sum("endTxnMarker: COMMIT" in fields for fields in records) == 2
