"""Settings of the group coordinator; Kafka's keys in another form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class ConsumerTimes(NamedTuple):
    """Settings that one consumer group may override, in ms."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """Shortest time between two assignments (KIP-1263)."""


def _default_times(_group_id: str) -> ConsumerTimes:
    return ConsumerTimes()


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Timeouts and limits; the defaults are Apache Kafka 4.3's."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    consumer_times: Callable[[str], ConsumerTimes] = _default_times
    """Settings of single groups, by group id."""
    consumer_max_size: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """Server-side assignors on offer; the first one is the default."""
    consumer_regex_refresh_interval_ms: int = 600_000
    """Longest time before a regular expression is compared with all topics again."""
    consumer_migration_policy: str = "bidirectional"
    """Directions in which groups may change their protocol while they have members: disabled,
    upgrade, downgrade or bidirectional."""
