"""The worst groups and partitions of all, which takes a walk through everything to find.

Rules of this file:

* Nobody walks while nobody asks, and not more often than every ten seconds.
* A walk that was long is followed by a longer rest: walking may take a hundredth of the time.
* What was found for a client is shown again only as far as the client may see it now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from barnabas.broker.api.checks import GROUP, READ, TOPIC, TRANSACTIONAL_ID
from barnabas.broker.console import groups, transactions
from barnabas.broker.console.pacing import Pace
from barnabas.broker.console.questions import Question
from barnabas.broker.console.shapes import HeldPartition, Worst
from barnabas.broker.security.access import Access

SHOWN: Final = 5
REST_SECONDS: Final = 10.0
UNIT_SECONDS: Final = 1e-6
"""What one unit of work takes, or a little less."""
SHARE: Final = 0.01
"""Of the time, that walking may take."""


class CountingPace(Pace):
    """Counts all units."""

    def __init__(self) -> None:
        super().__init__()
        self.units = 0

    async def spend(self, units: int = 1) -> None:
        """Take note of work that is about to be done."""
        self.units += units
        await super().spend(units)


class WorstFinder:
    """What the last walks have found, one for each client that asks."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[float, Worst]] = {}
        """By principal and host: until when it will do, and what was found."""
        self._walking: set[tuple[str, str]] = set()

    async def of(self, question: Question) -> Worst | None:
        """Return what is not old; None where the first walk for a client is under way."""
        clock, access = question.broker.clock, question.access
        client = access.principal, access.host
        now_s = clock.monotonic()
        kept = self._found.get(client)
        if (kept is None or now_s >= kept[0]) and client not in self._walking:
            self._walking.add(client)
            try:
                pace = CountingPace()
                worst = await _walk(question, pace)
                now_s = clock.monotonic()
                rest_s = max(REST_SECONDS, pace.units * UNIT_SECONDS / SHARE)
                kept = now_s + rest_s, worst
            finally:
                self._walking.discard(client)
            self._found = {key: each for key, each in self._found.items() if now_s < each[0]}
            self._found[client] = kept
        return None if kept is None else _still_seen(kept[1], access)


async def _walk(question: Question, pace: Pace) -> Worst:
    def asking(sort: str) -> Question:
        return replace(question, names={}, values={"sort": sort, "limit": SHOWN}, pace=pace)

    as_of, count = question.now_ms, 0
    for machine in question.broker.groups.machines:
        for group_id in machine.keys():  # noqa: SIM118  No mapping: a list of what there is.
            await pace.spend()
            count += question.access.may_see(GROUP, group_id)
    lagging = await groups.list_groups(asking("-lag"))
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
