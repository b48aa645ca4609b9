"""Lag of some groups over time: of groups that are viewed now or were viewed lately.

Rules of this file:

* **Fixed memory**: a place for each of 64 groups, a ring of numbers in each. Viewing a group takes
  the place that was not viewed for the longest time; viewing a list takes free places and abandoned
  ones only, so that two lists do not displace each other.
* **Only viewed groups are measured**: a group that was not viewed for the length of its ring loses
  its place, and measuring ends with the last one.
* Measuring takes at most a hundredth of the time: a long round is followed by a longer pause.
* The measured lag covers all topics of a group. It is hidden from users who cannot see one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import TOPIC
from barnabas.broker.console.pacing import (
    PARTITION_UNITS,
    CountingPace,
    rest_seconds,
)
from barnabas.broker.console.pages import groups
from barnabas.broker.console.pages.lag_points import POINTS, LagPoint, LagRing, trend_of
from barnabas.broker.security.acls.access import OPEN
from barnabas.protocol.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question

logger = logging.getLogger("barnabas.broker.console")

GROUPS_MOST: Final = 64
EVERY_SECONDS: Final = 5.0
KEPT_SECONDS: Final = POINTS * EVERY_SECONDS
"""Length of a ring, and time for which a group is measured after its last view."""
LEFT_SECONDS: Final = 30.0
"""Time from the last view of a group until a list can drop its history for another group."""


class Followed:
    """The measurements of one followed group."""

    __slots__ = ("looked_at_s", "ring", "topics")

    def __init__(self, now_s: float) -> None:
        self.ring = LagRing()
        self.looked_at_s = now_s
        self.topics: set[str] = set()
        """Topics included in the measurement."""


class LagHistory:
    """Places of viewed groups, and the task that measures them."""

    def __init__(self) -> None:
        self._followed: dict[str, Followed] = {}
        self._is_measuring = False

    def __len__(self) -> int:
        return len(self._followed)

    # --------------------------------------------------------------------------------------- looks

    def view(self, question: Question, group_id: str) -> None:
        """Record that a group is viewed."""
        now_s = question.broker.clock.monotonic()
        if group_id not in self._followed and len(self._followed) >= GROUPS_MOST:
            del self._followed[self._longest_left()]
        self._take_place(group_id, now_s)
        self._measure(question)

    def view_rows(self, question: Question, group_ids: Iterable[str]) -> None:
        """Record that a list is viewed that begins with these groups."""
        now_s = question.broker.clock.monotonic()
        has_room = True
        for group_id in group_ids:
            if group_id not in self._followed and len(self._followed) >= GROUPS_MOST:
                has_room = has_room and self._left_alone(now_s)
                if not has_room:
                    continue
                del self._followed[self._longest_left()]
            self._take_place(group_id, now_s)
        self._measure(question)

    def _left_alone(self, now_s: float) -> bool:
        place = self._followed[self._longest_left()]
        return now_s - place.looked_at_s >= LEFT_SECONDS

    def _longest_left(self) -> str:
        return min(self._followed, key=lambda each: self._followed[each].looked_at_s)

    def _take_place(self, group_id: str, now_s: float) -> None:
        place = self._followed.get(group_id)
        if place is None:
            self._followed[group_id] = Followed(now_s)
        else:
            place.looked_at_s = now_s

    async def of(self, question: Question, group_id: str) -> tuple[LagPoint, ...] | None:
        """Return the measurements, or None for a user who cannot see all topics."""
        place = self._followed.get(group_id)
        if place is None:
            return ()
        access = question.access
        if not access.is_open:
            for topic in list(place.topics):
                await question.pace.spend()
                if not access.may_see(TOPIC, topic):
                    return None
        await question.pace.spend(POINTS)
        return tuple(place.ring.points())

    async def trend(self, question: Question, group_id: str) -> str | None:
        """Return the trend of a group's lag, or None if it is unknown or hidden from the user."""
        points = await self.of(question, group_id)
        return None if points is None else trend_of(points, question.now_ms)

    # ----------------------------------------------------------------------------------- measuring

    def _measure(self, question: Question) -> None:
        if self._is_measuring or not self._followed:
            return
        self._is_measuring = True
        question.broker.spawn(self._measure_while_looked_at(question), "console-lag")

    async def _measure_while_looked_at(self, question: Question) -> None:
        try:
            while self._still_looked_at(question.broker.clock.monotonic()):
                pace = CountingPace()
                await self._measure_all(
                    replace(question, names={}, values={}, access=OPEN, pace=pace)
                )
                await question.broker.clock.sleep(rest_seconds(pace, EVERY_SECONDS))
        except Exception:
            # The next view restarts the measurement.
            logger.exception("console lag history failed")
        finally:
            self._is_measuring = False

    def _still_looked_at(self, now_s: float) -> bool:
        self._followed = {
            group_id: place
            for group_id, place in self._followed.items()
            if now_s - place.looked_at_s < KEPT_SECONDS
        }
        return bool(self._followed)

    async def _measure_all(self, question: Question) -> None:
        for group_id, place in list(self._followed.items()):
            try:
                machine = groups.machine_that_knows(groups.loaded(question), group_id)
            except KafkaError:
                return  # Coordinators load, of which readiness speaks.
            if machine is None:
                self._followed.pop(group_id, None)
                continue
            topics = machine.offsets.of_group(group_id)
            await question.pace.spend(1 + len(topics) // PARTITION_UNITS)
            place.topics.update(topics)
            lag = await groups.lag_of(question, machine, group_id)
            if lag.partitions:  # Without a committed offset there is nothing to count from.
                place.ring.add(LagPoint(question.now_ms, lag.lag, lag.lag_blocked))
