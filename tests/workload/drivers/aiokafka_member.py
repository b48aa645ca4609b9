"""A member of a group on aiokafka, on an event loop that runs while a method of it runs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    GroupLoadInProgressError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.structs import OffsetAndMetadata

from tests.history.model import ASSIGNED, LOST, Partition, Read
from tests.workload.drivers import MOST_POLLED, POLL_S
from tests.workload.progress import CommitRefused, CommitUnsure, Progress
from tests.workload.settings import FATAL_EXIT_CODE, Settings

Result = TypeVar("Result")
REFUSALS = (
    CommitFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


class Listener(ConsumerRebalanceListener):
    """Writes down what comes and goes; commits before it goes."""

    def __init__(self, member: Member) -> None:
        self._member = member

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._member.progress.moved(map(_place, assigned), ASSIGNED)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        # The library calls this for lost partitions, too; their commit is refused.
        if revoked:
            await self._member.commit_inside()
            self._member.progress.moved(map(_place, revoked), LOST)


class Member:
    """A member of a group, by the classic protocol."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.progress = progress
        self._runner = asyncio.Runner()
        self._runner.run(self._make(settings))
        self._run(self._start())

    async def _make(self, settings: Settings) -> None:
        self._lock = asyncio.Lock()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.servers,
            client_id=settings.name,
            group_id=settings.group,
            group_instance_id=settings.instance or None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.heartbeat_ms,
            fetch_max_wait_ms=100,
            metadata_max_age_ms=2000,
        )
        listener = Listener(self)
        if settings.pattern:
            # This library matches from the start only, the others look for the pattern anywhere.
            pattern = re.sub(r"^\^", "", settings.pattern)
            self._consumer.subscribe(pattern=pattern, listener=listener)
        else:
            self._consumer.subscribe(topics=list(settings.topics), listener=listener)

    def poll(self) -> list[Read]:
        async def poll() -> list[Read]:
            polled = await self._consumer.getmany(
                timeout_ms=int(POLL_S * 1000), max_records=MOST_POLLED
            )
            records = (record for batch in polled.values() for record in batch)
            return [Read(r.topic, r.partition, r.offset, r.value.decode()) for r in records]

        return self._run(poll())

    def commit(self) -> None:
        self._run(self.commit_inside())

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._runner.close()

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        try:
            return self._runner.run(coroutine)
        except KafkaError as error:
            if repr(GroupLoadInProgressError()) in str(error):
                # aiokafka 0.14.0 does not retry while the coordinator is loading.
                os._exit(FATAL_EXIT_CODE)
            raise

    async def _start(self) -> None:
        """Connect as soon as there is a broker; returns when there is an assignment."""
        while True:
            try:
                await self._consumer.start()
            except KafkaConnectionError:
                await asyncio.sleep(POLL_S)
            else:
                return

    async def commit_inside(self) -> None:
        """Commit what was read; note how it ended."""
        async with self._lock:
            with self.progress.commit() as (attempt, offsets):
                if offsets:
                    await self._send_commit(attempt, offsets)

    async def _send_commit(self, attempt: str, offsets: dict[Partition, int]) -> None:
        asked = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, attempt)
            for (topic, partition), offset in offsets.items()
        }
        try:
            await self._consumer.commit(asked)
        except REFUSALS as error:
            raise CommitRefused from error
        except KafkaError as error:
            raise CommitUnsure from error


def _place(partition: TopicPartition) -> Partition:
    return partition.topic, partition.partition
