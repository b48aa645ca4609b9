"""Settings of consumer groups that have to fit each other; the rules are Apache Kafka 4.3.0's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.types import ConflictingValues

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig


def check_consumer_groups(config: BrokerConfig) -> None:
    """Check values against their limits, and that an assignor exists; raises ConfigError."""
    for low, middle, high in _ORDERED:
        _check_order(config, low, middle)
        _check_order(config, middle, high)
        _check_order(config, low, high)
    interval_ms = config.group_consumer_heartbeat_interval_ms
    if interval_ms >= config.group_consumer_session_timeout_ms:
        raise ConflictingValues(
            "group.consumer.heartbeat.interval.ms",
            str(interval_ms),
            "group.consumer.heartbeat.interval.ms must be less than "
            "group.consumer.session.timeout.ms",
        )
    if not config.group_consumer_assignors:
        raise ConflictingValues(
            "group.consumer.assignors", "", "group.consumer.assignors must name an assignor"
        )


def _between(rest: str) -> tuple[str, str, str]:
    return f"group.consumer.min.{rest}", f"group.consumer.{rest}", f"group.consumer.max.{rest}"


_ORDERED = tuple(
    map(_between, ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"))
)


def _check_order(config: BrokerConfig, low: str, high: str) -> None:
    low_ms, high_ms = (getattr(config, name.replace(".", "_")) for name in (low, high))
    if low_ms > high_ms:
        reason = f"{high} ({high_ms}) must be greater than or equal to {low} ({low_ms})"
        raise ConflictingValues(high, str(high_ms), reason)
