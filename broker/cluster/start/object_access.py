"""Access of this broker to the object store: without it, it gives its partitions to the others.

Rules of this file:

1. Nothing is sent while puts succeed at all brokers. A broker whose puts have all failed for
   REPORTED_S reports that. Then each broker tests the store, unless a put has just succeeded, and
   reports its last success: a broker without load notices no outage by itself.
2. A broker gives its session up once its puts have failed for GIVEN_UP_S, if another broker that
   takes partitions has just stored an object, and a later test fails here. The index
   ends the session only while that is so (``ClusterIndex.yield_to``). If no other broker stores
   objects, all wait.
3. A drain would not end, since uploads do not. So what is not durable is forgotten, as whenever a
   session ends (R12), and others take over at once.
4. The next session starts once a test succeeds. A test writes the guard of the store
   (``storage/objects/guard.py``), whose key alone is written again and again, and reads it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.cluster.leading.rounds import Rounds
from barnabas.broker.cluster.membership.base import open_blob_store
from barnabas.storage.errors import IndexClosed, StoreUnusable
from barnabas.storage.objects.blob_store import BlobStoreError
from barnabas.storage.objects.guard import read_guard, write_guard

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.base import ClusterBase
    from barnabas.broker.cluster.membership.membership import Membership
    from barnabas.broker.cluster.membership.store_calls import Errands
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.objects.counted_blobs import Puts
    from barnabas.storage.replicated.cluster_index import ClusterIndex

logger = logging.getLogger("barnabas.broker.cluster")

CHECK_MS: Final = 2_000
"""Interval of checks, and of tests."""
REPORTED_S: Final = 15.0
GIVEN_UP_S: Final = 30.0
WITHIN_MS: Final = 10_000
"""Age up to which the success of another broker counts."""
_MS_PER_S: Final = 1000


class Step(NamedTuple):
    """Actions of a broker at one check."""

    reports: bool
    """Whether it reports its puts to the others."""
    tests: bool
    """Whether it tests the store then."""


def next_step(puts: Puts, *, others_fail: bool, is_reported: bool) -> Step:
    """Return the step of a broker with a session.

    ``others_fail``: whether another broker reports failures. ``is_reported``: whether this broker
    has reported its own.
    """
    failing_s = 0.0 if puts.failing_s is None else puts.failing_s
    is_failing = failing_s >= REPORTED_S
    is_stale = puts.stored_s is None or puts.stored_s >= CHECK_MS / _MS_PER_S
    return Step(
        reports=is_failing or others_fail or is_reported,
        tests=is_failing or (others_fail and is_stale),
    )


def gives_up(puts: Puts, storing: Collection[int]) -> bool:
    """Return whether a broker gives its session up after a test.

    ``puts`` are those after the test; ``storing`` are the other brokers that stored objects just
    before it, and take partitions.
    """
    return bool(storing) and puts.failing_s is not None and puts.failing_s >= GIVEN_UP_S


class ObjectAccess:
    """Checks of the object store by one broker; used on the event loop only."""

    def __init__(
        self,
        host: Host,
        base: ClusterBase,
        membership: Membership,
        errands: Errands,
        leading: Callable[[], int | None],
        on_event: Callable[[str, str], object],
    ) -> None:
        """``leading`` returns the session in which logs are led here, or None between sessions.

        ``on_event``: see ``Newcomer``.
        """
        self._host = host
        self._base = base
        self._membership = membership
        self._errands = errands
        self._leading = leading
        self._on_event = on_event
        self._rounds = Rounds(host, self.check_once, "object-access", CHECK_MS)
        self._reported_in: int | None = None
        """Session that has reported failures, or None."""
        self._given_up: int | None = None
        """Session that is given up, or None once another one may follow."""

    @property
    def has_given_up(self) -> bool:
        """Whether this broker leads nothing until the store works for it."""
        return self._given_up is not None and self._leading() is None

    def start(self) -> None:
        """Start the checks."""
        self._rounds.start()

    def stop(self) -> None:
        """Stop; waits for the store end."""
        self._rounds.stop()

    async def check_once(self) -> None:
        """Report and test the store if there is a reason; raises IndexClosed."""
        session = self._leading()
        if session is None or not self._base.object_use.may_put(session):
            return
        puts = self._base.object_counts.puts()
        others_fail = bool(self._membership.view.failing - {session})
        step = next_step(puts, others_fail=others_fail, is_reported=self._reported_in == session)
        storing = await self._report(session, puts) if step.reports else ()
        if step.tests:
            await self._rounds.aside(self._works)
            if gives_up(self._base.object_counts.puts(), storing):
                await self._give_up(session, storing)

    async def until_ready(self, session: int) -> None:
        """Wait, after a session that was given up, until the store works or this object stops."""
        with contextlib.suppress(IndexClosed):
            while self._given_up == session:
                if await self._rounds.aside(self._works):
                    self._given_up = None
                    logger.info("object store works again for this broker session=%d", session)
                    return
                await self._host.clock.sleep(CHECK_MS / _MS_PER_S)

    async def _report(self, session: int, puts: Puts) -> Collection[int]:
        """Report the puts; return the other brokers that take partitions and store objects."""
        is_failing = puts.failing_s is not None and puts.failing_s >= REPORTED_S
        report = partial(
            _report,
            session,
            puts.failing_s if is_failing else None,
            puts.stored_s if puts.failing_s is None else None,
        )
        storing = await self._errands.run(report)
        self._reported_in = session if is_failing else None
        return [each for each in storing if self._membership.view.takes_partitions(each)]

    async def _give_up(self, session: int, storing: Collection[int]) -> None:
        """End the session for the sake of the brokers that store objects."""
        self._given_up = session  # First, since a heartbeat may find the end earlier.
        nodes, membership = sorted(storing), self._membership
        if not await self._errands.run(
            lambda index: membership.yield_to(index, session, nodes, WITHIN_MS)
        ):
            self._given_up = None
            return
        reason = self._base.object_counts.last_error
        logger.warning(
            "object store fails at this broker only, partitions given up session=%d others=%s: %s",
            session,
            ",".join(map(str, nodes)),
            reason,
        )
        self._on_event("objects_given_up", f"session {session}: {reason}")

    def _works(self) -> bool:
        """Whether the store takes an object and returns it, on the thread; raises IndexClosed."""
        try:
            with (
                contextlib.closing(open_blob_store(self._base)) as blobs,
                contextlib.closing(self._base.object_rows()) as rows,
            ):
                write_guard(rows, blobs)
                return read_guard(blobs) is not None
        except (BlobStoreError, StoreUnusable):  # Reported with the broker's other calls.
            return False


def _report(
    session: int, failing_s: float | None, stored_s: float | None, index: ClusterIndex
) -> Collection[int]:
    """Report puts, on a thread; see ``ClusterIndex``."""
    return index.report_objects(
        session, failing_ms=_ms_of(failing_s), stored_ms=_ms_of(stored_s), within_ms=WITHIN_MS
    )


def _ms_of(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * _MS_PER_S)
