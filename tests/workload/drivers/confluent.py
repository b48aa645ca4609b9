"""confluent-kafka, which is librdkafka: transactions, sends, readers, members of a group."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.counterparts.logins import NOBODY, Login, librdkafka_settings
from tests.history.model import (
    COMMITTED,
    NOT_KNOWN,
    REBALANCE,
    SEEK,
    OffsetCommit,
    Partition,
    Read,
    Write,
)
from tests.waiting import wait_until
from tests.workload.drivers import (
    MOST_INPUTS,
    POLL_S,
    Failed,
    Over,
    patience_s,
    session_ms,
)
from tests.workload.journal import Journal
from tests.workload.payload import payload, value_of
from tests.workload.settings import GROUP, LEFT, LIBRDKAFKA, PLACES, Settings

RETRY_S = 0.05
MOST_RECORDS = 500
FLUSH_S = 120
REWIND_S = 5
WAIT_S, ASK_S, LOOK_S = 120, 20, 0.1
Result = TypeVar("Result")
DEBUG = os.environ.get("TORTURE_DEBUG", "")
"""Contexts of librdkafka's debug log, as "msg,topic,metadata,protocol"; written to stderr."""
_SILENT = logging.getLogger("tests.workload.drivers.confluent")
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
                # Fatal errors are raised by the calls, so they are not printed.
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


class Sender:
    """An idempotent producer."""

    def __init__(self, settings: Settings) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": settings.servers,
                "enable.idempotence": True,
                "message.timeout.ms": FLUSH_S * 1000,
                "linger.ms": 1,
                **LIBRDKAFKA,
                **librdkafka_settings(settings.login),
                "error_cb": lambda _error: None,
                **({"debug": DEBUG, "log_level": 7} if DEBUG else {"log_level": 0}),
            }
        )

    def send(self, writes: Sequence[Write], pad_bytes: int) -> tuple[list[Write], Exception | None]:
        acked: list[Write] = []
        errors: list[KafkaError] = []
        for each in writes:

            def delivered(error: KafkaError | None, message: Any, each: Write = each) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    acked.append(each._replace(offset=NOT_KNOWN if offset is None else offset))

            self._producer.produce(
                each.topic,
                payload(each.value, pad_bytes),
                # For readers that do not print the topic.
                key=each.topic,
                partition=each.partition,
                on_delivery=delivered,
            )
        self._producer.flush(FLUSH_S)
        return acked, KafkaException(errors[0]) if errors else None

    def close(self) -> None:
        """Nothing: it ends when it is forgotten."""


def consumer(
    servers: str,
    isolation: str,
    begins: Mapping[Partition, int] = MappingProxyType(dict.fromkeys(PLACES, 0)),
    login: Login = NOBODY,
) -> Consumer:
    """Return a consumer of some partitions, by default from the beginning of all."""
    made = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            # Records never disappear here: no other place will do.
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            "enable.partition.eof": True,
            **LIBRDKAFKA,
            **librdkafka_settings(login),
            "error_cb": lambda _error: None,
            "log_level": 0,
        }
    )
    made.assign([TopicPartition(*place, at) for place, at in begins.items()])
    return made


def taken(message: Any) -> Read | None:
    """Return a record, or ``None`` for the end of a partition or a broker that is down."""
    error = message.error()
    if error is None:
        value = value_of(message.value())
        return Read(message.topic(), message.partition(), message.offset(), value)
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise KafkaException(error)
    return None


class Reader:
    """A reader of all partitions."""

    def __init__(self, settings: Settings) -> None:
        self._consumer = consumer(settings.servers, settings.isolation, login=settings.login)

    def poll(self) -> list[Read]:
        polled = map(taken, self._consumer.consume(MOST_RECORDS, POLL_S))
        return [each for each in polled if each is not None]

    def close(self) -> None:
        self._consumer.close()


class Input:
    """A member of the group of transformers."""

    group = GROUP

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self.was_moved = True
        self._journal = journal
        self._consumer = Consumer(
            {
                "bootstrap.servers": settings.servers,
                "client.id": settings.name,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": COMMITTED,
                "partition.assignment.strategy": "range",
                "session.timeout.ms": session_ms(settings),
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                **LIBRDKAFKA,
                **librdkafka_settings(settings.login),
                "error_cb": lambda _error: None,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(
            [LEFT], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self) -> list[Read]:
        polled = map(taken, self._consumer.consume(MOST_INPUTS, POLL_S))
        return [each for each in polled if each is not None]

    def metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def rewind(self) -> bool:
        try:
            places = self._consumer.assignment()
            if not places:
                return True
            found = self._consumer.committed(places, REWIND_S)
            if any(each.error for each in found):
                return False
            self._journal.moved([(each.topic, each.partition) for each in found], SEEK)
            for each in found:
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(each.topic, each.partition, offset))
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self.was_moved = True
        self._journal.moved(map(_place, places), REBALANCE)

    def _revoked(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self.was_moved = True
        self._journal.moved(map(_place, places), REBALANCE)


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition


class Look:
    """Requests after all clients have ended: ends of partitions, records, committed offsets."""

    def __init__(self, servers: str, login: Login = NOBODY) -> None:
        self._servers = servers
        self._login = login

    def ends(self, places: Sequence[Partition], isolation: str) -> dict[Partition, int]:
        asking = consumer(self._servers, isolation, login=self._login)

        def ends() -> dict[Partition, int]:
            return {
                place: asking.get_watermark_offsets(TopicPartition(*place), timeout=ASK_S)[1]
                for place in places
            }

        try:
            # A broker that has just started may not lead its partitions yet.
            return _repeated(ends, "the ends of the partitions")
        finally:
            asking.close()

    def read(
        self, begins: Mapping[Partition, int], _ends: Mapping[Partition, int], isolation: str
    ) -> list[Read]:
        reader = consumer(self._servers, isolation, begins, self._login)
        reads: list[Read] = []
        unfinished = set(begins)
        try:
            deadline = time.monotonic() + WAIT_S
            while unfinished:
                assert time.monotonic() < deadline, f"not read to the end: {unfinished}"
                for message in reader.consume(MOST_RECORDS, LOOK_S):
                    record, error = taken(message), message.error()
                    if record is not None:
                        reads.append(record)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unfinished.discard((message.topic(), message.partition()))
        finally:
            reader.close()
        return reads

    def committed(self, group: str, places: Sequence[Partition]) -> list[OffsetCommit]:
        asking = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": group,
                # The client waits while a transaction is pending.
                "isolation.level": COMMITTED,
                "log_level": 0,
                **LIBRDKAFKA,
                **librdkafka_settings(self._login),
            }
        )
        wanted = [TopicPartition(*place) for place in places]
        try:
            # The library does not retry each error of a coordinator that moves.
            found = _repeated(
                lambda: asking.committed(wanted, ASK_S), f"the committed offsets of {group}"
            )
        finally:
            asking.close()
        assert not any(each.error for each in found), found
        # An offset that was never committed has a special value, below -1.
        return [OffsetCommit(group, e.topic, e.partition, max(e.offset, -1)) for e in found]

    def close(self) -> None:
        """Nothing: each request has a consumer of its own."""


def _repeated(ask: Callable[[], Result], what: str) -> Result:
    """Repeat a request while it fails."""
    results: list[Result] = []
    errors: list[str] = []

    def is_done() -> bool:
        try:
            results.append(ask())
        except KafkaException as error:
            errors.append(str(error))
        return bool(results)

    wait_until(is_done, lambda: f"{what}: {errors[-1:]}", seconds=WAIT_S, pause_s=LOOK_S)
    return results[0]
