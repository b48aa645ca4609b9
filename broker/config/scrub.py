"""Settings of the scrubber, which verifies what lies on disk."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.config.fields import setting
from barnabas.broker.config.types import ConfigType, at_least


@dataclass(frozen=True, slots=True)
class ScrubConfig:
    """How much of the logs is read again, and how often, to find damage before a reader does."""

    scrub_bytes_per_second: int = setting(
        "barnabas.scrub.bytes.per.second", ConfigType.LONG, 10 * 1024 * 1024, at_least(0)
    )
    """How fast sealed segments are read to verify them, at most; 0: not at all, only what a reader
    found damaged is looked at."""
    scrub_interval_ms: int = setting(
        "barnabas.scrub.interval.ms", ConfigType.LONG, 7 * 24 * 3600 * 1000, at_least(1)
    )
    """How long a segment that was verified is not verified again."""
