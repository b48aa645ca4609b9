"""The end of a producer's transaction, as it is written to every partition that took part."""

from typing import Final

from barnabas.protocol.records import control_batch

_NOT_ENCODED: Final = -1


class TransactionMarker:
    """Content of a marker, and the version of the transaction it ends."""

    __slots__ = (
        "_batch",
        "_timestamp_ms",
        "commit",
        "coordinator_epoch",
        "producer_epoch",
        "producer_id",
        "transaction_version",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.commit = commit
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self._timestamp_ms = _NOT_ENCODED
        self._batch = memoryview(b"")

    def batch(self, timestamp_ms: int) -> memoryview:
        """Return the control batch of this time; most partitions of a transaction share one."""
        if timestamp_ms != self._timestamp_ms:
            encoded = control_batch(
                self.producer_id,
                self.producer_epoch,
                commit=self.commit,
                coordinator_epoch=self.coordinator_epoch,
                timestamp=timestamp_ms,
            )
            self._batch = memoryview(encoded)
            self._timestamp_ms = timestamp_ms
        return self._batch
