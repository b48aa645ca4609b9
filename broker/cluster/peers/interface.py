"""Requests that brokers of a cluster send to each other: the sender's interface, without I/O.

The sender chooses the version of a request. The response arrives by callback on the event loop,
once, and never during ``ask``. If there is no response, the callback gets the reason, and whether
the request may have arrived. Such a request is repeated on another connection, whose hello ends the
earlier one (R10). So the repetition is the last of these requests that the peer handles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from barnabas.protocol.api import Api

Request = TypeVar("Request")
Response = TypeVar("Response")


class Purpose(StrEnum):
    """Purpose of a connection; each has its own, so that no response waits for those of another.

    The values are the names in hellos.
    """

    VERIFICATION = "verification"
    """AddPartitionsToTxn: from a partition leader to a coordinator."""
    MARKERS = "markers"
    """WriteTxnMarkers: from a coordinator, after a decision."""
    PRODUCERS = "producers"
    """DescribeProducers: from a broker that forwards a client's request to the leaders."""


class Failure(Enum):
    """Reason for a missing response."""

    UNKNOWN_NODE = auto()
    """The broker, or its address, is not known."""
    UNREACHABLE = auto()
    """The connection could not be opened."""
    NOT_LET_IN = auto()
    """The peer refused the login or certificate, or does not accept this broker as one."""
    UNSUPPORTED = auto()
    """The peer does not support this version of the API."""
    BUSY = auto()
    """The queue for this peer has reached its limit of questions or bytes."""
    LATE = auto()
    """The response did not arrive before the timeout."""
    LOST = auto()
    """The connection ended before the response."""
    CLOSED = auto()
    """Closing state: this broker sends no more requests."""


class NoAnswer(NamedTuple):
    """Result in the place of a response."""

    failure: Failure
    reason: str
    """Reason in one line, without secrets."""
    was_sent: bool = False
    """Whether the request may have arrived, and may have been handled."""


OnAnswer: TypeAlias = Callable[[Any], None]
"""Callback that receives the API's response, or NoAnswer."""


class Peers(Protocol):
    """Client of the other brokers of the cluster."""

    def ask(
        self,
        node_id: int,
        purpose: Purpose,
        api: Api[Request, Response],
        version: int,
        request: Request,
        on_answer: Callable[[Response | NoAnswer], None],
        *,
        timeout_ms: float,
    ) -> None:
        """Send a request to a broker; ``on_answer`` is called once, on the loop, after this
        returned.

        The call comes within ``timeout_ms``, regardless of the connection. Requests for one node
        and purpose are delivered in order, or not at all. Raises KafkaError UNSUPPORTED_VERSION for
        a version that ``api`` does not have.
        """

    def forget(self, node_id: int) -> None:
        """Close the connections to a broker that has left."""

    async def close(self) -> None:
        """Fail pending requests, and all later ones, with CLOSED, before this returns."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection to a peer."""

    questions_max: int = 1_000
    """Maximum number of requests without a response, for one node and purpose."""
    question_bytes_max: int = 16 * 1024 * 1024
    """Maximum size of these requests together; a single larger request is also accepted."""
    answer_bytes_max: int = 16 * 1024 * 1024
    """Maximum size of a response."""
    connect_timeout_ms: float = 10_000
    """Timeout for the connection with TLS, login and hello."""
    pause_first_ms: float = 50
    """Pause after a connection that could not be opened or brought no response."""
    pause_max_ms: float = 1_000
    """Maximum pause; each pause is twice the one before."""
    idle_ms: float = 540_000
    """Time without a request after which the connection is closed."""
