"""Ends this process at a named point, with a chosen part of its work on disk: for crash tests.

Off unless the environment names points: ``BARNABAS_FAILPOINTS="EndTransaction:sync,Marker#2:keep"``
is a list of ``point[#count]:action``, where ``count`` says which time of reaching the point is
meant, the first if nothing is said.

A point is reached when something was placed in the journal and before anything else is:

* the name of a coordinator's command (``InitProducer``, ``AddPartitions``, ``EndTransaction``,
  ``MarkersWritten``, ``TransactionalOffsetCommit``, ``Expire``, ...): its records;
* ``Data``: a batch of a transaction;
* ``Marker``: the marker of one partition.

The journal is one total order of which a crash leaves a prefix, so an action is a choice of prefix:

* ``lose``: kill -9 at once, without what this turn of the loop has placed;
* ``keep``: kill -9 once everything placed so far is durable; nothing that follows is;
* ``sync``: wait until everything placed so far is durable and go on: a place where a later ``lose``
  or a torn end may cut.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.journal import Journal

VARIABLE: Final = "BARNABAS_FAILPOINTS"
ACTIONS: Final = ("lose", "keep", "sync")
_POLL_SECONDS: Final = 0.001


def parse(text: str) -> dict[tuple[str, int], str]:
    """The action for each point and count; raises SystemExit for what is no failpoint."""
    actions: dict[tuple[str, int], str] = {}
    for item in filter(None, text.split(",")):
        place, _, action = item.partition(":")
        point, _, count = place.partition("#")
        if not point or action not in ACTIONS or not (count or "1").isdigit():
            raise SystemExit(f"{VARIABLE}: {item!r} is not point[#count]:action of {ACTIONS}")
        actions[point, int(count or "1")] = action
    return actions


class Failpoints:
    """The points of one process that are armed, and how often each was reached."""

    def __init__(self, actions: Mapping[tuple[str, int], str]) -> None:
        self._actions = actions
        self._counts: dict[str, int] = {}

    def reached(self, point: str, journal: Journal) -> None:
        """Do what is to happen here, if anything is. Holds the loop meanwhile."""
        count = self._counts[point] = self._counts.get(point, 0) + 1
        action = self._actions.get((point, count))
        if action is None:
            return
        if action != "lose":
            _make_durable(journal)
        if action != "sync":
            os.kill(os.getpid(), signal.SIGKILL)


def _make_durable(journal: Journal) -> None:
    group = journal.newest_group()
    journal.flush()
    # The journal thread numbers a group when it is durable; the loop, held here, hears it later.
    while group is not None and group.sequence < 0:
        time.sleep(_POLL_SECONDS)


def _armed() -> Failpoints | None:
    text = os.environ.get(VARIABLE, "")
    return Failpoints(parse(text)) if text else None


ARMED: Final = _armed()
"""None unless the environment names points: then nobody has to call anything."""
