"""Transactions of aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import aiokafka
from aiokafka.errors import KafkaError

from tests.counterparts.logins import Login, aiokafka_settings
from tests.counterparts.mended_aiokafka import patient
from tests.history.model import Partition, Write
from tests.workload.drivers import Failed, Over, patience_s

Result = TypeVar("Result")


class Session:
    """aiokafka, on an event loop that runs during each call."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        self._patience_s = patience_s(timeout_ms)
        self._runner = asyncio.Runner()

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = patient(
                aiokafka.AIOKafkaProducer(
                    bootstrap_servers=servers,
                    transactional_id=transactional_id,
                    transaction_timeout_ms=timeout_ms,
                    retry_backoff_ms=20,
                    **aiokafka_settings(login),
                )
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
        """Close without waiting: the sender may have ended with the error raised before."""
        self._runner.close()

    def _run(self, operation: Coroutine[Any, Any, Result], failure: type[Exception]) -> Result:
        async def bounded() -> Result:
            return await asyncio.wait_for(operation, self._patience_s)

        try:
            return self._runner.run(bounded())
        except (KafkaError, TimeoutError, AssertionError) as error:
            # It reports an invalid state by an assertion.
            # What its sender did not expect it wraps in words that do not tell.
            raise failure(repr(error.__cause__ or error)) from error
