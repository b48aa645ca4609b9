"""Use by clients, compared with their quotas.

Rules of this file:

* **Clients without a quota cost nothing**: ``client_quota`` is None then, and nothing is counted.
* **Shared quotas are counted together**: all connections and client IDs of a user with a quota for
  the user; the others each alone.
* **The response is sent at once, with the throttle time** (KIP-219). If the client does not wait,
  the broker still does not read from its connection for that time.
* Idle counters are dropped; there are at most COUNTERS_MAX of each kind.
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
"""Maximum number of counters of a kind. Clients can make up IDs: beyond it new ones share one."""
OTHERS: Final = ("", "")
REQUEST_THROTTLE_MAX_S: Final = 1.0
"""Maximum throttle time, in seconds, for the use of request time: a window, as in Kafka."""
THROTTLE_MAX_MS: Final = 2**31 - 1
"""Largest throttle time that fits into a response."""
NS_PER_PERCENT: Final = 1e7
"""Nanoseconds for one percent; 100 percent are one second of the event loop per second."""

Counted: TypeAlias = tuple[str, str, str]
Counter = TypeVar("Counter", Rate, TokenBucket)
Change: TypeAlias = tuple[Entity, str, float | None]


def throttle_time_ms(throttle_ms: float) -> int:
    """Return the throttle time of a response: whole milliseconds, rounded up."""
    return min(math.ceil(throttle_ms), THROTTLE_MAX_MS)


class ClientQuota:
    """Quotas of one client, for its connection."""

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
        """Count a Produce of ``size_bytes``; return the client's throttle time in milliseconds."""
        return self._counted(self._produced, size_bytes)

    def consumed(self, size_bytes: int) -> tuple[bool, float]:
        """Count a Fetch's records; return whether they may be sent, and the throttle time in ms.

        Records beyond the quota are not sent, and not counted. The exception is the first response:
        even one batch can exceed all windows together, and Apache Kafka never returns such a batch.
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
        """Return the limit of a Fetch, at most ``most`` bytes: no more than all windows allow."""
        if self._consumed is None:
            return most
        return min(most, max(1, int(self._consumed[1] * self._windows.full_s)))

    def used(self, took_ns: int) -> float:
        """Count the time of a request; return the client's throttle time in milliseconds."""
        if self._requests is None:
            return 0.0
        rate, limit = self._requests
        now_s = self._clock.monotonic()
        rate.add(took_ns / NS_PER_PERCENT, now_s)
        return min(rate.throttle_s(limit, now_s), REQUEST_THROTTLE_MAX_S) * 1000

    def mutated(self, count: int, *, strict: bool) -> float | None:
        """Count changes of partitions; return the client's throttle time in milliseconds.

        ``strict``: return None, without counting, if the balance is negative already.
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
        """Return the time, in milliseconds, until changes are allowed again."""
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
    """Quotas of one broker, and the use that is counted against them."""

    def __init__(self, clock: Clock, generation: Generation) -> None:
        self.limits = QuotaLimits()
        self.windows = Windows()
        self.mutation_windows = Windows()
        self._clock = clock
        self._generation = generation
        self._rates: Counters[Rate] = Counters()
        self._buckets: Counters[TokenBucket] = Counters()

    def load(self, rows: Iterable[QuotaRow]) -> None:
        """Load the stored quotas."""
        self.limits = QuotaLimits((entity_of(row.entity), row.key, row.value) for row in rows)
        self._generation.advance()

    def change(self, changes: Iterable[Change]) -> None:
        """Set or remove quotas."""
        for named, key, value in changes:
            self.limits.set(named, key, value)
        self._generation.advance()

    def client_quota(self, user: str, client_id: str) -> ClientQuota | None:
        """Return the quotas of a client, or None if it has none."""
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
    """Counters by user and client ID; an idle one lasts as long as a connection uses it."""

    def __init__(self) -> None:
        self._all: WeakValueDictionary[Counted, Counter] = WeakValueDictionary()
        self._kept: dict[Counted, Counter] = {}
        """Counters that are not idle, which outlast their connections, so that a new one inherits
        them."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(
        self, counted: Counted, new: Callable[[], Counter], is_idle: Callable[[Counter], bool]
    ) -> Counter:
        """Return a counter, created if it does not exist."""
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
