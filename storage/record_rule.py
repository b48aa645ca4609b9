"""Rule of a topic about its records, as far as a refused batch needs it."""

from __future__ import annotations

from typing import Final, NamedTuple

NO_TIMESTAMP: Final = -1


class RecordRule(NamedTuple):
    """Rule of a topic about each record of a batch."""

    log_name: str
    needs_key: bool
    earliest_ms: int
    latest_ms: int
    is_stamped: bool
    """Whether the broker replaces the timestamps, so that those of producers do not matter."""

    def lacks_key(self, *, has_key: bool) -> bool:
        """Whether a record has no key although its topic requires one."""
        return self.needs_key and not has_key

    def is_out_of_time(self, timestamp_ms: int) -> bool:
        """Whether a record's timestamp lies outside of the bounds."""
        if self.is_stamped or timestamp_ms == NO_TIMESTAMP:
            return False
        return not self.earliest_ms <= timestamp_ms <= self.latest_ms
