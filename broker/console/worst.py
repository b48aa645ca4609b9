"""The worst groups and partitions of all, which takes a walk through everything to find.

Rules of this file:

* Nobody walks while nobody asks, and not more often than every ten seconds.
* A walk that was long is followed by a longer rest: see pacing.py for its share of the time.
* What was found for a client is shown again only as far as the client may see it now.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.api.checks import GROUP, READ, TOPIC, TRANSACTIONAL_ID
from barnabas.broker.console import groups, transactions
from barnabas.broker.console.pacing import CountingPace, Pace, rest_seconds
from barnabas.broker.console.questions import Question
from barnabas.broker.console.shapes import HeldPartition, Worst
from barnabas.broker.security.access import Access
from barnabas.protocol.errors import KafkaError

logger = logging.getLogger("barnabas.broker.console")

SHOWN: Final = 5
REST_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 0.5
"""How long who asks waits for a walk, before he is shown what was found before."""


Client: TypeAlias = tuple[str, str]
"""Principal and host."""


class _Found(NamedTuple):
    """What a walk has found."""

    good_until_s: float
    worst: Worst


class WorstFinder:
    """What the last walks have found, one for each client that asks."""

    def __init__(self) -> None:
        self._found: dict[Client, _Found] = {}
        self._walking: dict[Client, asyncio.Event] = {}
        """What is set when the walk for a client is over."""

    async def of(self, question: Question) -> Worst | None:
        """Return what was found last; None where the first walk for a client takes long."""
        access = question.access
        client = access.principal, access.host
        found = self._found.get(client)
        is_due = found is None or question.broker.clock.monotonic() >= found.good_until_s
        if is_due and client not in self._walking:
            self._walking[client] = asyncio.Event()
            # Whoever asks may go: a walk that is given up would be begun again and again.
            question.broker.spawn(self._walk_for(question, client), "console-walk")
        walk = self._walking.get(client)
        if walk is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
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
            logger.exception("the console cannot look for what is worst")
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

    as_of, count = question.now_ms, 0
    lagging = await groups.list_groups(asking("-lag"))
    for machine in question.broker.groups.machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            await pace.spend()
            count += question.access.may_see(GROUP, group_id)
    held_back = await transactions.list_holders(asking("-held_back"))
    return Worst(as_of, count, tuple(each for each in lagging.items if each.lag), held_back.items)


def _still_seen(worst: Worst, access: Access) -> Worst:
    """Return what a client may see at this moment."""
    if access.is_open:
        return worst
    return replace(
        worst,
        lagging=tuple(each for each in worst.lagging if access.may_see(GROUP, each.group)),
        held_back=tuple(each for each in worst.held_back if _is_seen(each, access)),
    )


def _is_seen(held: HeldPartition, access: Access) -> bool:
    return access.may_see(TOPIC, held.topic, READ) and all(
        access.may_see(TRANSACTIONAL_ID, each.transaction.transactional_id)
        for each in held.transactions
        if each.transaction is not None
    )
