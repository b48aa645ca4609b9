"""A topic with the longest name there may be lives and ends as any other, on disk, too."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.replicated.log_reading import FIRST_AT_ONCE
from barnabas.storage.store import loading_apart
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch
from tests.cluster.watched import WatchedCluster
from tests.requests import create_topic
from tests.waiting import wait_until
from tests.worlds import world

__all__ = ["world"]

LONGEST = "t" * 249
PARTITIONS = 2


def delete(wire: Wire) -> None:
    request = DeleteTopicsRequest([DeleteTopicState(LONGEST)], timeout_ms=60_000)
    (result,) = wire.ask(DELETE_TOPICS, request, 6).responses
    assert result.error_code == ErrorCode.NONE


def directories(root: Path) -> set[str]:
    return {each.name for each in root.iterdir() if each.name.startswith("ttt")}


def test_topic_with_a_long_name_is_written_deleted_and_created_again(tmp_path):
    both = {f"{LONGEST}-{index}" for index in range(PARTITIONS)}
    with Broker(storage=tmp_path) as broker:
        with Wire(broker.address) as wire:
            for value in (b"before", b"after"):
                create_topic(wire, LONGEST, PARTITIONS)
                for partition in range(PARTITIONS):
                    written = wire.produce(Named(LONGEST), batch(value), partition)
                    assert written.error_code == ErrorCode.NONE
                wait_until(lambda: directories(tmp_path) == both)
                assert wire.read(Named(LONGEST)) == [value]
                if value == b"before":
                    delete(wire)
                    wait_until(lambda: broker.server.failure or not directories(tmp_path))
                    assert broker.server.failure is None
        broker.restart()
        with Wire(broker.address) as wire:
            assert wire.read(Named(LONGEST)) == [b"after"]
            delete(wire)
            wait_until(lambda: broker.server.failure or not directories(tmp_path))
            assert broker.server.failure is None


def test_its_long_log_goes_from_leader_to_leader(monkeypatch):
    loaded: list[str] = []
    take_place = LogDirectory.take_place

    def noted(directory: LogDirectory) -> None:
        loaded.append(directory.name)
        take_place(directory)

    monkeypatch.setattr(LogDirectory, "take_place", noted)
    monkeypatch.setattr(loading_apart, "PIECE_BYTES", 1000)
    count = FIRST_AT_ONCE + 10
    with WatchedCluster() as cluster:
        cluster.create_topic(LONGEST)
        # Each value is a flush of its own, and many flushes are a long log.
        cluster.send(LONGEST, range(count))
        leader = cluster.leader(LONGEST)
        cluster.stop(leader)
        cluster.settle(LONGEST)
        wait_until(lambda: loaded == [f"{LONGEST}-0"])
        assert cluster.values(LONGEST) == [*range(count)]
        cluster.send(LONGEST, [count])
        with Wire(cluster.brokers[cluster.running[0]].address) as wire:
            delete(wire)
        left = [cluster.brokers[each].server.catalogue for each in cluster.running]
        wait_until(lambda: all(each.topic(LONGEST) is None for each in left))
