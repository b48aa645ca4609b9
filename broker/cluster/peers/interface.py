"""What a broker may ask of another one, as those who ask see it: nothing here does I/O.

A question is a request in a version that the one who asks has chosen; the answer comes by callback
on the loop, once, never from inside ``ask``. Where none will come that is said in its place, and
whether the request may have arrived: what may have arrived is repeated on a connection whose hello
has ended the one before (R10), so the repetition is the last that the peer hears of it.
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
    """What a connection is for; each has one of its own, so that none waits for another's answers.

    The values are what hellos name.
    """

    VERIFICATION = "verification"
    """AddPartitionsToTxn: a leader asks a coordinator."""
    MARKERS = "markers"
    """WriteTxnMarkers: a coordinator has decided."""
    PRODUCERS = "producers"
    """DescribeProducers: a broker forwards the request of a client to the leaders."""


class Failure(Enum):
    """Why there is no answer."""

    UNKNOWN_NODE = auto()
    """No such broker is known, or it is not known where it listens."""
    UNREACHABLE = auto()
    """No connection could be made."""
    NOT_LET_IN = auto()
    """A login or a certificate was refused, or the peer does not take this broker for one."""
    UNSUPPORTED = auto()
    """The peer does not speak this version of the API."""
    BUSY = auto()
    """As many questions or bytes wait for this peer as may."""
    LATE = auto()
    """The answer did not come in time."""
    LOST = auto()
    """The connection has ended in between."""
    CLOSED = auto()
    """This broker asks nothing any more."""


class NoAnswer(NamedTuple):
    """What a callback receives in place of an answer."""

    failure: Failure
    reason: str
    """One line for people, without secrets."""
    was_sent: bool = False
    """Whether the request may have arrived, and may have been handled."""


OnAnswer: TypeAlias = Callable[[Any], None]
"""Takes the API's response, or NoAnswer."""


class Peers(Protocol):
    """The other brokers of the cluster."""

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
        """Ask a broker; ``on_answer`` is called once, on the loop, after this has returned.

        At the latest when ``timeout_ms`` are over, whatever happens to the connection. Questions of
        one node and purpose arrive in the order in which they were asked, as far as they arrive.
        Raises KafkaError UNSUPPORTED_VERSION for a version that ``api`` itself does not have.
        """

    def forget(self, node_id: int) -> None:
        """Ask a broker nothing more that has left: its connections close."""

    async def close(self) -> None:
        """Ask nothing any more: who waits is told CLOSED before this returns, later askers too."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection to a peer may take."""

    questions_max: int = 1_000
    """Questions without an answer, of one node and purpose."""
    question_bytes_max: int = 16 * 1024 * 1024
    """What they have together; one alone may have that much."""
    answer_bytes_max: int = 16 * 1024 * 1024
    """Largest answer."""
    connect_timeout_ms: float = 10_000
    """For the connection with TLS, login and hello."""
    pause_first_ms: float = 50
    """Before a connection is tried again that could not be made or has brought nothing."""
    pause_max_ms: float = 1_000
    """It doubles up to this."""
    idle_ms: float = 540_000
    """After so long without a question the connection is closed."""
