"""Requests about many partitions at once, and which of the partitions were served."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.counterparts.broker_process import HOST

TIMEOUT_S = 60.0
FETCH_VERSION = 12
PRODUCE_VERSION = 11
TRANSACTION = 1


class Lines:
    """A connection to each broker, made when it is needed, and again when it is lost."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.fetch_offset = 0
        """Offset at which readers fetch."""
        self._clients: dict[int, WireClient] = {}

    def ask(self, port: int, api: Any, request: Any, version: int) -> Any:
        """Return the response, or None if no broker responds."""
        try:
            client = self._clients.get(port)
            if client is None:
                client = WireClient((HOST, port), "takeovers", TIMEOUT_S)
                self._clients[port] = client
            return client.ask(api, request, version)
        except (OSError, EOFError):
            lost = self._clients.pop(port, None)
            if lost is not None:
                with suppress(OSError):
                    lost.close()
            return None

    def close(self) -> None:
        """Close all of them."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def fetched(self, port: int, partitions: Collection[int]) -> dict[int, int]:
        """Return the high watermarks of those partitions that a broker serves readers of."""
        if not partitions:
            return {}
        asked = [
            FetchPartition(each, fetch_offset=self.fetch_offset, partition_max_bytes=1)
            for each in sorted(partitions)
        ]
        topics = [FetchTopic(topic=self._topic, partitions=asked)]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics)
        answer = self.ask(port, FETCH, request, FETCH_VERSION)
        if answer is None or answer.error_code:
            return {}
        return {
            each.partition_index: each.high_watermark
            for topic in answer.responses
            for each in topic.partitions
            if each.error_code == ErrorCode.NONE
        }

    def produced(self, port: int, partitions: Collection[int], batch: bytes) -> set[int]:
        """Return those partitions that have taken a batch, durably."""
        if not partitions:
            return set()
        data = [PartitionProduceData(each, batch) for each in sorted(partitions)]
        request = ProduceRequest(
            None, -1, 30_000, [TopicProduceData(self._topic, partition_data=data)]
        )
        answer = self.ask(port, PRODUCE, request, PRODUCE_VERSION)
        if answer is None:
            return set()
        return {
            each.index
            for topic in answer.responses
            for each in topic.partition_responses
            if each.error_code == ErrorCode.NONE
        }

    def coordinators(self, port: int, keys: Iterable[str]) -> dict[str, int]:
        """Return the ports of the coordinators of those ids that have one."""
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(keys))
        answer = self.ask(port, FIND_COORDINATOR, request, 4)
        if answer is None:
            return {}
        return {each.key: each.port for each in answer.coordinators if not each.error_code}

    def begun(self, port: int, key: str) -> bool:
        """Whether a coordinator gives an id a producer."""
        answer = self.ask(port, INIT_PRODUCER_ID, InitProducerIdRequest(key, 60_000), 4)
        return answer is not None and answer.error_code == ErrorCode.NONE
