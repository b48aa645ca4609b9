"""A sink's view of a cluster: leaders, coordinators, and requests repeated until they work.

Rules of this file:

1. Each request can be sent twice. A lost connection or a retriable error repeats it, so it survives
   the restart of a broker, up to the deadline.
2. Pipelined data has a connection of its own to each broker. Other requests use another connection,
   and a large number of requests a few more: a broker handles the requests of a connection one
   after the other, and each can wait for the disk.
3. Only one thread uses a cluster at a time.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from barnabas.broker.client.brokers import TRANSACTION, Brokers
from barnabas.broker.client.connection import Connection
from barnabas.broker.client.deadline import Deadline
from barnabas.broker.client.errors import NotLetIn as NotLetInByBroker
from barnabas.broker.client.errors import Unreachable, WrongSetting
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.wire import ZERO_UUID
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.cluster.incarnation import Home
from barnabas.spark_connector.errors import (
    BrokerTooOld,
    BrokerUnreachable,
    NotAllowed,
    NotLetIn,
    TopicMissing,
    WrongOption,
)
from barnabas.spark_connector.settings.options import SinkOptions, addresses
from barnabas.spark_connector.settings.security import KAFKA
from barnabas.storage.runtime.clock import monotonic

if TYPE_CHECKING:
    from barnabas.broker.client.security import ClientSecurity

Request = TypeVar("Request")
Response = TypeVar("Response")
Result = TypeVar("Result")
Place: TypeAlias = "Callable[[Deadline], Connection]"
"""Function that finds the broker of a request, within a deadline, and returns a connection."""

DATA: Final = "data"
CONTROL: Final = "control"

MISSING_TOPIC_MS: Final = 5_000
"""Time for a new topic to appear, and for a starting broker to load its topics."""

_LARGEST_ANSWER_BYTES: Final = 64 * 1024 * 1024
_BELIEVED_S: Final = 1.0
"""Time for which attempts use the metadata of one broker before they use another broker."""
_TRANSACTION_VERSION: Final = "transaction.version"
_PIPELINED_MAX: Final = 100
_LANES: Final = (CONTROL, "control 2", "control 3", "control 4")
_REMEMBERED_COORDINATORS_MAX: Final = 1_000
_NOT_ALLOWED: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class TopicPartition(NamedTuple):
    """A partition by its topic's name; parameters of this type accept a plain pair, too."""

    topic: str
    partition: int


class NotYet(Exception):
    """A response with a retriable error; the message names the error."""


def name_of(code: int) -> str:
    """Return the message and the name of an error code."""
    error = ErrorCode(code)
    return f"{error.message} ({error.name})"


class Cluster(Closing):
    """A cluster, found from a few addresses, with its leaders and coordinators."""

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
        self._leaders: dict[str, dict[int, int]] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        self._brokers.close()

    def deadline(self) -> Deadline:
        """Return the time limit of one request, its repetitions included."""
        return Deadline(self._timeout_ms)

    def another(self, bootstrap_servers: str, security: ClientSecurity | None) -> Cluster:
        """Return another cluster with the same timeouts; the caller closes it."""
        return Cluster(
            bootstrap_servers,
            client_id=self._client_id,
            timeout_ms=self._timeout_ms,
            request_timeout_ms=self.request_timeout_ms,
            security=security,
        )

    # ------------------------------------------------------------------------------- connections

    def node(self, node_id: int, lane: str = CONTROL) -> Connection:
        """Return a connection to a broker from Metadata or FindCoordinator."""
        return self._brokers.node(node_id, lane)

    def any_node(self) -> Connection:
        """Return a connection to the first broker that accepts one."""
        return self._brokers.any()

    # ---------------------------------------------------------------------------------- attempts

    def until(self, action: str, deadline: Deadline, attempt: Callable[[], Result]) -> Result:
        """Repeat an attempt until it works; the message of an error starts with ``action``."""
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
                    f"{action} is not possible, {problem}; the options kafka.security.*,"
                    " kafka.sasl.* and kafka.ssl.* say how to get in."
                ) from None
            except (Unreachable, NotYet) as problem:
                self.forget()
                if deadline.is_over:
                    raise self.gave_up(action, deadline, problem) from None
                is_believed = monotonic() <= believed_until_s
            except KafkaError as error:
                if error.code != ErrorCode.UNSUPPORTED_VERSION:
                    raise
                raise BrokerTooOld(
                    f"{action} failed at {error.message}; exactly-once writing needs Apache "
                    "Kafka 2.5 or later, or Barnabas."
                ) from None
            deadline.pause()

    def gave_up(self, action: str, deadline: Deadline, problem: object) -> BrokerUnreachable:
        """Return the exception for an action that did not succeed before its deadline."""
        return BrokerUnreachable(
            f"{action} did not succeed within {deadline.timeout_ms / 1000:g} seconds at "
            f"{self.servers}, the last problem was: {problem}; check that the broker is running "
            "and start the query again."
        )

    def forget(self) -> None:
        """Clear the cached leaders and coordinators; the next request reads them again."""
        self._leaders.clear()
        self._coordinators.clear()

    # ---------------------------------------------------------------------------------- requests

    def ask(
        self,
        action: str,
        place: Place,
        api: Api[Request, Response],
        request: Request,
        *,
        error_of: Callable[[Response], int] = lambda _response: 0,
        deadline: Deadline | None = None,
        at_most: int | None = None,
    ) -> Response:
        """Repeat a request until its response has no retriable error."""
        deadline = deadline or self.deadline()

        def attempt() -> Response:
            return self._passed(place(deadline).ask(api, request, at_most), error_of)

        return self.until(action, deadline, attempt)

    def anywhere(self, _: Deadline) -> Connection:
        """Return a connection to the broker that last accepted one."""
        return self.any_node()

    def controller(self, deadline: Deadline) -> Connection:
        """Return a connection to the controller, which changes topics; with KRaft, any broker."""
        return self.node(self.refresh([], deadline).controller_id)

    def leader_of(self, topic: str, partition: int) -> Place:
        """Return the place of a partition's leader."""
        return lambda deadline: self.node(self.leader(topic, partition, deadline))

    def coordinator_of(self, kind: int, key: str) -> Place:
        """Return the place of the coordinator of a group or transactional ID."""
        return lambda _: self.node(self._find_coordinators(kind, [key])[key])

    def ask_every_broker(
        self,
        action: str,
        api: Api[Request, Response],
        request_to: Callable[[Connection], Request],
        *,
        error_of: Callable[[Response], int],
    ) -> list[Response]:
        """Send a request to each broker; return the responses of one complete round.

        A missing response repeats the round until Metadata omits that broker. By then its
        partitions are on other brokers, perhaps on some that have already responded.
        """
        deadline = self.deadline()

        def attempt() -> list[Response]:
            nodes = [each.node_id for each in self.refresh([], deadline).brokers]
            connections = [self.node(each) for each in nodes]
            return [self._passed(each.ask(api, request_to(each)), error_of) for each in connections]

        return self.until(action, deadline, attempt)

    def ask_coordinators(
        self,
        action: str,
        api: Api[Request, Response],
        requests: Mapping[str, Request],
        *,
        error_of: Callable[[Response], int],
        deadline: Deadline | None = None,
        at_most: int | None = None,
    ) -> dict[str, Response]:
        """Send pipelined requests to coordinators until each transactional ID has its response."""
        answers: dict[str, Response] = {}

        def attempt() -> None:
            missing = [key for key in requests if key not in answers]
            problem: Unreachable | NotYet | None = None
            for node_id, keys in self._by_coordinator(missing).items():
                try:
                    self._pipelined(node_id, keys, api, requests, error_of, at_most, answers)
                except (Unreachable, NotYet) as failure:
                    problem = failure
            if problem is not None:
                raise problem

        self.until(action, deadline or self.deadline(), attempt)
        return answers

    def _pipelined(
        self,
        node_id: int,
        keys: list[str],
        api: Api[Request, Response],
        requests: Mapping[str, Request],
        error_of: Callable[[Response], int],
        at_most: int | None,
        answers: dict[str, Response],
    ) -> None:
        lanes = [self.node(node_id, lane) for lane in _LANES[: len(keys)]]
        problem: NotYet | None = None
        try:
            for start in range(0, len(keys), _PIPELINED_MAX):
                chosen = keys[start : start + _PIPELINED_MAX]
                for key, connection in zip(chosen, cycle(lanes), strict=False):
                    connection.send(api, requests[key], at_most)
                for key, connection in zip(chosen, cycle(lanes), strict=False):
                    answer = connection.receive(api)
                    try:
                        answers[key] = self._passed(answer, error_of)
                    except NotYet as failure:
                        problem = failure
        except BaseException:
            for connection in lanes:
                connection.close()  # Responses that no caller reads may still arrive.
            raise
        if problem is not None:
            raise problem

    def _passed(self, response: Response, error_of: Callable[[Response], int]) -> Response:
        """Return the response; raise NotYet if its error is retriable."""
        code = ErrorCode(error_of(response))
        if code.retriable or code == ErrorCode.CONCURRENT_TRANSACTIONS:
            raise NotYet(name_of(code))
        return response

    # ----------------------------------------------------------------- leaders and coordinators

    def transaction_version(self) -> int:
        """Return the level of Kafka's feature `transaction.version`; KIP-890 needs 2 or more."""
        return self.until(
            "Connecting",
            self.deadline(),
            lambda: self.any_node().feature_level(_TRANSACTION_VERSION),
        )

    @property
    def node_ids(self) -> list[int]:
        """Node IDs of the brokers in the latest Metadata response."""
        return self._brokers.node_ids

    def refresh(self, topics: Iterable[str], deadline: Deadline) -> MetadataResponse:
        """Fetch metadata of the topics; the request creates no topic."""
        names = list(topics)
        response = self.until(
            "Asking for the cluster's topics", deadline, lambda: self._brokers.metadata(names)
        )
        for topic in response.topics:
            if topic.name is not None and not topic.error_code:
                self._leaders[topic.name] = {
                    each.partition_index: each.leader_id for each in topic.partitions
                }
        return response

    def existing(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the existing ones of the topics, with their numbers of partitions.

        Raises NotAllowed if the client may not describe a topic, since it might exist.
        """
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        response = self.refresh(wanted, self.deadline())
        for topic in response.topics:
            _refuse_hidden(topic.name, topic.error_code)
        return {
            topic.name: len(topic.partitions)
            for topic in response.topics
            if topic.name is not None and not topic.error_code
        }

    def home(self, topics: Iterable[str]) -> Home:
        """Return the ID of the cluster and those of the existing ones of the topics."""
        response = self.refresh(sorted(set(topics)), self.deadline())
        ids = {
            topic.name: base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("=")
            for topic in response.topics
            # Apache Kafka before 2.8 has no ids.
            if topic.name is not None and topic.topic_id != ZERO_UUID
        }
        return Home(response.cluster_id or "", ids)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; raises TopicMissing."""
        return len(self._partitions(topic, self.deadline()))

    def leader(self, topic: str, partition: int, deadline: Deadline) -> int:
        """Return the node ID of a partition's leader; raises NotYet while there is none."""
        partitions = self._partitions(topic, deadline)
        if partition not in partitions:
            self._leaders.pop(topic)  # Partitions may have been added.
            partitions = self._partitions(topic, deadline)
        if partition not in partitions:
            raise TopicMissing(
                f"The topic {topic} has no partition {partition}, only {len(partitions)}; "
                "correct the column partition, or add partitions to the topic."
            )
        leader_id = partitions[partition]
        if leader_id < 0:
            self._leaders.pop(topic, None)
            raise NotYet(f"partition {partition} of {topic} has no leader")
        return leader_id

    def _partitions(self, topic: str, deadline: Deadline) -> dict[int, int]:
        missing = Deadline(min(MISSING_TOPIC_MS, deadline.left_ms))
        while (partitions := self._leaders.get(topic)) is None:
            (answer,) = self.refresh([topic], deadline).topics
            code = ErrorCode(answer.error_code)
            _refuse_hidden(topic, code)
            if code and missing.is_over:
                raise TopicMissing(
                    f"The topic {topic} does not exist at {self.servers} ({code.name}); if it is "
                    "new, create it first, because this sink creates no topics; if it was deleted, "
                    "so are the results in it, and a new checkpoint is needed to write them again."
                )
            if code:
                missing.pause()
        return partitions

    def _by_coordinator(self, keys: list[str]) -> dict[int, list[str]]:
        found = self._find_coordinators(TRANSACTION, keys)
        nodes: dict[int, list[str]] = {}
        for key in keys:
            nodes.setdefault(found[key], []).append(key)
        return nodes

    def _find_coordinators(self, kind: int, keys: list[str]) -> dict[str, int]:
        """Return the coordinator of each key; raises NotYet for a retriable error."""
        if len(self._coordinators) > _REMEMBERED_COORDINATORS_MAX:
            self._coordinators.clear()
        unknown = [key for key in keys if (kind, key) not in self._coordinators]
        known = set(keys).difference(unknown)
        found = {key: self._coordinators[kind, key] for key in known}
        for start in range(0, len(unknown), _PIPELINED_MAX):
            for answer in self._brokers.coordinators(kind, unknown[start : start + _PIPELINED_MAX]):
                code = ErrorCode(answer.error_code)
                if code in _NOT_ALLOWED:
                    raise NotAllowed(f"The broker does not allow {answer.key}: {name_of(code)}.")
                if code:
                    raise NotYet(name_of(code))
                self._coordinators[kind, answer.key] = found[answer.key] = answer.node_id
        return found


def _refuse_hidden(topic: str | None, code: int) -> None:
    if code in _NOT_ALLOWED:
        raise NotAllowed(
            f"The broker does not let this client see {topic}: {name_of(ErrorCode(code))}."
        )


def connected(options: SinkOptions) -> Cluster:
    """Return the cluster in a sink's options."""
    return Cluster(
        options.bootstrap_servers,
        client_id=options.client_id,
        timeout_ms=options.delivery_timeout_ms,
        request_timeout_ms=options.request_timeout_ms,
        security=options.security,
    )
