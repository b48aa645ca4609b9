"""What clients use, held against their limits.

Rules of this file:

* **Nobody pays who has no limit**: ``client_quota`` is None then, and nothing is counted.
* **What is shared is counted together**: all connections and client ids of a user with a limit for
  the user; the others each for itself.
* **The answer leaves at once and says how long nothing more will be read** (KIP-219). Who does not
  wait finds the connection muted all the same.
* Counters that are idle are forgotten; there are at most COUNTERS_MAX of each kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from barnabas.broker.security.quotas.quota_limits import (
    CONSUMER_BYTES,
    CONTROLLER_MUTATIONS,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
    Entity,
    Limit,
    QuotaLimits,
    entity_of,
)
from barnabas.broker.security.quotas.quota_rates import Rate, TokenBucket, Windows
from barnabas.storage.metastore.interface import QuotaRow

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.acls.access import Generation

COUNTERS_MAX: Final = 10_000
"""Counters of a kind. Clients may make up ids: beyond it those that are new share one."""
OTHERS: Final = ("", "")
REQUEST_THROTTLE_MAX_S: Final = 1.0
"""For time used a client waits no longer than this at once: a window, as in Kafka."""
THROTTLE_MAX_MS: Final = 2**31 - 1
"""What an answer can say."""
NS_PER_PERCENT: Final = 1e7
"""A hundred percent are one second of the loop in a second."""

Counted: TypeAlias = tuple[str, str, str]
Counter = TypeVar("Counter", Rate, TokenBucket)
Change: TypeAlias = tuple[Entity, str, float | None]


def told_ms(throttle_ms: float) -> int:
    """Return what an answer says of a wait: whole milliseconds, and no less than it takes."""
    return min(math.ceil(throttle_ms), THROTTLE_MAX_MS)


class ClientQuota:
    """The limits of one client, for what its connection has to look at."""

    __slots__ = ("_clock", "_consumed", "_mutations", "_produced", "_requests", "_windows")

    def __init__(
        self,
        clock: Clock,
        windows: Windows,
        produced: tuple[Rate, float] | None,
        consumed: tuple[Rate, float] | None,
        requests: tuple[Rate, float] | None,
        mutations: tuple[TokenBucket, float] | None,
    ) -> None:
        self._clock = clock
        self._windows = windows
        self._produced = produced
        self._consumed = consumed
        self._requests = requests
        self._mutations = mutations

    def produced(self, size_bytes: int) -> float:
        """Count a Produce of so many bytes; return for how many ms its client is to wait."""
        return self._counted(self._produced, size_bytes)

    def consumed(self, size_bytes: int) -> tuple[bool, float]:
        """Count the records of a Fetch; return whether they may leave, and the wait in ms.

        What goes beyond the limit does not leave, and is not counted. Unless there was nothing
        before it: the smallest answer, one batch, may be more than all windows allow, and Apache
        Kafka never gives it out.
        """
        if self._consumed is None:
            return True, 0.0
        rate, limit = self._consumed
        now_s = self._clock.monotonic()
        may_leave = rate.is_idle(now_s)
        rate.add(size_bytes, now_s)
        throttle_ms = rate.throttle_s(limit, now_s) * 1000
        if throttle_ms and not may_leave:
            rate.add(-size_bytes, now_s)
            return False, throttle_ms
        return True, min(throttle_ms, self._windows.full_s * 1000)

    def fetch_bytes_max(self, most: int) -> int:
        """Return how many of ``most`` bytes a Fetch is to bring: no more than all windows allow."""
        if self._consumed is None:
            return most
        return min(most, max(1, int(self._consumed[1] * self._windows.full_s)))

    def used(self, took_ns: int) -> float:
        """Count the time that a request took; return for how many ms its client is to wait."""
        if self._requests is None:
            return 0.0
        rate, limit = self._requests
        now_s = self._clock.monotonic()
        rate.add(took_ns / NS_PER_PERCENT, now_s)
        return min(rate.throttle_s(limit, now_s), REQUEST_THROTTLE_MAX_S) * 1000

    def mutated(self, count: int, *, strict: bool) -> float | None:
        """Count changes of partitions; return for how many ms the client is to wait.

        ``strict``: None where more is owed already, and nothing was counted.
        """
        if self._mutations is None:
            return 0.0
        bucket, limit = self._mutations
        now_s = self._clock.monotonic()
        if strict and bucket.throttle_s(limit, now_s) > 0:
            return None
        bucket.take(count, limit, now_s)
        return bucket.throttle_s(limit, now_s) * 1000

    def mutations_owed_ms(self) -> float:
        """Return how long it takes until changes are allowed again."""
        if self._mutations is None:
            return 0.0
        bucket, limit = self._mutations
        return bucket.throttle_s(limit, self._clock.monotonic()) * 1000

    def _counted(self, counter: tuple[Rate, float] | None, amount: float) -> float:
        if counter is None:
            return 0.0
        rate, limit = counter
        now_s = self._clock.monotonic()
        rate.add(amount, now_s)
        return rate.throttle_s(limit, now_s) * 1000


class Quotas:
    """The limits of one broker, and what is counted against them."""

    def __init__(self, clock: Clock, generation: Generation) -> None:
        self.limits = QuotaLimits()
        self.windows = Windows()
        self.mutation_windows = Windows()
        self._clock = clock
        self._generation = generation
        self._rates: Counters[Rate] = Counters()
        self._buckets: Counters[TokenBucket] = Counters()

    def load(self, rows: Iterable[QuotaRow]) -> None:
        """Take over what is stored."""
        self.limits = QuotaLimits((entity_of(row.entity), row.key, row.value) for row in rows)
        self._generation.advance()

    def change(self, changes: Iterable[Change]) -> None:
        """Set limits and take others away."""
        for named, key, value in changes:
            self.limits.set(named, key, value)
        self._generation.advance()

    def client_quota(self, user: str, client_id: str) -> ClientQuota | None:
        """Return the limits of a client; None where it has none."""
        if not self.limits:
            return None
        found = {
            key: self.limits.find(key, user, client_id)
            for key in (PRODUCER_BYTES, CONSUMER_BYTES, REQUEST_PERCENTAGE, CONTROLLER_MUTATIONS)
        }
        if not any(found.values()):
            return None
        return ClientQuota(
            self._clock,
            self.windows,
            self._rate(PRODUCER_BYTES, found[PRODUCER_BYTES]),
            self._rate(CONSUMER_BYTES, found[CONSUMER_BYTES]),
            self._rate(REQUEST_PERCENTAGE, found[REQUEST_PERCENTAGE]),
            self._bucket(found[CONTROLLER_MUTATIONS]),
        )

    def _rate(self, key: str, limit: Limit | None) -> tuple[Rate, float] | None:
        if limit is None:
            return None
        now_s = self._clock.monotonic()
        rate = self._rates.get(
            (key, limit.user, limit.client_id),
            lambda: Rate(self.windows),
            lambda rate: rate.is_idle(now_s),
        )
        return rate, limit.value

    def _bucket(self, limit: Limit | None) -> tuple[TokenBucket, float] | None:
        if limit is None:
            return None
        now_s = self._clock.monotonic()
        bucket = self._buckets.get(
            (CONTROLLER_MUTATIONS, limit.user, limit.client_id),
            lambda: TokenBucket(self.mutation_windows),
            lambda bucket: bucket.is_idle(limit.value, now_s),
        )
        return bucket, limit.value


class Counters(Generic[Counter]):
    """Counters by whose use they count; idle ones last as long as a connection has them."""

    def __init__(self) -> None:
        self._all: WeakValueDictionary[Counted, Counter] = WeakValueDictionary()
        self._kept: dict[Counted, Counter] = {}
        """What is not idle must outlast its connections: a new one carries on with its debt."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(
        self, counted: Counted, new: Callable[[], Counter], is_idle: Callable[[Counter], bool]
    ) -> Counter:
        """Return a counter, made if there is none."""
        if counted not in self._all and len(self._kept) >= COUNTERS_MAX:
            self._kept = {
                each: counter for each, counter in self._kept.items() if not is_idle(counter)
            }
            if len(self._kept) >= COUNTERS_MAX:
                counted = (counted[0], *OTHERS)
        found = self._all.get(counted)
        if found is None:
            found = self._all[counted] = new()
        self._kept[counted] = found
        return found
