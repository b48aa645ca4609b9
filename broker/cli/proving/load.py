"""Inputs of a run: a transactional producer, some of whose transactions are aborted.

The topic itself says afterwards which inputs were committed, so the writer keeps no journal: after
an error it begins again, with new ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from barnabas.broker.admin.exchange import Partition, Rejected, gathered
from barnabas.broker.admin.transactional_producer import Batch, TransactionalProducer
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.records.record_text import NewRecord
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.partitioning import partition_of
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.runtime.clock import now_ns, sleep
from barnabas.storage.runtime.threads import Thread, new_event, start_thread

TIMEOUT_MS: Final = 15_000
"""Timeout of the writer's transactions."""
ABORTS: Final = 0.12
"""Share of its transactions that it aborts."""
_RECORDS: Final = (1, 8)
"""Records of a transaction."""
_SLOW_SHARE: Final = 0.05
_SLOW_S: Final = 0.4
_RETRY_S: Final = 0.1
_MARKERS_S: Final = 0.01
"""Time between two attempts while the markers of the transaction before are written."""
_ABORTED: Final = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
    )
)
"""Errors of EndTxn for a transaction that its timeout has ended."""
_ENDS_S: Final = 60.0
_ABANDONED_S: Final = 1.0


class Writer:
    """Writes the inputs from a thread of its own, until it is stopped."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        records: Callable[[int], NewRecord],
        *,
        name: str,
        rate: float,
        seed: int,
        limit: int | None = None,
    ) -> None:
        """``records`` makes the input of a number; ``limit``: number of inputs, if any."""
        self.error: BaseException | None = None
        self.numbers = 0
        """Number of ids used so far."""
        self._cluster = cluster
        self._topic = topic
        self._records = records
        self._name = name
        self._rate = rate
        self._limit = limit
        self._chance = Random(f"{seed} inputs")  # noqa: S311
        self._stopping = new_event()
        self._is_abandoned = False
        self._producer: TransactionalProducer | None = None
        self._partitions: list[Partition] = []
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start writing."""
        self._thread = start_thread("barnabas-inputs", self._run)

    def stop(self) -> None:
        """Stop writing; the last transaction is ended. Raises CommandError."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_ENDS_S)
            if self._thread.is_alive():
                self._is_abandoned = True
                raise CommandError(f"the last inputs were not written in {_ENDS_S:.0f} s")
        if self.error is not None:
            raise CommandError(f"the inputs could not be written: {self.error}")

    def finish(self) -> None:
        """Wait until all inputs up to the limit are written; raises CommandError."""
        if self._thread is not None:
            self._thread.join(_ENDS_S)
        self.stop()

    @property
    def left(self) -> int:
        """Number of inputs up to the limit that have not been written."""
        return 0 if self._limit is None else self._limit - self.numbers

    def abandon(self) -> None:
        """Stop writing soon, even without a broker; the last transaction may stay open."""
        self._is_abandoned = True
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_ABANDONED_S)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and not self._has_enough():
                self._attempt(self._transaction)
            # A response that was lost leaves a transaction open: a new session aborts it.
            while self._producer is None and not self._is_abandoned:
                self._attempt(self._begin_session)
        except BaseException as error:  # noqa: BLE001  Raised again by `stop`.
            self.error = error
        finally:
            self._cluster.close()

    def _has_enough(self) -> bool:
        return self._limit is not None and not self.left

    def _attempt(self, step: Callable[[], None]) -> None:
        """Perform a step; begin a new session after an error that may pass."""
        try:
            step()
        except (Unreachable, Rejected, CommandError):
            self._producer = None
            self._cluster.close()
            sleep(_RETRY_S)

    def _begin_session(self) -> None:
        self._partitions = self._cluster.partitions(self._topic)
        producer = TransactionalProducer(self._name, self._topic)
        self._cluster.run(producer.initialize(TIMEOUT_MS))
        self._producer = producer

    def _transaction(self) -> None:
        if self._producer is None:
            self._begin_session()
        producer = self._producer
        assert producer is not None, "a session has begun"
        count = self._chance.randint(*_RECORDS)
        if self._limit is not None:
            count = min(count, self._limit - self.numbers)
        numbers = range(self.numbers, self.numbers + count)
        if self._limit is None:
            self.numbers += count
        self._write([self._records(number) for number in numbers], producer)
        if self._chance.random() < _SLOW_SHARE:
            self._stopping.wait(self._chance.uniform(0, _SLOW_S))
        aborts = self._limit is None and self._chance.random() < ABORTS
        is_ended = self._end(producer, commit=not aborts)
        if is_ended and self._limit is not None:  # Else the records of a file are written again.
            self.numbers += count
        self._stopping.wait(self._chance.uniform(0, 2 * count / self._rate))

    def _end(self, producer: TransactionalProducer, *, commit: bool) -> bool:
        """End the transaction; return False if its coordinator has aborted it before.

        Without a response it may have been committed: the request is repeated until that is known.
        """
        while not self._is_abandoned:
            try:
                self._cluster.run(producer.end(commit=commit))
            except Rejected as problem:
                if problem.code in _ABORTED:
                    break
            except (Unreachable, CommandError):
                pass
            else:
                return True
            self._cluster.close()
            sleep(_RETRY_S)
        self._producer = None
        return False

    def _write(self, records: Sequence[NewRecord], producer: TransactionalProducer) -> None:
        by_partition = gathered((self._choose(each), each) for each in records)
        self._add(sorted(by_partition), producer)
        led = gathered((self._partitions[number].leader_id, number) for number in by_partition)
        for leader, numbers in led.items():
            batches = [_batch(each, by_partition[each], producer) for each in numbers]
            self._cluster.run(producer.write(batches, leader))

    def _choose(self, record: NewRecord) -> int:
        if record.key is None:
            return self._chance.randrange(len(self._partitions))
        return partition_of(record.key, len(self._partitions))

    def _add(self, numbers: Sequence[int], producer: TransactionalProducer) -> None:
        while True:
            try:
                return self._cluster.run(producer.add(numbers))
            except Rejected as problem:
                if problem.code != ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise
            sleep(_MARKERS_S)


def _batch(partition: int, records: Sequence[NewRecord], producer: TransactionalProducer) -> Batch:
    now_ms = now_ns() // 1_000_000
    data = encode_batch(
        [
            Record(index, each.timestamp or now_ms, each.key, each.value, each.headers)
            for index, each in enumerate(records)
        ],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.sequences.get(partition, 0),
        transactional=True,
    )
    return Batch(partition, data, len(records))
