"""One transaction through the broker's own handlers, as a producer writes it.

Retriable errors are retried; any other error ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.admin.exchange import Rejected
from barnabas.broker.admin.transactional_producer import Batch, TransactionalProducer
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.admin.exchange import Exchange
    from barnabas.broker.console.actions.wire import WireClient

AGAIN_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 30.0
"""Time for retries while the previous transaction is still ending."""
_NOT_YET: Final = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)


class Transaction:
    """The one transaction of a transactional id."""

    def __init__(self, wire: WireClient, transactional_id: str, topic: str) -> None:
        self.producer = TransactionalProducer(transactional_id, topic)
        self._wire = wire

    async def initialize(self, timeout_ms: int) -> None:
        """Initialize the producer of the ID, which fences an earlier one."""
        await self._run_patiently(lambda: self.producer.initialize(timeout_ms))

    async def write(self, batches: Sequence[Batch]) -> None:
        """Write batches, one of a partition at most; acknowledged when they are durable."""
        await self._run_patiently(lambda: self.producer.add([each.partition for each in batches]))
        await self._wire.run(self.producer.write(batches))

    async def end(self, *, commit: bool) -> None:
        """Commit or abort: decided and durable when this returns."""
        await self._run_patiently(lambda: self.producer.end(commit=commit))

    async def _run_patiently(self, exchange: Callable[[], Exchange[None]]) -> None:
        """Repeat an exchange until it succeeds; raises KafkaError."""
        clock = self._wire.clock
        until_s = clock.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return await self._wire.run(exchange())
            except Rejected as error:
                if error.code not in _NOT_YET or clock.monotonic() >= until_s:
                    raise
            await clock.sleep(AGAIN_SECONDS)
