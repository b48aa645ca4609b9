"""kill -9 while topics are created, grown and deleted: acknowledged changes survive, and no others.

After each kill the restarted broker must have every created topic with all its partitions. Deleted
topics and their directories must not exist. Every partition must accept and keep records: then
there is exactly one directory for each partition.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.requests import create_topics_request, produce_request
from tests.waiting import wait_until

CHANGES_AT_LEAST = 6
NAMES = ("orders", "payments", "shipments", "returns")


@dataclass
class Answers:
    """The topics that the broker acknowledged, and the last request that got no response."""

    partitions: dict[str, int] = field(default_factory=dict)
    in_doubt: str | None = None
    changes: int = 0


def change_topics(broker: BarnabasProcess, answers: Answers, random: Random) -> None:
    """Change topics, one request at a time, until the broker has died."""
    try:
        with WireClient(broker) as client:
            while True:
                name = random.choice(NAMES)
                answers.in_doubt = name
                _change(client, name, answers, random)
                answers.in_doubt = None
                answers.changes += 1
    except OSError:
        return


def _change(client: WireClient, name: str, answers: Answers, random: Random) -> None:
    count = answers.partitions.get(name)
    if count is None:
        partitions = random.randint(1, 4)
        request = create_topics_request(name, partitions=partitions)
        (result,) = client.ask(CREATE_TOPICS, request, 7).topics
        answers.partitions[name] = partitions
    elif count < 8 and random.random() < 0.5:
        partitions = count + random.randint(1, 3)
        request = CreatePartitionsRequest([CreatePartitionsTopic(name, partitions, None)])
        (result,) = client.ask(CREATE_PARTITIONS, request, 3).results
        answers.partitions[name] = partitions
    else:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name)])
        (result,) = client.ask(DELETE_TOPICS, request, 6).responses
        del answers.partitions[name]
    assert result.error_code == ErrorCode.NONE, result


def look(client: WireClient) -> dict[str, int]:
    """Return the topics the broker has and how many partitions each has."""
    response = client.ask(METADATA, MetadataRequest(None, False), 12)
    assert {topic.error_code for topic in response.topics} <= {ErrorCode.NONE}
    for topic in response.topics:
        indexes = [partition.partition_index for partition in topic.partitions]
        assert indexes == list(range(len(indexes)))
    return {topic.name: len(topic.partitions) for topic in response.topics}


def write_everywhere(client: WireClient, found: dict[str, int]) -> None:
    """Append one record to every partition."""
    batch = encode_batch([Record(0, int(time.time() * 1000), b"key", b"value", ())])
    places = [(name, index) for name, count in found.items() for index in range(count)]
    response = client.ask(PRODUCE, produce_request(dict.fromkeys(places, batch)), 9)
    for topic in response.responses:
        assert {each.error_code for each in topic.partition_responses} == {ErrorCode.NONE}


def partition_directories(data: Path) -> set[str]:
    return {path.name for path in data.iterdir() if path.is_dir()}


def directories_of(found: dict[str, int]) -> set[str]:
    return {f"{name}-{index}" for name, count in found.items() for index in range(count)}


def wait_for_directories(data: Path, wanted: set[str]) -> None:
    """A directory comes with the first record, on the segment thread: give it a moment."""
    wait_until(
        lambda: partition_directories(data) == wanted, lambda: partition_directories(data) ^ wanted
    )


@amounts("kills_wanted", in_test=4, at_night=15)
def test_topics_survive_kills(tmp_path, kills_wanted):
    random, chance = Random(1), Random(2)
    answers = Answers()
    with BarnabasProcess(tmp_path, barnabas_checkpoint_interval_ms="200") as broker:
        for _ in range(kills_wanted):
            changes = threading.Thread(target=change_topics, args=(broker, answers, random))
            enough = answers.changes + CHANGES_AT_LEAST
            changes.start()
            time.sleep(chance.uniform(0.01, 0.4))
            # A busy machine gets the time for something to happen.
            while changes.is_alive() and answers.changes < enough:
                time.sleep(0.005)
            broker.kill()
            changes.join()
            broker.restart()
            with WireClient(broker) as client:
                found = look(client)
                certain = {*answers.partitions, *found} - {answers.in_doubt}
                assert {name: found.get(name) for name in certain} == {
                    name: answers.partitions.get(name) for name in certain
                }
                assert partition_directories(broker.data_directory) <= directories_of(found)
                write_everywhere(client, found)
                wait_for_directories(broker.data_directory, directories_of(found))
            answers.partitions = found
            answers.in_doubt = None
    assert answers.changes > 5 * kills_wanted, "the kills came before anything happened"
