"""A transactional producer by wire, of transaction protocol v1 or v2 (KIP-890)."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from tests.broker.raw_producer import ADDS_SINCE, TIMEOUT_MS
from tests.history.model import NOT_KNOWN
from tests.requests import (
    add_partitions_request,
    added_codes,
    codes_of,
    commit_in_transaction_request,
)
from tests.workload.routing import GROUP, TRANSACTION, Coordinated, Led
from tests.workload.wire_client import WireClient, records_of

CLASSIC, IMPLICIT = 11, 12
"""Versions of Produce that decide of which version the transaction protocol is."""


class Transactional(WireClient):
    """A producer with a transactional id."""

    timeout_ms = TIMEOUT_MS

    def __init__(self, name: str, addresses: Any, seed: int, version: int) -> None:
        """``version`` of Produce decides of which version the transaction protocol is."""
        super().__init__(name, addresses, seed)
        self.version = version
        self.coordinator = Coordinated(TRANSACTION, name)
        self.producer_id = self.epoch = NOT_KNOWN
        self._sequences: dict[Led, int] = {}

    @property
    def is_classic(self) -> bool:
        """Whether it has to add partitions itself."""
        return self.version < ADDS_SINCE

    def init(self) -> None:
        """Get an epoch, which ends a transaction that is open."""
        request = InitProducerIdRequest(self.name, self.timeout_ms)
        answer = self._ask_coordinator(INIT_PRODUCER_ID, request, 4)
        self._use(answer.producer_id, answer.producer_epoch)

    def add(self, *places: Led) -> None:
        """Add partitions to the transaction; nothing to do where writing does that."""
        if not self.is_classic:
            return
        named = [(place.topic, place.partition) for place in places]
        request = add_partitions_request(self.name, (self.producer_id, self.epoch), *named)

        def code_of(answer: Any) -> int:
            # Those that could be added are not when another one could not.
            wrong = [each for each in added_codes(answer) if each]
            return next((each for each in wrong if each != _NOT_ATTEMPTED), 0)

        self.asked(
            self.coordinator,
            lambda: self.routing.ask(self.coordinator, ADD_PARTITIONS_TO_TXN, request, 3),
            code_of,
        )

    def write(self, place: Led, *values: str) -> int:
        """Write one batch in the transaction; return its offset."""
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(values)
        records = records_of(
            [value.encode() for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return self.produce(place, records, self.version, transactional_id=self.name)

    def commit_offset(self, group: str, place: Led, offset: int) -> None:
        """Make a group's offset part of the transaction."""
        if self.is_classic:
            added = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
            self._ask_coordinator(ADD_OFFSETS_TO_TXN, added, 3)
        identity = self.producer_id, self.epoch
        offsets = {(place.topic, place.partition): offset}
        request = commit_in_transaction_request(self.name, group, identity, offsets)
        version = 3 if self.is_classic else 5
        at = Coordinated(GROUP, group)
        self.asked(
            at,
            lambda: self.routing.ask(at, TXN_OFFSET_COMMIT, request, version),
            lambda answer: codes_of(answer)[0],
        )

    def end_request(self, *, commit: bool) -> tuple[Any, EndTxnRequest, int]:
        version = 3 if self.is_classic else 5
        return END_TXN, EndTxnRequest(self.name, self.producer_id, self.epoch, commit), version

    def end(self, *, commit: bool) -> None:
        """Decide the transaction."""
        answer = self._ask_coordinator(*self.end_request(commit=commit))
        if not self.is_classic:
            self._use(answer.producer_id, answer.producer_epoch)

    def _ask_coordinator(self, api: Any, request: Any, version: int) -> Any:
        return self.asked(
            self.coordinator,
            lambda: self.routing.ask(self.coordinator, api, request, version),
            lambda answer: answer.error_code,
        )

    def _use(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


_NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED
