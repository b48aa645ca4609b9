"""Requests that name what another broker has made, or deleted, a moment ago.

A client sends one request to one broker of a cluster, and the next one to another, which is told of
the change a little later. So before that one refuses something because of what it shows, it takes a
look at the cluster (``broker/cluster/misses.py``): who administers topics, and coordinators, whom
clients tell of partitions that they have just written to elsewhere.

Left out is what clients send to the leader that they were told of, and send again by themselves;
and what a broker asks for a transaction: on its connection nobody waits, and it asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.dispatch import CloseConnection, Deferred, Parked
from barnabas.broker.api.refusals import refusal
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security import operations
from barnabas.broker.topics.resources import ResourceType
from barnabas.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.api.dispatch import RequestContext, Route, Routes
    from barnabas.broker.cluster.misses import Misses
    from barnabas.broker.topics.catalogue import Catalogue

NAMED_PER_TURN: Final = 100
"""So many of what a request names are looked at before others have their turn."""

Place = tuple[str | bytes, int]
"""A topic by its name or id, and one of its partitions."""


def _of_resources(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for each in request.resources:
        if each.resource_type == ResourceType.TOPIC:
            yield each.resource_name, 0


def _of_topics(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for each in request.topics:
        yield each.name, 0


def _of_partitions(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for each in request.topics:
        yield each.name, max((some.partition_index for some in each.partitions), default=0)


def _of_commit(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for each in request.topics:
        # By name up to version 9.
        topic = each.name or each.topic_id
        yield topic, max((some.partition_index for some in each.partitions), default=0)


def _of_transaction(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for each in request.v3_and_below_topics:
        yield each.name, max(each.partitions, default=0)


def _of_deleted(request: Any) -> Iterator[Place]:  # noqa: ANN401
    for name in request.topic_names:
        yield name, 0
    for each in request.topics:
        yield each.topic_id if each.name is None else each.name, 0


HAS_TO_BE: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {
    "AlterConfigs": _of_resources,
    "AlterPartitionReassignments": _of_partitions,
    "CreatePartitions": _of_topics,
    "DeleteRecords": _of_partitions,
    "DeleteTopics": _of_deleted,
    "DescribeConfigs": _of_resources,
    "IncrementalAlterConfigs": _of_resources,
}
"""What requests name that is refused where it is not there."""
HAS_TO_BE_AT_COORDINATORS: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {
    "AddPartitionsToTxn": _of_transaction,
    "OffsetCommit": _of_commit,
    "TxnOffsetCommit": _of_partitions,
}
"""The same, of requests that are no coroutines: so many come that none is made a task for."""
MUST_NOT_BE: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {"CreateTopics": _of_topics}
"""What they name that is refused where it is there already."""


Spawn = Callable[["Coroutine[Any, Any, None]", str], None]
"""See ``Host.spawn``."""


def look_before_refusing(
    routes: Routes, catalogue: Catalogue, misses: Misses, spawn: Spawn
) -> None:
    """Have routes that are bound take a look before they refuse because of what is shown here."""

    def is_shown(topic: str | bytes, index: int) -> bool:
        by_name, by_id = catalogue.topics, catalogue.topics_by_id
        found = by_name.get(topic) if isinstance(topic, str) else by_id.get(topic)
        return found is not None and index < len(found.partitions)

    for route in routes:
        for table, refused in ((HAS_TO_BE, False), (MUST_NOT_BE, True)):
            if route.name in table:
                assert route.is_coroutine, route.name
                named = table[route.name]
                route.handler = _looking(route.handler, misses, named, is_shown, refused=refused)
        if route.name in HAS_TO_BE_AT_COORDINATORS:
            assert not route.is_coroutine, route.name
            named = HAS_TO_BE_AT_COORDINATORS[route.name]
            route.handler = _looking_aside(route, misses, named, is_shown, spawn)
            if route.long_handler is not None:
                long_handler = route.long_handler
                route.long_handler = _looking(long_handler, misses, named, is_shown, refused=False)


def _looking(
    handler: Callable[..., Any],
    misses: Misses,
    named: Callable[[Any], Iterable[Place]],
    is_shown: Callable[[str | bytes, int], bool],
    *,
    refused: bool,
) -> Callable[..., Any]:
    async def looking(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for number, (topic, index) in enumerate(named(request)):
            if not number % NAMED_PER_TURN:
                await next_turn()
            if is_shown(topic, index) is refused and _may_wait_for(context, topic):
                await misses.look()
                break
        return await handler(context, request)

    return looking


def _looking_aside(
    route: Route,
    misses: Misses,
    named: Callable[[Any], Iterable[Place]],
    is_shown: Callable[[str | bytes, int], bool],
    spawn: Spawn,
) -> Callable[..., Any]:
    handler = route.handler

    def looking(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for topic, index in named(request):
            if not is_shown(topic, index) and _may_wait_for(context, topic):
                # What follows on the connection, the end of a transaction maybe, does not overtake.
                late = _LateAnswer()
                spawn(_look_then_ask(misses, route, handler, context, request, late), route.name)
                return late
        return handler(context, request)

    return looking


def _may_wait_for(context: RequestContext, topic: str | bytes) -> bool:
    """Nobody is to learn by the time it takes what he may not see."""
    may_see = context.access.may_see
    return isinstance(topic, bytes) or may_see(operations.ResourceType.TOPIC, topic)


class _LateAnswer(Parked[Any]):
    """The answer after a look; what the handler returned to wait for is ``inner``."""

    __slots__ = ("inner",)

    def __init__(self) -> None:
        super().__init__()
        self.inner: Deferred[Any] | None = None

    def abandoned(self) -> None:
        """Pass on that the client has gone."""
        if self.inner is not None:
            self.inner.connection = None
            self.inner.abandoned()


class _Passing:
    """Where a handler's answer expects its connection: it is the answer to another one."""

    def __init__(self, late: Parked[Any]) -> None:
        self._late = late

    def answered(self, deferred: Deferred[Any]) -> None:
        """Answer what is answered here."""
        self._late.complete(deferred.response)

    def bug(self, name: str, error: BaseException) -> None:  # noqa: ARG002
        """Take the error of ours that came instead."""
        self._late.fail(error)

    def close(self, reason: str) -> None:
        """Take that the client is to be hung up on."""
        if self._late.connection is not None:
            self._late.connection.close(reason)


async def _look_then_ask(
    misses: Misses,
    route: Route,
    handler: Callable[..., Any],
    context: RequestContext,
    request: Any,  # noqa: ANN401
    late: _LateAnswer,
) -> None:
    await misses.look()
    if late.connection is None:
        return  # The client has gone.
    passing = _Passing(late)
    try:
        try:
            answer = handler(context, request)
        except KafkaError as error:
            answer = refusal(route, request, error)
    except CloseConnection as error:
        passing.close(f"api={route.name} reason={error}")
    except Exception as error:  # noqa: BLE001  As in the pipeline: a bug ends the connection.
        late.fail(error)
    else:
        if not isinstance(answer, Deferred):
            late.complete(answer)
        elif answer.response is not None:
            late.complete(answer.response)
        else:
            answer.route = route
            answer.connection = passing
            late.inner = answer
