"""Transactions of confluent-kafka, which is librdkafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException

from tests.counterparts.logins import Login, librdkafka_settings
from tests.history.model import NOT_KNOWN, Partition, Write
from tests.torture.sessions import Failed, Over, patience_s
from tests.torture.settings import LIBRDKAFKA

RETRY_S = 0.05
_SILENT = logging.getLogger("tests.torture.session_confluent")
_SILENT.setLevel(logging.CRITICAL + 1)


class Session:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        self._patience_s = patience_s(timeout_ms)
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                # It may not be longer than the transaction's, nor is there a need.
                "message.timeout.ms": timeout_ms,
                "linger.ms": 1,
                **LIBRDKAFKA,
                **librdkafka_settings(login),
                # Fatal errors are raised where they matter, and need not be printed as well.
                "error_cb": lambda _error: None,
                "logger": _SILENT,
            }
        )
        self._acked: list[Write] = []
        self._errors: list[str] = []
        self._try(lambda: self._producer.init_transactions(self._patience_s))

    def begin(self) -> None:
        self._try(self._producer.begin_transaction)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        self._acked, self._errors = [], []
        for write in writes:
            self._try(lambda write=write: self._produce(write))
        try:
            left = self._producer.flush(self._patience_s)
        except (SystemError, KafkaException, confluent_kafka.KafkaError) as error:
            # A fatal error comes as itself, or wrapped where the report of a delivery is called.
            # The library's own errors are raised, too, and have no cause.
            raise Over(repr(getattr(error, "__cause__", None) or error)) from None
        if self._errors or left:
            raise Failed(f"{left} left, {self._errors[:1]}")
        return self._acked

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = [confluent_kafka.TopicPartition(*place, at) for place, at in offsets.items()]
        self._try(
            lambda: self._producer.send_offsets_to_transaction(places, group, self._patience_s)
        )

    def commit(self) -> None:
        self._try(lambda: self._producer.commit_transaction(self._patience_s))

    def abort(self) -> None:
        self._try(lambda: self._producer.abort_transaction(self._patience_s))

    def close(self) -> None:
        """Nothing: it ends when it is forgotten."""

    def _produce(self, write: Write) -> None:
        def delivered(error: confluent_kafka.KafkaError | None, message: Any) -> None:
            if error is not None:
                self._errors.append(error.name())
                return
            # A duplicate is acknowledged without an offset.
            offset = message.offset()
            known = offset if offset is not None and offset >= 0 else NOT_KNOWN
            self._acked.append(write._replace(offset=known))

        self._producer.produce(
            write.topic, write.value, partition=write.partition, on_delivery=delivered
        )

    def _try(self, operation: Callable[[], object]) -> None:
        until_s = time.monotonic() + self._patience_s
        while True:
            try:
                operation()
            except KafkaException as raised:
                error = raised.args[0]
                if error.txn_requires_abort():
                    raise Failed(error.name()) from raised
                if error.fatal() or not error.retriable() or time.monotonic() > until_s:
                    raise Over(error.name()) from raised
                time.sleep(RETRY_S)
            else:
                return
