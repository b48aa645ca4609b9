"""The decider that a commit worker keeps from batch to batch, because owning the sink costs time.

Spark commits in a Python worker that usually, but not always, is the one of the batch before. Who
has committed the batch before, and is fenced now, was fenced by another driver, and gives up; it
leaves alone what is that driver's. Who has not may have been fenced by a worker of its own driver,
and a new decider takes the sink.
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
    """The last batch that this one has committed."""
    is_fenced: bool = False


_kept: list[_Kept] = []
"""At most one."""


def commit_with_decider(
    options: SinkOptions, query_id: str | None, batch_id: int, action: Action
) -> None:
    """Commit a batch, with the decider of the batch before if it is here."""
    kept = _take(options, query_id)
    if kept is not None and (kept.is_fenced or kept.last_batch_id != batch_id - 1):
        kept.decider.close()
        kept = None
    kept = kept or _Kept(options, query_id, Decider(options, query_id), batch_id)
    try:
        action(kept.decider)
    except Fenced:
        kept.is_fenced = True  # kept for the abort that follows, which must touch nothing
        _kept.append(kept)
        raise
    except BaseException:
        kept.decider.close()
        raise
    kept.last_batch_id = batch_id
    _kept.append(kept)


def abort_with_decider(options: SinkOptions, query_id: str | None, action: Action) -> None:
    """Abort a batch; the query ends with that, so nothing is kept."""
    kept = _take(options, query_id)
    decider = kept.decider if kept is not None else Decider(options, query_id)
    try:
        action(decider)
    finally:
        decider.close()


def _take(options: SinkOptions, query_id: str | None) -> _Kept | None:
    """The kept decider, if it is that of the query; without an id it is anybody's."""
    kept = _kept.pop() if _kept else None
    if kept is None or (kept.options == options and query_id in {None, kept.query_id}):
        return kept
    kept.decider.close()
    return None
