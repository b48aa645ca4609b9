"""A client's way to brokers: it finds leaders and coordinators, and tries again as clients do.

Every missing response (a refused connection, a closed connection, a timeout) is ``Lost``: the
request may have taken effect. The client then looks the broker up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple, TypeVar

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.broker.data_plane import Wire

Answer = TypeVar("Answer")
Address = tuple[str, int]

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators: Kafka's numbers in FindCoordinator."""
ANSWER_S = 2
"""The timeout of a response, for a broker that is paused."""
PATIENCE_S = 60
"""The timeout of a call with all its attempts."""
PAUSE_S, PAUSE_MAX_S = 0.005, 0.1
"""Pauses after the first attempt of a call, and after late ones."""
RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
"""The errors that Kafka's own clients retry by themselves."""


class Lost(Exception):
    """A request without a response."""


class Led(NamedTuple):
    """A partition, whose leader gets the requests."""

    topic: str
    partition: int


class Coordinated(NamedTuple):
    """A group, or a transactional id, whose coordinator gets the requests."""

    kind: int
    key: str


Place = Led | Coordinated


class Found(NamedTuple):
    """The broker for a request."""

    address: Address
    epoch: int = -1
    """The leader epoch; -1 where it is not known."""


def pauses() -> Iterator[float]:
    """Yield the seconds of the pauses between the attempts of a call."""
    pause_s = PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, PAUSE_MAX_S)


class Routing:
    """One client's connections, one for each broker; for one thread."""

    def __init__(self, addresses: Sequence[Address], random: Random, client_id: str) -> None:
        self._addresses = [*addresses]
        self._random = random
        self._client_id = client_id
        self._wires: dict[Address, Wire] = {}
        self._found: dict[Place, Found] = {}

    def close(self) -> None:
        """Close all connections; the next request opens others."""
        for address in [*self._wires]:
            self._hang_up(address)

    def ask(self, place: Place, api: Any, request: Any, version: int) -> Any:
        """Send a request to the leader or coordinator, as far as it is known. Raises Lost."""
        return self.ask_at(self.find(place).address, api, request, version)

    def ask_at(self, address: Address, api: Any, request: Any, version: int) -> Any:
        """Send a request to one broker. Raises Lost."""
        try:
            return self._wire(address).ask(api, request, version)
        except OSError as error:
            self._hang_up(address)
            raise Lost(f"{address}: {error!r}") from error

    def ask_all(self, api: Any, version: int, requests: Sequence[tuple[Place, Any]]) -> list[Any]:
        """Send all requests before the first response; None in place of a response that is lost.

        Nothing more is sent to a broker whose connection is lost meanwhile: a later batch of an
        idempotent producer would overtake an earlier one.
        """
        leaders = {place: self._address_or_none(place) for place in dict(requests)}
        addresses = [leaders[place] for place, _ in requests]
        lost: set[Address] = set()
        sent: list[Wire | None] = [None] * len(requests)
        for number, (address, (_, request)) in enumerate(zip(addresses, requests, strict=True)):
            if address is not None and address not in lost:
                lost.add(address)
                with self._hanging_up(address):
                    wire = self._wire(address)
                    wire.send(api, request, version)
                    sent[number] = wire
                    lost.remove(address)
        responses: list[Any] = [None] * len(requests)
        for number, (address, wire) in enumerate(zip(addresses, sent, strict=True)):
            # No response comes from a connection that was closed meanwhile.
            if address is not None and wire is not None and self._wires.get(address) is wire:
                with self._hanging_up(address):
                    responses[number] = wire.receive()
        return responses

    def _address_or_none(self, place: Place) -> Address | None:
        try:
            return self.find(place).address
        except Lost:
            return None

    @contextmanager
    def _hanging_up(self, address: Address) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._hang_up(address)

    def _wire(self, address: Address) -> Wire:
        wire = self._wires.get(address)
        if wire is None:
            wire = self._wires[address] = Wire(address, self._client_id, ANSWER_S)
        return wire

    def forget(self, place: Place) -> None:
        """Look up again whom to ask."""
        self._found.pop(place, None)

    def find(self, place: Place) -> Found:
        """Return the broker for requests; raises Lost while it is unknown."""
        found = self._found.get(place)
        if found is None:
            find = self._leader if isinstance(place, Led) else self._coordinator
            found = self._found[place] = find(place)
        return found

    def until_answered(self, place: Place, ask: Callable[[], int]) -> ErrorCode:
        """Repeat ``ask`` until it returns an error code that is not retriable."""
        deadline = monotonic() + PATIENCE_S
        reason: object = None
        pauses_s = pauses()
        while monotonic() < deadline:
            try:
                code = ErrorCode(ask())
            except Lost as lost:
                reason = lost
            else:
                if code not in RETRIABLE:
                    return code
                reason = code
            self.forget(place)
            sleep(self._random.random() * 2 * next(pauses_s))
        raise AssertionError(f"{self._client_id} asked {place} for {PATIENCE_S} s: {reason!r}")

    def _hang_up(self, address: Address) -> None:
        wire = self._wires.pop(address, None)
        if wire is not None:
            wire.socket.close()

    def _leader(self, place: Led) -> Found:
        request = MetadataRequest([MetadataRequestTopic(name=place.topic)], False)
        answer = self._ask_anyone(METADATA, request, 12)
        nodes = {each.node_id: (each.host, each.port) for each in answer.brokers}
        (topic,) = answer.topics
        for each in topic.partitions:
            if each.partition_index == place.partition and each.leader_id in nodes:
                return Found(nodes[each.leader_id], each.leader_epoch)
        raise Lost(f"nobody leads {place}: {ErrorCode(topic.error_code)}")

    def _coordinator(self, place: Coordinated) -> Found:
        request = FindCoordinatorRequest(place.key, place.kind)
        answer = self._ask_anyone(FIND_COORDINATOR, request, 3)
        if answer.error_code:
            raise Lost(f"nobody coordinates {place}: {ErrorCode(answer.error_code)}")
        return Found((answer.host, answer.port))

    def _ask_anyone(self, api: Any, request: Any, version: int) -> Any:
        return self.ask_at(self._random.choice(self._addresses), api, request, version)
