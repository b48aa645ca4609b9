"""The groups of a cleanly stopped Apache Kafka exist in Barnabas, as Kafka knew them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.share_group_heartbeat import (
    SHARE_GROUP_HEARTBEAT,
    ShareGroupHeartbeatRequest,
)
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.offsets_client import IMPLICIT, UNSTABLE, OffsetsClient
from tests.counterparts.offsets_client import Producer as Transactional
from tests.counterparts.wire_client import WireClient
from tests.interop.recorded_kafka import Barnabas, plain
from tests.requests import create_topic, fetch_offsets_request
from tests.waiting import wait_until

TOPIC = "input"
PATIENCE_SECONDS = 60
NOT_READY = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
}


def consumer(broker: BrokerProcess, group: str, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def commit(broker: BrokerProcess, group: str, *offsets: int) -> None:
    """Commit as a consumer that assigns itself: one offset for each partition, from partition 0."""
    alone = consumer(broker, group)
    places = [TopicPartition(TOPIC, at, offset) for at, offset in enumerate(offsets)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            alone.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            # Right after the first start the coordinator's topic does not exist yet.
            if error.args[0].code() not in NOT_READY or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            break
    alone.close()


def commit_in_transaction(broker: BrokerProcess, group: str, offset: int, *, end: str) -> Producer:
    """Send an offset to a transaction; the producer is returned so that it can stay open."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": f"{group}-{end}",
            # One that stays open is to be open when Barnabas has been started twice.
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    alone = consumer(broker, group)
    place = TopicPartition(TOPIC, 0, offset)
    producer.send_offsets_to_transaction([place], alone.consumer_group_metadata())
    alone.close()
    if end == "commit":
        producer.commit_transaction()
    elif end == "abort":
        producer.abort_transaction()
    return producer


def read_as_member(broker: BrokerProcess, group: str, **settings: str) -> None:
    """Join a group, read what there is, commit and leave."""
    member = consumer(broker, group, **settings)
    member.subscribe([TOPIC])
    read = 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while read < 20:
        assert time.monotonic() < deadline
        message = member.poll(1.0)
        if message is not None and not message.error():
            read += 1
    member.commit(asynchronous=False)
    member.close()


def listed(broker: BrokerProcess) -> dict[str, tuple[str, str, str]]:
    with WireClient(broker) as client:
        groups = client.ask(LIST_GROUPS, ListGroupsRequest(), 5).groups
    return {
        each.group_id: (each.protocol_type, each.group_state, each.group_type) for each in groups
    }


def committed(broker: BrokerProcess, groups: list[str], *, stable: bool) -> dict[str, object]:
    """Every offset of each group, with its error."""
    request = fetch_offsets_request(*groups, stable=stable)
    with WireClient(broker) as client:
        answers = client.ask(OFFSET_FETCH, request, 8).groups
    return {
        group.group_id: sorted(
            (topic.name, each.partition_index, each.committed_offset, each.error_code)
            for topic in group.topics
            for each in topic.partitions
        )
        for group in answers
    }


def leave_groups(kafka: BrokerProcess) -> Any:
    """Create groups of each kind; return them, their offsets, and an open producer."""
    with WireClient(kafka) as client:
        create_topic(client, TOPIC, 2)
    writer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(20):
        writer.produce(TOPIC, str(number), partition=number % 2)
    writer.flush()
    del writer
    commit(kafka, "plain", 4, 5)
    commit(kafka, "plain", 6)
    commit(kafka, "deleted", 7)
    commit(kafka, "aborted", 3)
    commit(kafka, "open", 2)
    commit_in_transaction(kafka, "committed", 8, end="commit")
    commit_in_transaction(kafka, "aborted", 9, end="abort")
    overtaken = commit_in_transaction(kafka, "overtaken", 1, end="leave open")
    commit(kafka, "overtaken", 9)
    overtaken.commit_transaction()
    del overtaken
    still_open = commit_in_transaction(kafka, "open", 9, end="leave open")
    with OffsetsClient(kafka) as raw:
        undecided = raw.begin_life("undecided", 900_000)
        raw.committed(undecided, "undecided", {(TOPIC, 1): 5})
    read_as_member(kafka, "classic")
    read_as_member(kafka, "consumer", group_protocol="consumer")
    with WireClient(kafka) as client:
        share = ShareGroupHeartbeatRequest("share", "m" * 22, 0, None, [TOPIC])
        assert client.ask(SHARE_GROUP_HEARTBEAT, share, 1).error_code == 0
        deleted = client.ask(DELETE_GROUPS, DeleteGroupsRequest(["deleted"]), 2)
        assert deleted.results[0].error_code == 0
    groups = listed(kafka)
    del groups["share"]  # Not served by Barnabas.
    names = sorted([*groups, "deleted"])
    offsets = {str(stable): committed(kafka, names, stable=stable) for stable in (False, True)}
    # Before its producer ends, which would abort what is to stay open.
    assert kafka.terminate() in {0, 143}
    del still_open
    return {"groups": groups, "offsets": offsets, "undecided": list(undecided)}


@pytest.mark.timeout(600)
def test_groups_of_kafka_are_there(kafka, tmp_path):
    stopped = kafka.stopped("groups", leave_groups, tmp_path)
    groups, offsets = stopped.observed["groups"], stopped.observed["offsets"]
    undecided = Transactional(*stopped.observed["undecided"])
    names = sorted([*groups, "deleted"])
    assert offsets["False"]["aborted"] == [[TOPIC, 0, 3, 0]]
    assert offsets["False"]["overtaken"] == [[TOPIC, 0, 9, 0]]
    assert offsets["False"]["deleted"] == []
    assert offsets["True"]["open"] != offsets["False"]["open"]
    with stopped.open(Barnabas(tmp_path, node_id="1")) as barnabas:
        for _ in range(2):
            assert plain(listed(barnabas)) == groups
            for stable in (False, True):
                assert plain(committed(barnabas, names, stable=stable)) == offsets[str(stable)]
            barnabas.kill()
            barnabas.restart()
        read_again = consumer(barnabas, "classic")
        places = read_again.committed([TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)])
        assert [place.offset for place in places] == [10, 10]
        read_again.close()
        with OffsetsClient(barnabas) as raw:
            raw.ended(undecided, IMPLICIT, commit=True)
            raw.begin_life("open-leave open")  # Ends what its former self has left open.
            # Both are acknowledged when they are decided; the markers follow.
            for group, wanted_offsets in (
                ("undecided", {(TOPIC, 0): -1, (TOPIC, 1): 5}),
                ("open", {(TOPIC, 0): 2}),
            ):
                wanted = {TOPIC: [index for _, index in wanted_offsets]}
                wait_until(lambda g=group, w=wanted: UNSTABLE not in raw.fetch(g, w).values())
                assert raw.fetch(group, wanted) == wanted_offsets
