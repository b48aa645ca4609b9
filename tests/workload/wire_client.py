"""A client of a cluster by wire: it retries each request until the response is no reason to retry.

A request that does not end within a minute, or a response that no client of this test may get, is
an error of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import now_ns
from tests.broker.committed_reader import READ_COMMITTED, Seen, committed_records
from tests.broker.data_plane import (
    Named,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
)
from tests.history.model import COMMITTED
from tests.requests import commit_request, fetch_offsets_request
from tests.workload.drivers import Failed, Over
from tests.workload.routing import GROUP, Coordinated, Led, Routing

LATEST = -1
FETCH_VERSION = 12
FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


class WireClient:
    """A client with connections of its own; for one thread."""

    def __init__(self, name: str, addresses: Sequence[tuple[str, int]], seed: int) -> None:
        self.name = name
        self.random = Random(f"{seed} {name}")
        self.routing = Routing(addresses, self.random, name)

    def close(self) -> None:
        self.routing.close()

    def asked(self, place: Any, ask: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        """Retry a request until it is done; return the response.

        Raises Failed for an error after which the transaction can only be aborted, Over for a
        producer that is fenced, and AssertionError for any other error.
        """
        responses: list[Any] = []

        def code() -> int:
            responses.append(ask())
            return code_of(responses[-1])

        told = self.routing.until_answered(place, code)
        if told is ErrorCode.TRANSACTION_ABORTABLE:
            raise Failed(told.name)
        if told in FENCED:
            raise Over(told.name)
        assert told is ErrorCode.NONE, f"{self.name} at {place}: {told!r}"
        return responses[-1]

    def produce(self, place: Led, records: Any, version: int = 9, **more: Any) -> int:
        """Append a batch; return its offset."""
        request = produce_request(version, Named(place.topic), (place.partition, records), **more)
        return self.asked(
            place,
            lambda: (
                self.routing.ask(place, PRODUCE, request, version)
                .responses[0]
                .partition_responses[0]
            ),
            lambda response: response.error_code,
        ).base_offset


def records_of(values: Sequence[bytes], **producer: Any) -> memoryview:
    """Return a batch with the present time: retention deletes records with an old one."""
    return batch(*values, times=[now_ns() // 1_000_000] * len(values), **producer)


def commit_offset(client: WireClient, group: str, of: Led, offset: int) -> None:
    """Commit an offset of a group without members."""
    place = Coordinated(GROUP, group)
    request = commit_request(group, {(of.topic, of.partition): offset})
    client.asked(
        place,
        lambda: client.routing.ask(place, OFFSET_COMMIT, request, 8),
        lambda response: response.topics[0].partitions[0].error_code,
    )


def committed_offset(client: WireClient, group: str, of: Led) -> int:
    """Return a group's stable offset in a partition; -1 without one.

    The request names the partition: a request for all of a group leaves out pending offsets.
    """
    place = Coordinated(GROUP, group)
    request = fetch_offsets_request(group, of=[(of.topic, of.partition)], stable=True)
    (answer,) = client.asked(
        place, lambda: client.routing.ask(place, OFFSET_FETCH, request, 8), _group_code
    ).groups
    return answer.topics[0].partitions[0].committed_offset


def _group_code(answer: Any) -> int:
    (group,) = answer.groups
    codes = [each.error_code for topic in group.topics for each in topic.partitions]
    return next((code for code in [group.error_code, *codes] if code), 0)


def read(
    client: WireClient, place: Led, position: int, isolation: str, max_wait_ms: int = 20
) -> tuple[list[Seen], int]:
    """Fetch once from a position on: the records that a consumer shows, and the next position."""
    is_committed = isolation == COMMITTED

    def fetch() -> Any:
        epoch = client.routing.find(place).epoch
        asked = FetchPartition(
            place.partition,
            current_leader_epoch=epoch,
            fetch_offset=position,
            partition_max_bytes=1 << 20,
        )
        request = fetch_request(
            FETCH_VERSION,
            (Named(place.topic), asked),
            max_wait_ms=max_wait_ms,
            isolation=READ_COMMITTED if is_committed else 0,
        )
        answer = client.routing.ask(place, FETCH, request, FETCH_VERSION)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0]

    data = client.asked(place, fetch, lambda response: response.error_code)
    return committed_records(data, position)


def end_of(client: WireClient, place: Led, isolation: str) -> int:
    """Return the end of a partition from its leader."""
    request = list_offsets_request(
        place.topic, (place.partition, LATEST), isolation=int(isolation == COMMITTED)
    )
    return client.asked(
        place,
        lambda: client.routing.ask(place, LIST_OFFSETS, request, 7).topics[0].partitions[0],
        lambda response: response.error_code,
    ).offset
