"""Settings of consumer groups have to fit each other."""

from __future__ import annotations

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError


def load(**settings: str):
    overrides = [f"group.consumer.{key.replace('_', '.')}={text}" for key, text in settings.items()]
    return load_config(overrides=overrides).config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"session_timeout_ms": "44999"},
            (
                "group.consumer.session.timeout.ms (44999) must be greater than or equal to "
                "group.consumer.min.session.timeout.ms (45000)"
            ),
        ),
        (
            {"session_timeout_ms": "60001"},
            (
                "group.consumer.max.session.timeout.ms (60000) must be greater than or equal to "
                "group.consumer.session.timeout.ms (60001)"
            ),
        ),
        (
            {"max_heartbeat_interval_ms": "4000"},
            (
                "group.consumer.max.heartbeat.interval.ms (4000) must be greater than or equal to "
                "group.consumer.heartbeat.interval.ms (5000)"
            ),
        ),
        (
            {"assignment_interval_ms": "15001"},
            (
                "group.consumer.max.assignment.interval.ms (15000) must be greater than or "
                "equal to group.consumer.assignment.interval.ms (15001)"
            ),
        ),
        (
            {
                "heartbeat_interval_ms": "9000",
                "session_timeout_ms": "9000",
                "min_session_timeout_ms": "9000",
            },
            (
                "group.consumer.heartbeat.interval.ms must be less than "
                "group.consumer.session.timeout.ms"
            ),
        ),
        ({"assignors": ""}, "group.consumer.assignors must name an assignor"),
        ({"assignors": "sticky"}, "String must be one of: uniform, range"),
        ({"migration_policy": "sometimes"}, "bidirectional, upgrade, downgrade or disabled"),
    ],
)
def test_conflicting_values_are_rejected(settings, message):
    with pytest.raises(ConfigError) as refused:
        load(**settings)
    assert message in str(refused.value)


def test_matching_values_are_accepted():
    config = load(assignors="range", migration_policy="Upgrade", assignment_interval_ms="0")
    assert config.group_consumer_assignors == ("range",)
    assert config.group_consumer_assignment_interval_ms == 0
