"""Transactional producers of three libraries behind one interface, with every offset they report.

An error is one of two: `Failed`, after which the transaction can be aborted, or `Over`, after which
the session has to be replaced by a new one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaException
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

from tests.history.model import NOT_KNOWN, Partition, Write

PATIENCE_S = 15
"""How long a client tries one thing while the broker may be down."""
RETRY_S = 0.05
_SILENT = logging.getLogger("tests.torture.sessions")
_SILENT.setLevel(logging.CRITICAL + 1)
Result = TypeVar("Result")


class Failed(Exception):
    """The transaction failed, and can be aborted."""


class Over(Exception):
    """The session cannot go on: fenced, or its library gave up."""


class Session(Protocol):
    """A producer with a transactional id, past its initTransactions."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None: ...

    def begin(self) -> None: ...

    def send(self, writes: Sequence[Write]) -> list[Write]:
        """Send and wait; returns what was acknowledged, with offsets. Raises when not all were."""

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        """Send offsets with the transaction; `group` is what the library's consumer says it is."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                # It may not be longer than the transaction's, nor is there a need.
                "message.timeout.ms": timeout_ms,
                "linger.ms": 1,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                # Fatal errors are raised where they matter, and need not be printed as well.
                "error_cb": lambda _error: None,
                "logger": _SILENT,
            }
        )
        self._acked: list[Write] = []
        self._errors: list[str] = []
        self._try(lambda: self._producer.init_transactions(PATIENCE_S))

    def begin(self) -> None:
        self._try(self._producer.begin_transaction)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        self._acked, self._errors = [], []
        for write in writes:
            self._try(lambda write=write: self._produce(write))
        try:
            left = self._producer.flush(PATIENCE_S)
        except (SystemError, KafkaException) as error:
            raise Over(repr(error.__cause__ or error)) from error
        if self._errors or left:
            raise Failed(f"{left} left, {self._errors[:1]}")
        return self._acked

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = [confluent_kafka.TopicPartition(*place, at) for place, at in offsets.items()]
        self._try(lambda: self._producer.send_offsets_to_transaction(places, group, PATIENCE_S))

    def commit(self) -> None:
        self._try(lambda: self._producer.commit_transaction(PATIENCE_S))

    def abort(self) -> None:
        self._try(lambda: self._producer.abort_transaction(PATIENCE_S))

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

    @staticmethod
    def _try(operation: Callable[[], object]) -> None:
        until_s = time.monotonic() + PATIENCE_S
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


class KafkaPython:
    """kafka-python."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = self._try(
            lambda: kafka.KafkaProducer(
                bootstrap_servers=servers,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                max_block_ms=PATIENCE_S * 1000,
                reconnect_backoff_ms=20,
                reconnect_backoff_max_ms=200,
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
            placed = [future.get(timeout=PATIENCE_S) for future in sent]
            return [w._replace(offset=p.offset) for w, p in zip(writes, placed, strict=True)]

        return self._try(send_all, Failed)

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = {
            kafka.TopicPartition(*place): OffsetAndMetadata(at, "", -1)
            for place, at in offsets.items()
        }
        self._try(lambda: self._producer.send_offsets_to_transaction(places, group), Failed)

    def commit(self) -> None:
        self._try(self._producer.commit_transaction, Failed)

    def abort(self) -> None:
        self._try(self._producer.abort_transaction, Over)

    def close(self) -> None:
        self._producer.close(timeout=0)

    @staticmethod
    def _try(operation: Callable[[], Result], failure: type[Exception]) -> Result:
        try:
            return operation()
        except KafkaPythonError as error:
            raise failure(repr(error)) from error


class Aiokafka:
    """aiokafka, on an event loop that runs while something is asked of it."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._runner = asyncio.Runner()

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=servers,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                retry_backoff_ms=20,
            )
            await producer.start()
            return producer

        self._producer = self._run(start(), Over)

    def begin(self) -> None:
        self._run(self._producer.begin_transaction(), Over)

    def send(self, writes: Sequence[Write]) -> list[Write]:
        async def send_all() -> list[Write]:
            sent = [
                await self._producer.send(w.topic, w.value.encode(), partition=w.partition)
                for w in writes
            ]
            placed = await asyncio.gather(*sent)
            return [w._replace(offset=p.offset) for w, p in zip(writes, placed, strict=True)]

        return self._run(send_all(), Failed)

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        places = {aiokafka.TopicPartition(*place): at for place, at in offsets.items()}
        self._run(self._producer.send_offsets_to_transaction(places, group), Failed)

    def commit(self) -> None:
        self._run(self._producer.commit_transaction(), Failed)

    def abort(self) -> None:
        self._run(self._producer.abort_transaction(), Over)

    def close(self) -> None:
        """Nothing that takes time: its sender may have ended with the error raised before."""
        self._runner.close()

    def _run(self, operation: Coroutine[Any, Any, Result], failure: type[Exception]) -> Result:
        async def bounded() -> Result:
            return await asyncio.wait_for(operation, PATIENCE_S)

        try:
            return self._runner.run(bounded())
        except (AiokafkaError, TimeoutError, AssertionError) as error:
            # Of a state that it does not allow it says so by an assertion.
            raise failure(repr(error)) from error


SESSIONS: dict[str, type[Session]] = {
    "confluent": Confluent,
    "kafka_python": KafkaPython,
    "aiokafka": Aiokafka,
}
