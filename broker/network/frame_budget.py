"""The memory for requests that have not arrived whole, over all connections: ``FrameBudget``.

Rules of this file:

* **Arrived bytes count, not the announced length.** A Claim is an incomplete frame whose bytes lie
  in memory of its connection alone. Seven eighths of the limit are for these; the last one is for
  whole requests that wait while their connection is not served (``read_ahead``).
* **Up to half of the limit everything is received at once.** Beyond, a frame continues only if its
  missing bytes fit below the limit together with those of all running frames that miss as few or
  fewer. The others wait, their sockets unread. So shorter frames never wait for longer ones, and
  all running frames can complete.
* **Small frames never wait**: those that fit a ring (``may_wait`` is False).
* **There is always progress.** One frame at a time, the leader, continues beyond the limit: one
  that has waited for LEAD_SECONDS, or the shortest if nothing else that may wait runs.
* **While a connection waits, all others have to move.** A running sender is closed if it sent
  nothing in JUDGE_SECONDS, or if it is slower than SLOW_BYTES_PER_SECOND and would take longer than
  FINISH_SECONDS. The longest silent is closed first, until no claim waits. After that an address
  with more than its share of the limit is closed down to it, in the same order, for a waiting one
  that holds less than that. And if waiting frames hold nearly everything, the longest of them are
  closed, for shorter ones.
* **The limit is hard.** Small frames may arrive beyond it, and the first bytes of any: the longest
  silent of the addresses above their share are closed at once, until there is room again.
* **A stranger** is a client that has never completed a request, or not logged in if that is
  required. Strangers together have a small limit of their own, to which all of this applies as
  well.

So the counted bytes never exceed the limit by more than one arrival, and the held bytes by one
frame more. Nothing here uses sockets or time except through a Sender and a function.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from barnabas.protocol.frame import LENGTH_BYTES, PIECE_BYTES

JUDGE_SECONDS: Final = 0.25
"""Maximum time for which a frame may stall while others wait."""
LATE_SECONDS: Final = 2 * JUDGE_SECONDS
"""Time since the last check after which a stalled frame is checked once more: no connection was
waiting, or the loop was blocked and has not received the available bytes."""
LEAD_SECONDS: Final = 1.0
"""Time after which a waiting frame may become the leader, which continues beyond the limit."""
FINISH_SECONDS: Final = 10.0
"""Maximum time for a slow sender to complete its frame while others wait."""
SLOW_BYTES_PER_SECOND: Final = 1024 * 1024
"""Rate above which a sender may take any time."""
EVICTIONS_MOST: Final = 200
"""Maximum number of connections closed in a row, unless the limit demands more."""
STRANGERS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum memory of all strangers together: an eighth of the limit, if that is less."""
STRANGERS_BYTES_MIN: Final = 4 * 1024 * 1024
"""Minimum of the strangers' memory, unless the limit is smaller."""
FIRST_BYTES: Final = 16 * 1024
"""Bytes that are received of an unknown frame when memory is crowded."""
AHEAD_BYTES: Final = 2 * 1024
"""Bytes that are received of a connection that is not served when reading ahead is full."""

_RANKS: Final = 32


class Sender(Protocol):
    """The connection of a claim's frame."""

    def resume_receiving(self) -> None:
        """Start to receive: the claim runs."""

    def pause_receiving(self) -> None:
        """Stop receiving until ``resume_receiving``: the claim waits."""

    def give_up(self, reason: str) -> None:
        """Close the connection, drop the received bytes, and release the claim before returning."""

    @property
    def is_stuck(self) -> bool:
        """Return whether the client blocks the handling of a received frame."""


class Claim:
    """One incomplete frame, with its received and missing bytes and its state."""

    __slots__ = (
        "address",
        "counted_bytes",
        "held_bytes",
        "is_stranger",
        "leads",
        "marked_bytes",
        "marked_s",
        "may_wait",
        "missing_bytes",
        "rank",
        "runs",
        "sender",
        "waits_since_s",
    )

    def __init__(
        self, sender: Sender, address: str, missing_bytes: int, *, is_stranger: bool, may_wait: bool
    ) -> None:
        self.sender = sender
        self.address = address
        self.is_stranger = is_stranger
        self.may_wait = may_wait
        self.missing_bytes = missing_bytes
        self.rank = min(missing_bytes.bit_length(), _RANKS - 1)
        self.held_bytes = 0
        self.counted_bytes = 0
        self.runs = False
        self.leads = False
        self.marked_bytes = 0
        self.marked_s = 0.0
        self.waits_since_s = 0.0


class Pool:
    """A limit, the bytes counted against it, and the missing bytes of the running claims by
    length.
    """

    __slots__ = ("_calm_bytes", "_half_bytes", "crowded", "limit_bytes", "missing", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.crowded = False
        self._half_bytes = limit_bytes // 2
        # Less, as each change costs a check of all claims.
        self._calm_bytes = limit_bytes * 3 // 8
        # Bytes that are missing of running claims, by the bit length of what one of them misses.
        self.missing = [0] * _RANKS

    @property
    def nearly_full(self) -> bool:
        """Return whether more than three quarters are used."""
        return self.used_bytes > self.limit_bytes - self.limit_bytes // 4

    def has_room(self, claim: Claim) -> bool:
        """Return whether the rest of ``claim`` fits after those of equal or shorter ones."""
        if not self.crowded:
            return True
        needed = self.used_bytes
        for rank in range(claim.rank + 1):
            needed += self.missing[rank]
        if not claim.runs:
            needed += claim.missing_bytes
        return needed <= self.limit_bytes

    def count(self, size: int) -> bool:
        """Add or subtract ``size`` bytes; return whether the state of being crowded has changed."""
        self.used_bytes += size
        was_crowded = self.crowded
        self.crowded = self.used_bytes > (self._calm_bytes if was_crowded else self._half_bytes)
        return self.crowded != was_crowded


class FrameBudget:
    """All claims, in the order of their last progress."""

    __slots__ = (
        "_claims",
        "_judging",
        "_leader",
        "_now_s",
        "_on_contested",
        "_pool",
        "_runners",
        "_strangers",
        "_waiting",
        "ahead_bytes",
        "careful",
        "evicted",
        "limit_bytes",
        "waiting",
    )

    def __init__(
        self,
        limit_bytes: int,
        now_s: Callable[[], float],
        on_contested: Callable[[], None],
    ) -> None:
        """``now_s`` is a monotonic clock.

        After ``on_contested``, the caller calls ``judge`` every JUDGE_SECONDS until it returns
        False.
        """
        self.limit_bytes = limit_bytes
        self.ahead_bytes = 0
        self.careful = False
        """Whether connections should ask ``receive_most`` before they receive."""
        self.evicted = 0
        self.waiting = 0
        """Number of claims that wait for memory of others."""
        self._now_s = now_s
        self._on_contested = on_contested
        self._judging = False
        self._pool = Pool(limit_bytes - limit_bytes // 8)
        of_strangers = min(limit_bytes // 8, STRANGERS_BYTES_MAX)
        self._strangers = Pool(max(of_strangers, min(limit_bytes, STRANGERS_BYTES_MIN)))
        self._claims: dict[Claim, None] = {}
        self._runners = 0
        self._leader: Claim | None = None
        # By rank, strangers apart: each in the order in which they came.
        self._waiting: list[dict[Claim, None]] = [{} for _ in range(2 * _RANKS)]

    @property
    def used_bytes(self) -> int:
        """Return the bytes held, the leader's part beyond the limit included."""
        leader = self._leader
        beyond = leader.held_bytes - leader.counted_bytes if leader is not None else 0
        return self._pool.used_bytes + self.ahead_bytes + beyond

    @property
    def is_ahead_full(self) -> bool:
        """Return whether connections that are not served should not be read either."""
        return self.ahead_bytes > self.limit_bytes // 8

    def receive_most(self, pending_bytes: int, *, is_served: bool) -> int:
        """Return the bytes that a connection should receive at once, after ``pending_bytes``."""
        if not is_served and self.is_ahead_full:
            return AHEAD_BYTES
        is_known = pending_bytes >= LENGTH_BYTES or not is_served
        return PIECE_BYTES if is_known else FIRST_BYTES

    # -------------------------------------------------------------------- called for connections

    def open(self, claim: Claim, held_bytes: int) -> None:
        """Begin to count a frame; afterwards it runs, waits, or has been given up."""
        self._claims[claim] = None
        self._run(claim)
        self.arrived(claim, held_bytes, claim.missing_bytes)

    def arrived(self, claim: Claim, held_bytes: int, missing_bytes: int) -> None:
        """Register the bytes received by now; afterwards the claim runs, waits, or was given up."""
        grown = held_bytes - claim.held_bytes
        counts = claim.runs and not claim.leads
        if counts:
            self._reserve(claim, -claim.missing_bytes)
        claim.held_bytes = held_bytes
        claim.missing_bytes = missing_bytes
        claim.rank = min(missing_bytes.bit_length(), _RANKS - 1)
        if counts:
            self._reserve(claim, missing_bytes)
        del self._claims[claim]
        self._claims[claim] = None
        if not claim.leads:
            self._count(claim, grown)
            self._stop_if_crowded(claim)

    def release(self, claim: Claim) -> None:
        """Stop counting a frame: it is handled, or its connection has ended."""
        if claim not in self._claims:
            return
        del self._claims[claim]
        if claim.runs:
            self._stop(claim)
        else:
            self._forget_waiting(claim)
        if claim is self._leader:
            self._leader = None
        self._count(claim, -claim.counted_bytes)
        self._resume_waiting()

    def read_ahead(self, size: int) -> None:
        """Count, or stop counting, whole requests that wait until their connection is served."""
        self.ahead_bytes += size
        self._update_careful()

    # --------------------------------------------------------------------------------- judging

    def judge(self) -> bool:
        """Close stalled senders while others wait; return whether any claim still waits."""
        now_s = self._now_s()
        last = self.evicted + EVICTIONS_MOST
        for claim in [each for each in self._claims if self._stands_still(each, now_s)]:
            if not self.waiting or self.evicted >= last:
                break
            self._evict(claim, "too slow while others wait for memory")
        if self.waiting:
            self._share(now_s)
            self._shorten(now_s)
        if self._leader is None:
            self._lead(min(self._all_waiting(), key=_waits_since_s, default=None), now_s)
        self._judging = self.waiting > 0
        return self._judging

    def _stands_still(self, claim: Claim, now_s: float) -> bool:
        """Measure a running claim's pace since its last check."""
        span_s = now_s - claim.marked_s
        if not claim.runs or span_s < JUDGE_SECONDS * 0.9:
            return False
        if not claim.missing_bytes:
            return claim.sender.is_stuck
        pace = (claim.held_bytes - claim.marked_bytes) / span_s
        self._mark(claim, now_s)
        if span_s > LATE_SECONDS:
            return False
        return pace < SLOW_BYTES_PER_SECOND and pace * FINISH_SECONDS < claim.missing_bytes

    def _share(self, now_s: float) -> None:
        """Free memory of addresses above their share for waiting ones below it."""
        held = held_by_address(self._claims)
        share = self.limit_bytes // max(1, len(held))
        above = deque(claim for claim in self._claims if held[claim.address] > share)
        for waiting in self._all_waiting():
            if now_s - waiting.waits_since_s < JUDGE_SECONDS or held[waiting.address] >= share:
                continue
            while above and not waiting.runs and waiting in self._claims:
                claim = above.popleft()
                if held[claim.address] > share:
                    held[claim.address] -= claim.held_bytes
                    self._evict(claim, "its address holds more than its share of memory")

    def _shorten(self, now_s: float) -> None:
        """Free memory of the longest waiting frames for shorter ones while memory is scarce."""
        by_length = sorted(self._all_waiting(), key=_rank)
        longest = by_length.copy()
        for waiting in by_length:
            if now_s - waiting.waits_since_s < JUDGE_SECONDS:
                continue
            while not waiting.runs and waiting in self._claims and self._pool.nearly_full:
                claim = longest.pop()
                if claim.rank <= waiting.rank:
                    return
                if not claim.runs:
                    self._evict(claim, "too long while shorter ones wait for memory")

    def _lead(self, claim: Claim | None, now_s: float) -> None:
        """Make a claim that has waited long the leader, which continues beyond the limit until it
        ends.
        """
        if claim is None or now_s - claim.waits_since_s < LEAD_SECONDS:
            return
        self._make_leader(claim)

    def _make_leader(self, claim: Claim) -> None:
        self._forget_waiting(claim)
        self._leader = claim
        claim.leads = True
        self._run(claim)
        claim.sender.resume_receiving()

    def _evict(self, claim: Claim, reason: str) -> None:
        if claim in self._claims:
            self.evicted += 1
            held, size = claim.held_bytes, claim.held_bytes + claim.missing_bytes
            claim.sender.give_up(f"incomplete request, {held} of {size} bytes, {reason}")

    def _make_room(self, pool: Pool, newest: Claim) -> None:
        """Close the longest silent, first of addresses above their share, when a limit is reached.

        Down to seven eighths of it: a check of all claims for each arrival would cost too much. But
        no more than EVICTIONS_MOST beyond what is needed: each takes its time as well.
        """
        members = [each for each in self._claims if each.is_stranger or pool is self._pool]
        held = held_by_address(members)
        enough = pool.limit_bytes * 7 // 8
        share = enough // max(1, len(held))
        last = self.evicted + EVICTIONS_MOST
        for claim in members:
            if pool.used_bytes <= (enough if self.evicted < last else pool.limit_bytes):
                return
            if held[claim.address] > share and claim is not newest:
                held[claim.address] -= claim.held_bytes
                self._evict(claim, "longest silent where memory has reached its limit")

    # ------------------------------------------------------------------------ running and waiting

    def _run(self, claim: Claim) -> None:
        claim.runs = True
        self._runners += claim.may_wait
        if not claim.leads:
            self._reserve(claim, claim.missing_bytes)
        self._mark(claim, self._now_s())

    def _stop(self, claim: Claim) -> None:
        claim.runs = False
        self._runners -= claim.may_wait
        if not claim.leads:
            self._reserve(claim, -claim.missing_bytes)

    def _stop_if_crowded(self, claim: Claim) -> None:
        if not (claim.runs and claim.may_wait) or claim.leads or self._has_room(claim):
            return
        self._stop(claim)
        claim.waits_since_s = self._now_s()
        self._waiting[claim.rank + _RANKS * claim.is_stranger][claim] = None
        self.waiting += 1
        claim.sender.pause_receiving()
        self._lead_if_idle()
        if not self._judging and self.waiting:
            self._judging = True
            for other in self._claims:
                self._mark(other, claim.waits_since_s)
            self._on_contested()

    def _resume_waiting(self) -> None:
        """Resume claims for which there is room: shorter frames first, then in order."""
        if not self.waiting:
            return
        for waiting in self._waiting:
            while waiting:
                claim = next(iter(waiting))
                if not self._has_room(claim):
                    break
                self._forget_waiting(claim)
                self._run(claim)
                claim.sender.resume_receiving()
        self._lead_if_idle()

    def _lead_if_idle(self) -> None:
        if not self._runners and self.waiting:
            self._make_leader(self._all_waiting()[0])

    def _forget_waiting(self, claim: Claim) -> None:
        waiting = self._waiting[claim.rank + _RANKS * claim.is_stranger]
        if claim in waiting:
            del waiting[claim]
            self.waiting -= 1

    def _all_waiting(self) -> list[Claim]:
        return [claim for waiting in self._waiting for claim in waiting]

    # -------------------------------------------------------------------------------- counting

    def _count(self, claim: Claim, size: int) -> None:
        claim.counted_bytes += size
        changed = self._pool.count(size)
        if claim.is_stranger:
            changed |= self._strangers.count(size)
        if changed:
            self._update_careful()
        if changed and size > 0:
            for other in list(self._claims):
                self._stop_if_crowded(other)
        if size > 0:
            if self._pool.used_bytes > self._pool.limit_bytes:
                self._make_room(self._pool, claim)
            if claim.is_stranger and self._strangers.used_bytes > self._strangers.limit_bytes:
                self._make_room(self._strangers, claim)

    def _update_careful(self) -> None:
        self.careful = self._pool.crowded or self.is_ahead_full

    def _has_room(self, claim: Claim) -> bool:
        return self._pool.has_room(claim) and (
            not claim.is_stranger or self._strangers.has_room(claim)
        )

    def _reserve(self, claim: Claim, size: int) -> None:
        self._pool.missing[claim.rank] += size
        if claim.is_stranger:
            self._strangers.missing[claim.rank] += size

    @staticmethod
    def _mark(claim: Claim, now_s: float) -> None:
        claim.marked_bytes = claim.held_bytes
        claim.marked_s = now_s


def held_by_address(claims: Iterable[Claim]) -> Counter[str]:
    """Return the number of bytes that each address holds."""
    held: Counter[str] = Counter()
    for claim in claims:
        held[claim.address] += claim.held_bytes
    return held


def _rank(claim: Claim) -> int:
    return claim.rank


def _waits_since_s(claim: Claim) -> float:
    return claim.waits_since_s
