"""Decisions that take long (``Decision.steps``): decided, encoded and applied in slices.

Each function awaits ``pause`` between two slices. What that raises goes through: the rest does not
happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.waiting import Durability
from barnabas.broker.coordination.decision_batch import encoded_record, sealed_batch
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.shard import Shard
    from barnabas.coordinator.decision import LongDecision
    from barnabas.storage.appended import Appended

Pause = Callable[[], Awaitable[None]]

RECORDS_PER_SLICE: Final = 250
"""Records encoded or applied before the loop may get a turn: a few milliseconds' work."""


async def decide_in_slices(
    steps: Generator[None, None, LongDecision],
    failed: Callable[[Exception], KafkaError],
    pause: Pause,
) -> LongDecision:
    """Take all steps; ``failed`` says what to raise where there is a mistake in one."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            decision: LongDecision = done.value
            return decision
        except Exception as error:
            raise failed(error) from error
        await pause()


async def encode_in_slices(
    decision: LongDecision, now_ms: int, refuse_too_large: Callable[[int], None], pause: Pause
) -> memoryview | None:
    """The records as one batch, if there are any; as long as it is not too large."""
    encoded: list[bytes] = []
    size_bytes = 0
    for number, record in enumerate(decision.records):
        data = encoded_record(record, number, now_ms)
        encoded.append(data)
        size_bytes += len(data)
        if number % RECORDS_PER_SLICE == 0:
            refuse_too_large(size_bytes)
            await pause()
    refuse_too_large(size_bytes)
    return sealed_batch(encoded, now_ms) if encoded else None


async def apply_in_slices(
    shard: Shard[Any],
    decision: LongDecision,
    base_offset: int,
    fatal: Callable[[BaseException], None],
    pause: Pause,
) -> bool:
    """Let the machine take in all records, while its key is not read; False after a mistake."""
    for number, record in enumerate(decision.records):
        try:
            shard.machine.apply(record, base_offset + number)
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            fatal(error)
            return False
        if number % RECORDS_PER_SLICE == 0:
            await pause()
    return True


async def until_durable(appended: Appended, shard: Shard[Any]) -> None:
    """Wait for the disk; raises KafkaError where that comes to nothing or the partition is lost."""
    assert appended.durable is not None
    durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    appended.durable.add_waiter(Durability(durable, ErrorCode.NOT_COORDINATOR))
    await durable
    if shard.is_gone:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
