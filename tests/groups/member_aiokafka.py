"""A member on aiokafka: the classic protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import re

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

from tests.groups.events import ASSIGNED, REVOKED, Partition
from tests.groups.member import (
    FATAL_EXIT_CODE,
    MOST_RECORDS,
    POLL_MS,
    CommitRefused,
    CommitUnsure,
    Progress,
    Settings,
)

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
        self._member.progress.note(ASSIGNED, map(_place, assigned))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        # The library calls this for what was lost, too; such a commit is refused.
        if revoked:
            await self._member.commit()
            self._member.progress.note(REVOKED, map(_place, revoked))


class Member:
    """The consumer and its journal."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.progress = progress
        self._lock = asyncio.Lock()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.servers,
            client_id=settings.name,
            group_id=settings.group,
            group_instance_id=settings.instance,
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

    async def run(self) -> None:
        try:
            await self._start()
            await self._take_part()
        except KafkaError as error:
            if repr(GroupLoadInProgressError()) in str(error):
                # aiokafka 0.14.0 does not try again where the coordinator is still reading.
                os._exit(FATAL_EXIT_CODE)
            raise
        await self.commit()
        await self._consumer.stop()

    async def _take_part(self) -> None:
        progress = self.progress
        while not progress.stopping:
            polled = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
            records = (record for batch in polled.values() for record in batch)
            progress.read((r.topic, r.partition, r.offset, r.value) for r in records)
            if progress.is_due():
                await self.commit()

    async def _start(self) -> None:
        """Connect, as soon as there is a broker; returns when there is an assignment."""
        while True:
            try:
                await self._consumer.start()
            except KafkaConnectionError:
                await asyncio.sleep(POLL_MS / 1000)
            else:
                return

    async def commit(self) -> None:
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


def run(settings: Settings, progress: Progress) -> None:
    """Be a member until told to stop."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    async def member() -> None:
        await Member(settings, progress).run()

    asyncio.run(member())
