"""Names of timers."""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.decision import Timer

TIMEOUT: Final = "transaction timeout"


def timeout_timer(transactional_id: str) -> Timer:
    """The timer of an open transaction."""
    return Timer(transactional_id, TIMEOUT)
