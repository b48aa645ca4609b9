"""Decider that a commit worker keeps between batches, because taking the sink costs time.

Spark usually commits in the Python worker of the previous batch, but not always. If a worker has
committed the previous batch and is fenced now, another driver has fenced it: it gives up, and does
not touch transactions of that driver. Other workers may have been fenced by a worker of their own
driver, so they take the sink with a new decider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.spark_connector.errors import Fenced
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.two_phase import Decider

Action = Callable[[Decider], object]


@dataclass
class _Kept:
    options: SinkOptions
    query_id: str | None
    decider: Decider
    last_batch_id: int
    """Last batch that this decider has committed."""
    is_fenced: bool = False


_kept: list[_Kept] = []
"""At most one element."""


def commit_with_decider(
    options: SinkOptions, query_id: str | None, batch_id: int, action: Action
) -> None:
    """Commit a batch, with the decider of the previous batch if this worker has it."""
    kept = _take(options, query_id)
    if kept is not None and (kept.is_fenced or kept.last_batch_id != batch_id - 1):
        kept.decider.close()
        kept = None
    kept = kept or _Kept(options, query_id, Decider(options, query_id), batch_id)
    try:
        action(kept.decider)
    except Fenced:
        kept.is_fenced = True  # Kept for the following abort, which must change nothing.
        _kept.append(kept)
        raise
    except BaseException:
        kept.decider.close()
        raise
    kept.last_batch_id = batch_id
    _kept.append(kept)


def abort_with_decider(options: SinkOptions, query_id: str | None, action: Action) -> None:
    """Abort a batch, which ends its query, and close the decider."""
    kept = _take(options, query_id)
    decider = kept.decider if kept is not None else Decider(options, query_id)
    try:
        action(decider)
    finally:
        decider.close()


def _take(options: SinkOptions, query_id: str | None) -> _Kept | None:
    """Return the kept decider if it is for these options and this query, or any query."""
    kept = _kept.pop() if _kept else None
    if kept is None or (kept.options == options and query_id in {None, kept.query_id}):
        return kept
    kept.decider.close()
    return None
