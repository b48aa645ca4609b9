"""Transactions of kafka-python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import kafka
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.counterparts.logins import Login, kafka_python_settings
from tests.counterparts.mended_kafka_python import PatientClient
from tests.history.model import Partition, Write
from tests.torture.sessions import Failed, Over, patience_s

Result = TypeVar("Result")


class Session:
    """kafka-python."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        self._patience_s = patience_s(timeout_ms)
        self._producer = self._try(
            lambda: kafka.KafkaProducer(
                bootstrap_servers=servers,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                max_block_ms=self._patience_s * 1000,
                reconnect_backoff_ms=20,
                reconnect_backoff_max_ms=200,
                kafka_client=PatientClient,
                **kafka_python_settings(login),
            ),
            Over,
        )
        self._try(self._producer.init_transactions, Over)

    def begin(self) -> None:
        self._try(self._producer.begin_transaction, Over)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        def send_all() -> list[Write]:
            sent = [
                self._producer.send(write.topic, write.value.encode(), partition=write.partition)
                for write in writes
            ]
            placed = [future.get(timeout=self._patience_s) for future in sent]
            return [w._replace(offset=p.offset) for w, p in zip(writes, placed, strict=True)]

        return self._try(send_all, Failed)

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = {
            kafka.TopicPartition(*place): OffsetAndMetadata(at, "", -1)
            for place, at in offsets.items()
        }
        # Offsets that were refused would go with those of the next transaction (3.0.12): a producer
        # that has any is not gone on with.
        self._try(lambda: self._producer.send_offsets_to_transaction(places, group), Over)

    def commit(self) -> None:
        self._try(self._producer.commit_transaction, Failed)

    def abort(self) -> None:
        self._try(self._producer.abort_transaction, Over)

    def close(self) -> None:
        # What was not sent is not sent any more; it says so by an error.
        with contextlib.suppress(KafkaError):
            self._producer.close(timeout=0)

    @staticmethod
    def _try(operation: Callable[[], Result], failure: type[Exception]) -> Result:
        try:
            return operation()
        except KafkaError as error:
            raise failure(repr(error)) from error
