"""The worst groups and partitions of all, found by a walk through everything.

Rules of this file:

* A walk starts on request only, and at most every ten seconds.
* A long walk is followed by a longer pause: see pacing.py for its share of the time.
* Results of a client are shown again only as far as they are visible to it now.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.api.checks import GROUP, READ, TOPIC, TRANSACTIONAL_ID
from barnabas.broker.console.pacing import CountingPace, Pace, rest_seconds
from barnabas.broker.console.pages import groups, transactions
from barnabas.broker.console.questions import Question
from barnabas.broker.console.shapes import (
    BlockedPartition,
    GroupRow,
    OpenTransaction,
    Waiting,
    Worst,
)
from barnabas.broker.security.acls.access import Access
from barnabas.protocol.errors import KafkaError

logger = logging.getLogger("barnabas.broker.console")

SHOWN: Final = 5
REST_SECONDS: Final = 10.0
LONG_MS: Final = 10_000
"""Transactions are open all the time: those that are open for longer are worth a sentence."""
PATIENCE_SECONDS: Final = 0.5
"""Time for which a request waits for a walk, before it returns the previous result."""


Client: TypeAlias = tuple[str, str]
"""Principal and host."""


class _Found(NamedTuple):
    """Result of a walk."""

    good_until_s: float
    worst: Worst


class WorstFinder:
    """Results of the last walks, one for each client."""

    def __init__(self) -> None:
        self._found: dict[Client, _Found] = {}
        self._walking: dict[Client, asyncio.Event] = {}
        """Events that are set when the walk for a client has finished."""

    async def of(self, question: Question) -> Worst | None:
        """Return the last result, or None if the first walk for a client takes long."""
        access = question.access
        client = access.principal, access.host
        found = self._found.get(client)
        is_due = found is None or question.broker.clock.monotonic() >= found.good_until_s
        if is_due and client not in self._walking:
            self._walking[client] = asyncio.Event()
            # The request can be abandoned: a cancelled walk would restart again and again.
            question.broker.spawn(self._walk_for(question, client), "console-walk")
        walk = self._walking.get(client)
        if walk is not None:
            with suppress(TimeoutError):
                async with question.broker.clock.timeout(PATIENCE_SECONDS):
                    await walk.wait()
        found = self._found.get(client)
        return None if found is None else _still_seen(found.worst, access)

    async def _walk_for(self, question: Question, client: Client) -> None:
        clock, pace = question.broker.clock, CountingPace()
        try:
            worst = await _walk(question, pace)
        except KafkaError:
            pass  # Coordinators load, of which readiness speaks.
        except Exception:
            logger.exception("console ranking failed")
        else:
            now_s = clock.monotonic()
            rest_s = rest_seconds(pace, REST_SECONDS)
            self._found = {
                each: found for each, found in self._found.items() if now_s < found.good_until_s
            }
            self._found[client] = _Found(now_s + rest_s, worst)
        finally:
            self._walking.pop(client).set()


async def _walk(question: Question, pace: Pace) -> Worst:
    def asking(sort: str) -> Question:
        return replace(question, names={}, values={"sort": sort, "limit": SHOWN}, pace=pace)

    as_of = question.now_ms
    count, waiting_groups, lagging = await _lagging(asking("-lag"))
    blocked, waiting = await _blocked(asking("-blocked_offsets"), as_of)
    await question.durable()
    waiting = replace(waiting, groups=waiting_groups)
    return Worst(as_of, count, lagging, blocked, waiting)


async def _lagging(question: Question) -> tuple[int, int, tuple[GroupRow, ...]]:
    """Return the number of groups, the number that wait, and those with the largest lag."""
    selection, waiting = question.selection(groups.ORDERS), 0
    for machine in groups.loaded(question).machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            await question.pace.spend()
            if question.access.may_see(GROUP, group_id):
                lag = await groups.lag_of(question, machine, group_id)
                waiting += lag.lag_blocked > 0
                selection.offer(group_id, lag.lag, group_id)
    question.lags.view_rows(question, selection.page())
    rows = await groups.rows_of(question, selection.page())
    return selection.total, waiting, tuple(each for each in rows if each.lag)


async def _blocked(question: Question, as_of: int) -> tuple[tuple[BlockedPartition, ...], Waiting]:
    """Return the partitions with most blocked offsets, and sums over long waits."""
    selection = question.selection(transactions.BLOCKED_ORDERS)
    producers: dict[str, bool] = {}
    partitions = records = 0
    async for partition, blocked_offsets in transactions.blocked_partitions(question):
        selection.offer(partition, blocked_offsets, *partition.topic_partition)
        first = next(transactions.open_on(question, partition, as_of), None)
        if first is not None and _is_long(first, as_of):
            producers[first.producer_id] = first.hanging or producers.get(first.producer_id, False)
            partitions += 1
            records += blocked_offsets
    rows = await transactions.blocked_rows(question, selection, as_of)
    hanging = sum(producers.values())
    return tuple(rows), Waiting(len(producers), hanging, partitions, records, 0)


def _is_long(first: OpenTransaction, now_ms: int) -> bool:
    """Return whether a transaction has blocked consumers for long, or hangs."""
    known = first.transaction
    since_ms = None if known is None else known.start_time_ms
    begun_ms = first.last_timestamp_ms if since_ms is None else since_ms
    return first.hanging or now_ms - begun_ms >= LONG_MS


def _still_seen(worst: Worst, access: Access) -> Worst:
    """Return the part of a result that is visible to a client now."""
    if access.is_open:
        return worst
    return replace(
        worst,
        lagging=tuple(each for each in worst.lagging if access.may_see(GROUP, each.group)),
        blocked_partitions=tuple(
            each for each in worst.blocked_partitions if _is_seen(each, access)
        ),
    )


def _is_seen(blocked: BlockedPartition, access: Access) -> bool:
    return access.may_see(TOPIC, blocked.topic, READ) and all(
        access.may_see(TRANSACTIONAL_ID, each.transaction.transactional_id)
        for each in blocked.transactions
        if each.transaction is not None
    )
