"""The brokers of one cluster: found from a few addresses, connected to when needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from barnabas.broker.client.access import OPEN
from barnabas.broker.client.connection import Address, Connection
from barnabas.broker.client.errors import NotLetIn, Unreachable
from barnabas.protocol.api import Api
from barnabas.protocol.client import DEFAULT_MAX_FRAME_BYTES
from barnabas.protocol.messages.find_coordinator import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
)
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.storage.runtime.clock import monotonic

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

Request = TypeVar("Request")
Response = TypeVar("Response")

GROUP: Final = 0
TRANSACTION: Final = 1
"""Kinds of keys in FindCoordinator, by Kafka's numbers."""

MANY_KEYS_SINCE: Final = 4
"""The version of FindCoordinator from which on one request names many keys."""

OPENING_SECONDS_MIN: Final = 1.0
"""Minimum time for each connection step to one of many brokers."""
TURN_SECONDS: Final = 2.0
"""Time for each connection step to another broker while the present one still responds; doubled
after each unsuccessful turn."""


class Brokers:
    """Connections by node id, and one to any broker that takes it; all raise Unreachable.

    ``with Brokers(addresses, client_id, timeout_seconds) as brokers: brokers.ask(API, request)``.
    """

    def __init__(
        self,
        addresses: Iterable[Address],
        client_id: str,
        timeout_seconds: float,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        security: ClientSecurity | None = None,
    ) -> None:
        """Read the stores that ``security`` names; raises WrongSetting."""
        self._access = OPEN if security is None else security.access()
        self._addresses = list(addresses)
        self._client_id = client_id
        self.timeout_seconds = timeout_seconds
        self._max_frame_bytes = max_frame_bytes
        self._where: dict[int, Address] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._first: Connection | None = None
        self._first_address: Address | None = None
        self._is_turned = False
        """Whether the next connection must go to another broker than the last one."""
        self._turn_seconds = TURN_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        connections = [*self._connections.values(), *([self._first] if self._first else [])]
        self._connections.clear()
        self._first = None
        for connection in connections:
            connection.close()

    # -------------------------------------------------------------------------------- connections

    @property
    def node_ids(self) -> list[int]:
        """Node IDs of the newest Metadata, and of coordinators found since."""
        return sorted(self._where)

    def node(self, node_id: int, lane: str = "") -> Connection:
        """Return the connection to a broker that was named; each ``lane`` has one of its own."""
        connection = self._connections.get((node_id, lane))
        if connection is None or not connection.is_open:
            connection = self.connect(node_id, self.timeout_seconds)
            self._connections[node_id, lane] = connection
        return connection

    def connect(self, node_id: int, timeout_seconds: float) -> Connection:
        """Return a new connection to a broker, for the caller to close."""
        address = self._where.get(node_id)
        if address is None:
            raise Unreachable(f"broker {node_id} is not in the metadata of the cluster")
        return self._connect(address, timeout_seconds)

    def any(self) -> Connection:
        """Return a connection to the broker used last, or to the first that accepts one.

        All attempts together take at most about as long as the timeout of one response.
        """
        if self._first is None or not self._first.is_open:
            addresses = self._addresses_in_turn()
            if addresses[-1:] == [self._first_address] and not self._is_turned:
                addresses = addresses[-1:] + addresses[:-1]
            self._first = self._connect_to_any(addresses)
        return self._first

    def turn_to_another(self) -> None:
        """Switch ``any`` to another broker, if one accepts a connection soon; raises NotLetIn.

        A broker that is cut off from its cluster still responds, with outdated metadata. The
        present connection stays in use until another one is open, since the machine of the next
        broker might not exist any more.
        """
        present, former_address = self._first, self._first_address
        if present is None or not present.is_open:
            self._is_turned = True
            return
        turn_seconds = min(self._turn_seconds, self.timeout_seconds)
        try:
            self._first = self._connect_to_any(self._addresses_in_turn(), turn_seconds)
        except NotLetIn:
            raise
        except Unreachable:
            self._turn_seconds = 2 * turn_seconds
            return
        present.close()
        is_another = self._first_address != former_address
        self._turn_seconds = TURN_SECONDS if is_another else 2 * turn_seconds

    def _connect_to_any(
        self, addresses: Sequence[Address], opening_timeout_seconds: float | None = None
    ) -> Connection:
        """Connect to the first broker that accepts, with ``opening_timeout_seconds`` for each.

        Without it, they share the timeout of a response.
        """
        problems: list[Unreachable] = []
        left_seconds = self.timeout_seconds
        for number, address in enumerate(addresses):
            begun_s = monotonic()
            share_seconds = left_seconds / (len(addresses) - number)
            opening_seconds = opening_timeout_seconds or max(
                share_seconds, min(OPENING_SECONDS_MIN, self.timeout_seconds)
            )
            try:
                connection = self._connect(address, self.timeout_seconds, opening_seconds)
            except NotLetIn:
                raise
            except Unreachable as problem:
                problems.append(problem)
                left_seconds -= monotonic() - begun_s
            else:
                self._first_address = address
                self._is_turned = False
                return connection
        if len(problems) == 1:
            raise problems[0]
        raise Unreachable("; ".join(dict.fromkeys(map(str, problems))))

    def _addresses_in_turn(self) -> list[Address]:
        """Return all known addresses; the last one is that of the present connection."""
        known = list(dict.fromkeys([*self._addresses, *self._where.values()]))
        if self._first_address not in known:
            return known
        following = known.index(self._first_address) + 1
        return known[following:] + known[:following]

    def _connect(
        self,
        address: Address,
        timeout_seconds: float,
        opening_timeout_seconds: float | None = None,
    ) -> Connection:
        return Connection(
            address,
            self._client_id,
            timeout_seconds,
            self._max_frame_bytes,
            self._access,
            opening_timeout_seconds,
        )

    # ----------------------------------------------------------------------------------- look-ups

    def ask(
        self, api: Api[Request, Response], request: Request, at_most: int | None = None
    ) -> Response:
        """Send a request to any broker; Kafka's brokers forward it to the controller if needed."""
        return self.any().ask(api, request, at_most)

    def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Return brokers and partition leaders of some topics, or of all if ``topics`` is None.

        A topic that does not exist has an error code, and is not created. A broker that is not in
        the response has left the cluster.
        """
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response = self.ask(METADATA, request)
        self._where = {each.node_id: (each.host, each.port) for each in response.brokers}
        for place in [each for each in self._connections if each[0] not in self._where]:
            self._connections.pop(place).close()
        return response

    def coordinators(self, kind: int, keys: Sequence[str]) -> list[Coordinator]:
        """Return the coordinators of groups or transactional ids, or an error code for each."""
        connection = self.any()
        if connection.speaks(FIND_COORDINATOR, MANY_KEYS_SINCE):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            found = connection.ask(FIND_COORDINATOR, request).coordinators
        else:
            found = [_coordinator(connection, kind, key) for key in keys]
        for each in found:
            if not each.error_code:
                self._where[each.node_id] = each.host, each.port
        return found


def _coordinator(connection: Connection, kind: int, key: str) -> Coordinator:
    answer: Any = connection.ask(FIND_COORDINATOR, FindCoordinatorRequest(key, kind))
    return Coordinator(key, answer.node_id, answer.host, answer.port, answer.error_code)
