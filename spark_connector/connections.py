"""Connections to the brokers of a cluster, and attempts until one works or the time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import NotLetIn as NotLetInByBroker
from barnabas.broker.client.errors import Unreachable, WrongSetting
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.errors import BrokerTooOld, BrokerUnreachable, NotLetIn, WrongOption
from barnabas.spark_connector.options import addresses
from barnabas.spark_connector.security import KAFKA
from barnabas.storage.runtime.clock import monotonic

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

Result = TypeVar("Result")

DATA: Final = "data"
CONTROL: Final = "control"

_LARGEST_ANSWER_BYTES: Final = 64 * 1024 * 1024
_BELIEVED_S: Final = 1.0
"""How long attempts may fail on what one broker says before another one is asked."""


class NotYet(Exception):
    """An answer that may be another one soon; the message says what was waited for in vain."""


def name_of(code: int) -> str:
    """An error code in words."""
    error = ErrorCode(code)
    return f"{error.message} ({error.name})"


class Connections(Closing):
    """All brokers of a cluster, found from a few addresses; connections are made when needed."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str,
        timeout_ms: int,
        request_timeout_ms: int = 30_000,
        security: ClientSecurity | None = None,
    ) -> None:
        """Read the stores that ``security`` names; raises WrongOption."""
        self.servers = bootstrap_servers
        self.request_timeout_ms = request_timeout_ms
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        try:
            self._brokers = Brokers(
                addresses(bootstrap_servers),
                client_id,
                request_timeout_ms / 1000,
                max_frame_bytes=_LARGEST_ANSWER_BYTES,
                security=security,
            )
        except WrongSetting as error:
            raise WrongOption(f"The option {KAFKA}{error.key}: {error.reason}.") from None

    def close(self) -> None:
        """Close all connections; whatever is asked next makes new ones."""
        self._brokers.close()

    def deadline(self) -> Deadline:
        """As long as one thing may take."""
        return Deadline(self._timeout_ms)

    # ------------------------------------------------------------------------------- connections

    def node(self, node_id: int, lane: str = CONTROL) -> Connection:
        """Return a connection to a broker that Metadata or FindCoordinator named."""
        return self._brokers.node(node_id, lane)

    def any_node(self) -> Connection:
        """Return a connection to the first broker that takes one."""
        return self._brokers.any()

    # ---------------------------------------------------------------------------------- attempts

    def until(self, what: str, deadline: Deadline, attempt: Callable[[], Result]) -> Result:
        """Attempt something until it works; ``what`` is how an error's sentence begins."""
        believed_until_s = monotonic() + _BELIEVED_S
        is_believed = True
        while True:
            try:
                if not is_believed:
                    self._brokers.turn_to_another()
                    believed_until_s = monotonic() + _BELIEVED_S
                return attempt()
            except NotLetInByBroker as problem:
                raise NotLetIn(
                    f"{what} is not possible, {problem}; the options kafka.security.*, kafka.sasl.*"
                    " and kafka.ssl.* say how to get in."
                ) from None
            except (Unreachable, NotYet) as problem:
                self.forget()
                if deadline.is_over:
                    raise self.gave_up(what, deadline, problem) from None
                is_believed = monotonic() <= believed_until_s
            except KafkaError as error:
                if error.code != ErrorCode.UNSUPPORTED_VERSION:
                    raise
                raise BrokerTooOld(
                    f"{what} failed at {error.message}; exactly-once writing needs Apache "
                    "Kafka 2.5 or later, or Barnabas."
                ) from None
            deadline.pause()

    def gave_up(self, what: str, deadline: Deadline, problem: object) -> BrokerUnreachable:
        """What to raise when the time is over."""
        return BrokerUnreachable(
            f"{what} did not succeed within {deadline.timeout_ms / 1000:g} seconds at "
            f"{self.servers}, the last problem was: {problem}; check that the broker is running "
            "and start the query again."
        )

    def forget(self) -> None:
        """Called after each failed attempt: what was taken for granted may be wrong."""
