"""Transactions by bare requests of the classic protocol, for any broker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.runtime.clock import now_ns
from tests.counterparts.wire_client import Addressed, WireClient
from tests.requests import add_partitions_request, added_codes, produce_request, produced
from tests.waiting import wait_until

INIT_CLASSIC = 4
INIT_TWO_PHASE = 6
PRODUCE_CLASSIC = 11
"""The last version of Produce that adds nothing to a transaction."""

NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""The errors after which a client retries."""


class TransactionSteps:
    """The steps of a producer, for any number of transactional ids; each must succeed at last."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        """``ask`` is that of a WireClient."""
        self.ask = ask
        self.producers: dict[str, tuple[int, int]] = {}
        self._sequences: dict[tuple[str, str, int], int] = {}

    def init(
        self, key: str, timeout_ms: int = 60_000, *, is_pinned: bool = False
    ) -> tuple[int, int]:
        """Give an id a producer; it is the only one from now on.

        ``is_pinned``: its transactions have no timeout, because an external coordinator decides
        them (KIP-939).
        """
        request = InitProducerIdRequest(key, timeout_ms, enable2_pc=is_pinned)
        lookup = FindCoordinatorRequest(key_type=1, coordinator_keys=[key])

        def found() -> bool:
            (answer,) = self.ask(FIND_COORDINATOR, lookup, 4).coordinators
            assert answer.error_code in {ErrorCode.NONE, *NOT_YET}
            return answer.error_code == ErrorCode.NONE

        def initialized() -> bool:
            version = INIT_TWO_PHASE if is_pinned else INIT_CLASSIC
            answer = self.ask(INIT_PRODUCER_ID, request, version)
            assert answer.error_code in {ErrorCode.NONE, *NOT_YET}
            self.producers[key] = answer.producer_id, answer.producer_epoch
            return answer.error_code == ErrorCode.NONE

        wait_until(found, "found")
        wait_until(initialized, "initialized")
        self._sequences = {place: n for place, n in self._sequences.items() if place[0] != key}
        return self.producers[key]

    def add(self, key: str, topic: str, *partitions: int) -> None:
        """Make partitions part of the transaction of an id."""
        places = [(topic, each) for each in partitions]
        request = add_partitions_request(key, self.producers[key], *places)

        def added() -> bool:
            codes = set(added_codes(self.ask(ADD_PARTITIONS_TO_TXN, request, 3)))
            assert codes <= {ErrorCode.NONE, *NOT_YET}
            return codes == {ErrorCode.NONE}

        wait_until(added, "added")

    def produce(self, key: str, topic: str, partition: int, count: int = 1) -> ErrorCode:
        """Send records as part of the transaction of an id, once."""
        place = key, topic, partition
        sequence = self._sequences.get(place, 0)
        now_ms = now_ns() // 1_000_000
        batch = encode_batch(
            [Record(number, now_ms, b"key", b"value") for number in range(count)],
            producer_id=self.producers[key][0],
            producer_epoch=self.producers[key][1],
            base_sequence=sequence,
            transactional=True,
        )
        request = produce_request({(topic, partition): batch}, transactional_id=key)
        code = ErrorCode(produced(self.ask(PRODUCE, request, PRODUCE_CLASSIC)).error_code)
        if not code:
            self._sequences[place] = sequence + count
        return code

    def write(self, key: str, topic: str, partition: int, count: int = 1) -> None:
        """Write records as part of the transaction of an id."""

        def written() -> bool:
            code = self.produce(key, topic, partition, count)
            assert code in {ErrorCode.NONE, *NOT_YET}
            return code == ErrorCode.NONE

        wait_until(written, "written")

    def begin(
        self,
        key: str,
        topic: str,
        *partitions: int,
        timeout_ms: int = 60_000,
        is_pinned: bool = False,
    ) -> None:
        """Open a transaction with a record on each partition."""
        self.init(key, timeout_ms, is_pinned=is_pinned)
        self.add(key, topic, *partitions)
        for partition in partitions:
            self.write(key, topic, partition)

    def end(self, key: str, *, commit: bool = True) -> None:
        """Decide."""
        request = EndTxnRequest(key, *self.producers[key], commit)

        def ended() -> bool:
            code = self.ask(END_TXN, request, 3).error_code
            assert code in {ErrorCode.NONE, *NOT_YET}
            return code == ErrorCode.NONE

        wait_until(ended, "ended")


class TransactionClient(TransactionSteps, WireClient):
    """A connection of its own."""

    def __init__(self, broker: Addressed, client_id: str = "wire-client") -> None:
        WireClient.__init__(self, broker, client_id=client_id)
        TransactionSteps.__init__(self, partial(WireClient.ask, self))
