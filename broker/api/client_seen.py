"""Facts about a connection's client, kept for the views of clients.

Decisions use its software alone (``client_software.py``). Of fetches the last one is kept: how it
reads, and what; that is a store or two for each, and nothing is made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.api.fetch_sessions import Asked, FetchPlan

NEVER: Final = -1
KEPT_MOST: Final = 100
"""Maximum number of kept partitions of fetches outside of sessions; sessions keep their own."""


class Sample(NamedTuple):
    """Traffic of a connection at one moment."""

    at_s: float
    received_bytes: int
    sent_bytes: int
    received_per_s: float
    sent_per_s: float
    """Rate since the previous sample or, for the first one, since the start of the connection."""


class ClientSeen:
    """Properties and recent requests of one connection's client."""

    __slots__ = (
        "fetched",
        "is_known_writer",
        "isolation",
        "sample",
        "software",
        "software_version",
    )

    def __init__(self) -> None:
        self.software = ""
        self.software_version = ""
        """Version of the client software, from ApiVersions (KIP-511)."""
        self.is_known_writer = False
        """Whether its software is one of KNOWN_WRITERS."""
        self.isolation = NEVER
        """Isolation level of its last fetch."""
        self.fetched: list[Asked] | None = None
        """Partitions of the newest fetch, or None if there were too many to keep."""
        self.sample: Sample | None = None
        """Traffic at the previous observation."""

    def fetches(self, isolation: int, plan: FetchPlan) -> None:
        """Record the isolation level and the partitions of a fetch."""
        self.isolation = isolation
        asked = plan.asked
        self.fetched = asked if plan.session is not None or len(asked) <= KEPT_MOST else None
