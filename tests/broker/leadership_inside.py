"""Logs and coordinators of a broker, compared with the partitions that it leads."""

from __future__ import annotations

import re

from barnabas.broker.cluster.leading.states import State
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.server import BrokerServer
from barnabas.storage.log.log_directory import DELETED_SUFFIX, LOADING_SUFFIX
from barnabas.testing import Broker, Cluster
from tests.waiting import wait_until

PARTITION = re.compile(r".*-\d")
"""Names of the directories of partitions, with any suffix."""


def check_leadership(broker: Broker) -> None:
    """Raise AssertionError if a running broker has a log, or a shard, that it does not lead."""
    broker.call(lambda: _check(broker.server))


def _check(server: BrokerServer) -> None:
    assert server.leadership is not None
    logs = {}
    for partition_id, place in server.leadership._places.items():
        partition, state = place.partition, place.state
        assert partition.log is place.log
        assert (partition.log is None) == (state in {State.AWAY, State.READING})
        assert partition.is_coming == (state in {State.READING, State.OPENED})
        if partition.log is not None:
            logs[partition_id] = partition.log
        if partition.topic.is_internal:
            is_group = partition.topic.name == GROUP_OFFSETS
            shards = (server.groups if is_group else server.transactions).log.shards
            is_coordinated = any(each.log is partition.log for each in shards)
            assert is_coordinated == (state in {State.SERVED, State.DRAINING})
    assert logs == server.logs.logs


def check_at_rest(cluster: Cluster) -> None:
    """Wait until all is served by its leader, and nothing is left of what was read in between."""
    cluster.wait_until_served()
    for number in cluster.running:
        broker = cluster.brokers[number]
        wait_until(lambda broker=broker: _is_at_rest(broker.server), f"broker {number} is at rest")
        check_leadership(broker)


def _is_at_rest(server: BrokerServer) -> bool:
    """Whether the broker holds nothing that it read, and has files of its own logs only."""
    assert server.leadership is not None
    assert server._member is not None
    if server._member.durable_logs.short_bytes.held:
        return False
    root = server.logs.root
    names = {name for name in server.file_system.list_directory(root) if PARTITION.match(name)}
    led = {log.directory.name for log in server.logs.logs.values()}
    leftover = [name for name in names if name.endswith((LOADING_SUFFIX, DELETED_SUFFIX))]
    return not leftover and names <= led
