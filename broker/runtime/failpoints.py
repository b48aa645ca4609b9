"""Failpoints for crash tests: end the process at a named point, with part of its work on disk.

Off unless the environment variable ``BARNABAS_FAILPOINTS`` names a file. It may change while the
broker runs, and holds a list like ``EndTransaction:sync,Marker#2:keep``, of items
``point[#count]:action``. ``count`` is the number of times that the point is reached after a change
of the file, 1 by default.

A point is reached directly after one of these was placed in the journal:

* the name of a coordinator's command (``InitProducer``, ``AddPartitions``, ``EndTransaction``,
  ``MarkersWritten``, ``TransactionalOffsetCommit``, ``Expire``, ...): its records;
* ``Data``: a batch that opens a transaction on its partition;
* ``Marker``: the marker of one partition.

The journal is one total order of which a crash leaves a prefix, so an action is a choice of prefix:

* ``lose``: kill -9 at once, without the records of this turn of the loop;
* ``keep``: kill -9 once everything placed so far is durable; later records are lost;
* ``sync``: wait until everything placed so far is durable, and continue: a later ``lose`` or a torn
  end may cut here.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from barnabas.storage.journal.journal import Journal

VARIABLE: Final = "BARNABAS_FAILPOINTS"
ACTIONS: Final = ("lose", "keep", "sync")
_POLL_SECONDS: Final = 0.001


def parse(text: str) -> dict[tuple[str, int], str]:
    """Return the action for each point and count; raises ValueError for an invalid item."""
    actions: dict[tuple[str, int], str] = {}
    for item in filter(None, text.strip().split(",")):
        place, _, action = item.partition(":")
        point, _, count = place.partition("#")
        if not point or action not in ACTIONS or not (count or "1").isdigit():
            raise ValueError(f"{item!r} is not point[#count]:action with one of {ACTIONS}")
        actions[point, int(count or "1")] = action
    return actions


class Failpoints:
    """Failpoints of a file, and the number of times that each was reached."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._actions: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}

    def reached(self, point: str, journal: Journal) -> None:
        """Run the action of this point, if the file has one. Blocks the event loop."""
        text = self._path.read_text()
        if text != self._text:
            self._text, self._actions, self._counts = text, parse(text), {}
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
    # The journal thread numbers a group once it is durable; the blocked loop is notified later.
    while group is not None and group.sequence < 0:
        sleep(_POLL_SECONDS)


def _armed() -> Failpoints | None:
    path = os.environ.get(VARIABLE)
    return Failpoints(Path(path)) if path else None


ARMED: Final = _armed()
"""Failpoints, or None without the environment variable: then no calls are needed."""
