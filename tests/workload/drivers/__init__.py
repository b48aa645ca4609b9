"""Drivers: producers, consumers and readers of several libraries, and by wire, behind protocols.

Each module of this package has those of the classes ``Session``, ``Sender``, ``Reader``, ``Input``
and ``Look`` that its library is used for; ``<library>_member`` has its ``Member``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.counterparts.logins import Login
from tests.history.model import OffsetCommit, Partition, Read, Write
from tests.workload.journal import Journal
from tests.workload.progress import Progress
from tests.workload.settings import PATIENT_MS, Settings

PATIENCE_S = 15
SESSION_MS = 3000
POLL_S = 0.2
MOST_INPUTS = 40
MOST_POLLED = 100


def patience_s(timeout_ms: int) -> int:
    """Return the time for which a client retries one request while the broker may be down.

    That is the transaction timeout, if it is longer: a transaction that outlasts each takeover must
    not fail by one, however long a busy machine takes.
    """
    return min(max(PATIENCE_S, timeout_ms // 1000), PATIENT_MS // 1000)


def session_ms(settings: Settings) -> int:
    """Return the session timeout of a member: longer for a member that no fault removes."""
    return max(SESSION_MS, settings.transaction_timeout_ms // 2)


class Failed(Exception):
    """Error of a transaction that can be aborted."""


class Over(Exception):
    """Error that ends a session: fenced, or its library gave up."""


class Session(Protocol):
    """A producer with a transactional id, past its initTransactions."""

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int, login: Login
    ) -> None: ...

    def begin(self) -> None: ...

    def send(self, writes: Sequence[Write]) -> list[Write]:
        """Send and wait; returns what was acknowledged, with offsets. Raises when not all were."""

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        """Send offsets with the transaction; `group` is the metadata of the library's consumer."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Sender(Protocol):
    """A producer outside of transactions."""

    def __init__(self, settings: Settings) -> None: ...

    def send(self, writes: Sequence[Write], pad_bytes: int) -> tuple[list[Write], Exception | None]:
        """Send and wait; return what was acknowledged, with offsets, and the first error."""

    def close(self) -> None: ...


class Reader(Protocol):
    """A reader of all partitions from their beginning, which never seeks and has no group."""

    def __init__(self, settings: Settings) -> None: ...

    def poll(self) -> list[Read]: ...

    def close(self) -> None: ...


class Input(Protocol):
    """A member of the group of transformers."""

    group: str
    was_moved: bool
    """Whether partitions came or went since it was set to False."""

    def __init__(self, settings: Settings, journal: Journal) -> None: ...

    def poll(self) -> list[Read]: ...

    def metadata(self) -> Any:
        """Return the group metadata, which fences a member that has left the group (KIP-447)."""

    def rewind(self) -> bool:
        """Seek to the committed offsets; return False if they are not known now."""

    def close(self) -> None: ...


class Member(Protocol):
    """A member of a group, which notes the partitions that come and go, and commits."""

    def __init__(self, settings: Settings, progress: Progress) -> None: ...

    def poll(self) -> list[Read]: ...

    def commit(self) -> None:
        """Commit what was read, and note the result."""

    def close(self) -> None:
        """Close the consumer, which leaves the group."""


class Look(Protocol):
    """Requests after all clients have ended."""

    def __init__(self, servers: str, login: Login) -> None: ...

    def ends(self, places: Sequence[Partition], isolation: str) -> dict[Partition, int]:
        """Return the end offsets of partitions for an isolation level."""

    def read(
        self, begins: Mapping[Partition, int], ends: Mapping[Partition, int], isolation: str
    ) -> list[Read]:
        """Read partitions from an offset to their end."""

    def committed(self, group: str, places: Sequence[Partition]) -> list[OffsetCommit]:
        """Return a group's stable offsets; -1 for a partition without one."""

    def close(self) -> None: ...


def driver(library: str) -> Any:
    """Return the module of a library; no other library is imported."""
    return importlib.import_module(f"{__name__}.{library}")


def session_kind(library: str) -> type[Session]:
    """Return the transactional producer of a library."""
    kind: type[Session] = driver(library).Session
    return kind
