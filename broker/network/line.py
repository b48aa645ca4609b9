"""The connection and the server of a pipeline, as far as the pipeline uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.api.dispatch import Peer, Routes

if TYPE_CHECKING:
    from barnabas.broker.network.flow import Backlog
    from barnabas.broker.network.large import LargeRequests
    from barnabas.broker.network.login_gate import LoginGate
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.acls.access import Generation
    from barnabas.broker.security.quotas.quotas import Quotas


class Line(Peer, Protocol):
    """The connection of a pipeline."""

    def queue_delivery(self) -> None:
        """Call ``deliver`` soon: a response is ready, or requests can be handled again."""

    def close(self, reason: str) -> None:
        """Close the connection because of an error of the client."""

    def bug(self, name: str, error: BaseException) -> None:
        """Close the connection after an internal error."""

    @property
    def gate(self) -> LoginGate | None:
        """The judge of requests before the login, or None if no login is pending."""


class Limits(Protocol):
    """The parts and limits that all connections share."""

    @property
    def routes(self) -> Routes:
        """The table of served APIs."""

    @property
    def large(self) -> LargeRequests:
        """The decoder and encoder of large messages on a thread."""

    @property
    def generation(self) -> Generation:
        """The count of changes of permissions."""

    @property
    def quotas(self) -> Quotas:
        """The quotas of clients."""

    @property
    def clock(self) -> Clock:
        """The clock for all timers."""

    @property
    def backlog(self) -> Backlog:
        """The backlog of the journal."""

    @property
    def pipeline_limit(self) -> int:
        """The maximum number of pending responses of a connection."""

    @property
    def write_buffer_bytes(self) -> int:
        """The maximum size of responses that are ready and wait for earlier ones."""

    @property
    def at_work(self) -> set[Any]:
        """The runs that wait for work that other state depends on."""
