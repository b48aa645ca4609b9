"""Records that keep coming: the sender of ``tests/workload`` on a thread."""

from __future__ import annotations

from typing import Self

from tests.history.model import History, Partition
from tests.workload.journal import ACKED, operations
from tests.workload.plans import SENT_AT_ONCE
from tests.workload.settings import Settings
from tests.workload.threads import ThreadClient


class Load:
    """``with Load(servers, topic, partitions, 200) as load:`` an idempotent producer."""

    def __init__(self, servers: str, topic: str, partitions: int, records_per_s: float) -> None:
        self.topic = topic
        self._places = [(topic, index) for index in range(partitions)]
        settings = Settings(
            "sender",
            "confluent",
            f"load-of-{topic}",
            servers,
            "",
            seed=0,
            rest_s=2 * SENT_AT_ONCE / records_per_s,
            topics=(topic,),
            partitions=partitions,
        )
        self._client = ThreadClient(settings)

    def operations(self) -> History:
        """Return the sends up to now."""
        return operations(list(self._client.events))

    @property
    def acknowledged(self) -> int:
        """Number of records that the broker has acknowledged."""
        return sum(len(writes) for writes in self._acked())

    def ends(self) -> dict[Partition, int]:
        """Return the offset behind the last acknowledged record of every partition."""
        ends = dict.fromkeys(self._places, 0)
        for writes in self._acked():
            for each in writes:
                ends[each.place] = max(ends[each.place], each.offset + 1)
        return ends

    def _acked(self):
        return (
            data["writes"] for _, _, kind, _, data in list(self._client.events) if kind == ACKED
        )

    def stop(self) -> None:
        """Stop sending, and wait until all sent records are acknowledged."""
        self._client.stop()
        assert self._client.error is None, self._client.error

    def __enter__(self) -> Self:
        self._client.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.stop()
