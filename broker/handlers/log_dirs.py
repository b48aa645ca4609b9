"""DescribeLogDirs 1-5: how much the data directory holds.

Version notes: v3 adds an error for the whole request, v4 the size of the device, v5 whether new
replicas are kept off a directory (KIP-1066). There is one directory and one replica of everything,
so nothing lags behind and nothing moves.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.topic import Partition
from barnabas.broker.runtime.host import Host
from barnabas.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.storage.store.log_store import LogStore

NO_LAG = 0


@serves(DESCRIBE_LOG_DIRS, versions=(1, 5))
def describe_log_dirs(
    catalogue: Catalogue,
    host: Host,
    logs: LogStore,
    context: RequestContext,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse:
    """Return the size of each requested existing partition."""
    directory = DescribeLogDirsResult(
        log_dir=os.path.abspath(logs.root),
        topics=_described(catalogue, request),
        total_bytes=logs.file_system.total_bytes(logs.root),
        usable_bytes=logs.file_system.free_bytes(logs.root),
        is_cordoned=bool(host.config.cordoned_log_dirs),
    )
    return DescribeLogDirsResponse(results=[directory])


def _described(catalogue: Catalogue, request: DescribeLogDirsRequest) -> list[DescribeLogDirsTopic]:
    if request.topics is None:
        return [_topic(topic.name, topic.partitions) for topic in catalogue.topics.values()]
    # A topic or a partition that is named twice is described once.
    wanted: dict[str, dict[int, Partition]] = {}
    for asked in request.topics:
        for index in asked.partitions:
            partition = catalogue.partition(asked.topic, index)
            if partition is not None:
                wanted.setdefault(asked.topic, {})[index] = partition
    return [_topic(name, partitions.values()) for name, partitions in wanted.items()]


def _topic(name: str, partitions: Iterable[Partition]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name,
        [
            DescribeLogDirsPartition(partition.index, partition.log.size_bytes, NO_LAG)
            for partition in partitions
            if partition.log is not None
        ],
    )
