"""Settings of the scrubber, which verifies what lies on disk."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.fields import setting
from barnabas.broker.config.types import ConfigType, at_least


@dataclass(frozen=True, slots=True)
class ScrubConfig:
    """Rate and interval at which logs are read again, to find damage before a reader does."""

    scrub_bytes_per_second: int = setting(
        "barnabas.scrub.bytes.per.second", ConfigType.LONG, 10 * 1024 * 1024, at_least(0)
    )
    """Maximum rate at which sealed segments are verified; 0 means that only segments with read
    errors are verified."""
    scrub_interval_ms: int = setting(
        "barnabas.scrub.interval.ms", ConfigType.LONG, 7 * 24 * 3600 * 1000, at_least(1)
    )
    """Interval at which each segment is verified again."""
