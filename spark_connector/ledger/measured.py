"""Durations of the last steps of a batch, measured by the process that decides the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from barnabas.storage.runtime.clock import monotonic


class Measured(NamedTuple):
    """Durations of one batch after its tasks have ended, in milliseconds.

    ``two_phase``: decide is C1 to C4, commit is C5. ``single_transaction``: decide is the entry
    and the offsets, commit is EndTxn, which decides and commits.
    """

    batch_id: int
    decide_ms: float
    commit_ms: float

    @classmethod
    def ending_now(cls, batch_id: int, began_s: float, decided_s: float) -> Self:
        """Return the durations of a batch that ends now; times are values of `monotonic`."""
        ended_s = monotonic()
        return cls(batch_id, _milliseconds(began_s, decided_s), _milliseconds(decided_s, ended_s))

    def as_plain(self) -> dict[str, float]:
        """Return the fields for an entry of the ledger."""
        return {
            "batchId": self.batch_id,
            "decideMs": self.decide_ms,
            "commitMs": self.commit_ms,
        }

    @classmethod
    def of_plain(cls, found: Any) -> Self | None:  # noqa: ANN401 - any JSON
        """Read the fields of an entry, or None if they are absent or unreadable.

        No query may fail because of a duration that is only shown.
        """
        if not isinstance(found, Mapping):
            return None
        try:
            return cls(int(found["batchId"]), float(found["decideMs"]), float(found["commitMs"]))
        except (LookupError, TypeError, ValueError, OverflowError):
            return None


def _milliseconds(from_s: float, to_s: float) -> float:
    return round((to_s - from_s) * 1000, 1)
