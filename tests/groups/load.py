"""Records that keep coming, each value once, and what the broker said about every one of them."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from tests.groups.events import Partition

FLUSH_S = 60


class Load:
    """`with Load(servers, topic, partitions, 200) as load:` an idempotent producer in a thread."""

    def __init__(self, servers: str, topic: str, partitions: int, records_per_s: float) -> None:
        self.topic = topic
        self.acked: dict[tuple[str, int, int], str] = {}
        """Topic, partition, offset of every acknowledged record, with its value."""
        self.failures: list[str] = []
        self.sent = 0
        self._partitions = partitions
        self._interval_s = 1 / records_per_s
        self._ends: dict[Partition, int] = {(topic, number): 0 for number in range(partitions)}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        settings: dict[str, str | int | float | bool | None] = {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 20,
            # A broker that is being restarted is no reason to give a record up.
            "message.timeout.ms": 120_000,
            "reconnect.backoff.max.ms": 500,
            # It would report every time that the broker is down.
            "log_level": 0,
        }
        self._producer = Producer(settings)

    def ends(self) -> dict[Partition, int]:
        """Return the offset behind the last acknowledged record of every partition."""
        return dict(self._ends)

    def stop(self) -> None:
        """Send nothing more; wait until everything sent has been answered."""
        if not self._thread.is_alive():
            self.failures.append("the load failed; its own error is above")
        self._stopping.set()
        self._thread.join()
        left = self._producer.flush(FLUSH_S)
        if left:
            self.failures.append(f"{left} records without an answer")

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stopping.is_set():
            partition = self.sent % self._partitions
            value = f"{self.topic}-{self.sent}"
            self._producer.produce(
                self.topic, value, key=self.topic, partition=partition, on_delivery=self._delivered
            )
            self.sent += 1
            due_s += self._interval_s
            # Also waits: the time until the next record is spent on the answers to earlier ones.
            self._producer.poll(max(0.0, due_s - time.monotonic()))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        place = message.topic(), message.partition()
        self.acked[*place, message.offset()] = message.value().decode()
        self._ends[place] = max(self._ends[place], message.offset() + 1)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
