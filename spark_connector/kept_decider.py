"""The decider that a commit worker keeps from batch to batch, because owning the sink costs time.

Spark commits in a Python worker that usually, but not always, is the one of the batch before. So
the kept decider may find that it was fenced by a worker of the same driver: then a new one takes
the sink over, as it would have had to anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spark_connector.errors import Fenced
from spark_connector.options import SinkOptions
from spark_connector.two_phase import Decider


class _Kept(NamedTuple):
    options: SinkOptions
    query_id: str | None
    decider: Decider


_kept: list[_Kept] = []
"""At most one."""


def with_decider(
    options: SinkOptions, query_id: str | None, action: Callable[[Decider], object]
) -> None:
    """Run the action, which may be run twice, with a decider that owns the sink or takes it."""
    kept = _kept.pop() if _kept else None
    if kept is not None and kept[:2] == (options, query_id):
        try:
            _run(kept, action)
        except Fenced:
            pass  # the one that fenced may have been of this very driver: see above
        else:
            return
    elif kept is not None:
        kept.decider.close()
    _run(_Kept(options, query_id, Decider(options, query_id)), action)


def _run(kept: _Kept, action: Callable[[Decider], object]) -> None:
    try:
        action(kept.decider)
    except BaseException:
        kept.decider.close()
        raise
    _kept.append(kept)
