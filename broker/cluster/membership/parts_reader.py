"""Facts about the records before the snapshots of logs, read for many logs in one query.

Rules of this file:

* One query is under way at a time. Logs that come meanwhile go into the next one together.
* The caller may hold memory and a connection, for which others wait, so the cold store reads with
  its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage.errors import IndexClosed
from barnabas.storage.replicated.log_parts import covering_parts
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.storage.replicated.cold_store import ColdConnection, ColdStore
    from barnabas.storage.replicated.log_index import LogHead, LogPart
    from barnabas.storage.replicated.log_parts import PartFacts

LOGS_AT_ONCE: Final = 64
_KEY: Final = "parts"


class _Wanted:
    """A log, and its parts once they are read."""

    __slots__ = ("head", "parts")

    def __init__(self, head: LogHead) -> None:
        self.head = head
        self.parts: Sequence[tuple[LogPart, PartFacts]] | None = None


class PartsReader:
    """The reads of one broker; callable on any thread."""

    def __init__(self, cold: ColdStore) -> None:
        """Prepare the reads; ``cold`` carries them out."""
        self._cold = cold
        self._lock = new_lock()
        self._waiting: list[_Wanted] = []

    def read(self, head: LogHead) -> Sequence[tuple[LogPart, PartFacts]]:
        """Return the parts of a log from its start to its snapshot, or none if it is read whole.

        Blocks; raises IndexClosed.
        """
        wanted = _Wanted(head)
        with self._lock:
            self._waiting.append(wanted)
        try:
            while wanted.parts is None:
                # The query that runs now may have started without this log.
                self._cold.read(_KEY, self._read_waiting, patiently=True)
        except OSError as error:
            raise IndexClosed from error
        finally:
            with self._lock:
                if wanted in self._waiting:
                    self._waiting.remove(wanted)
        return wanted.parts

    def _read_waiting(self, way: ColdConnection) -> None:
        """Read the parts of the waiting logs, up to a number; one of each partition."""
        taken: dict[int, _Wanted] = {}
        with self._lock:
            for each in self._waiting:
                if len(taken) < LOGS_AT_ONCE:
                    taken.setdefault(each.head.partition_id, each)
        found = covering_parts(way.index, [each.head for each in taken.values()])
        with self._lock:
            for partition_id, each in taken.items():
                each.parts = found[partition_id]
                if each in self._waiting:
                    self._waiting.remove(each)
