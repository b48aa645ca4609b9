"""Polls of the cluster before a request for a new or deleted topic is refused.

A client can send its next request to another broker, which learns of the change a little later. So
before a broker refuses a request because of its own metadata, it polls the cluster
(``broker/cluster/metadata_refresh.py``). This covers the administration of topics, and
coordinators, to which clients send partitions that they have just written at other brokers.

It does not cover requests that clients send to a partition's leader, since they retry those, or a
broker's requests for a transaction: that broker retries them, and its connection must not block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.driver import Run, response_of
from barnabas.broker.api.waits import Aside
from barnabas.broker.metadata.resources import ResourceType
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.acls import operations

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext, Routes
    from barnabas.broker.cluster.metadata_refresh import Misses
    from barnabas.broker.metadata.catalogue import Catalogue

NAMED_PER_TURN: Final = 100
"""Maximum number of names checked in one turn of the event loop."""

Place = tuple[str | bytes, int]
"""Topic by its name or ID, and the index of one of its partitions."""


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
"""Names in requests that are refused if the topic does not exist, by API."""
HAS_TO_BE_AT_COORDINATORS: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {
    "AddPartitionsToTxn": _of_transaction,
    "OffsetCommit": _of_commit,
    "TxnOffsetCommit": _of_partitions,
}
"""Names in such requests whose handlers are not coroutines."""
MUST_NOT_BE: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {"CreateTopics": _of_topics}
"""Names in requests that are refused if the topic exists, by API."""


def poll_before_refusing(routes: Routes, catalogue: Catalogue, misses: Misses) -> None:
    """Make bound routes poll the cluster before their handlers refuse by this broker's metadata."""

    def is_shown(topic: str | bytes, index: int) -> bool:
        by_name, by_id = catalogue.topics, catalogue.topics_by_id
        found = by_name.get(topic) if isinstance(topic, str) else by_id.get(topic)
        return found is not None and index < len(found.partitions)

    for route in routes:
        for table, refused in ((HAS_TO_BE, False), (MUST_NOT_BE, True)):
            if route.name in table:
                assert route.is_coroutine, route.name
                named = table[route.name]
                route.handler = _polling(route.handler, misses, named, is_shown, refused=refused)
        if route.name in HAS_TO_BE_AT_COORDINATORS:
            assert not route.is_coroutine, route.name
            named = HAS_TO_BE_AT_COORDINATORS[route.name]
            route.handler = _polling_aside(route.handler, misses, named, is_shown)


def _polling(
    handler: Callable[..., Any],
    misses: Misses,
    named: Callable[[Any], Iterable[Place]],
    is_shown: Callable[[str | bytes, int], bool],
    *,
    refused: bool,
) -> Callable[..., Any]:
    async def polling(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for number, (topic, index) in enumerate(named(request)):
            if not number % NAMED_PER_TURN:
                await next_turn()
            if is_shown(topic, index) is refused and _may_wait_for(context, topic):
                await misses.wait_for_poll()
                break
        return await response_of(handler(context, request))

    return polling


def _polling_aside(
    handler: Callable[..., Any],
    misses: Misses,
    named: Callable[[Any], Iterable[Place]],
    is_shown: Callable[[str | bytes, int], bool],
) -> Callable[..., Any]:
    in_slices = _polling(handler, misses, named, is_shown, refused=False)

    def polling(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for number, (topic, index) in enumerate(named(request)):
            if number == NAMED_PER_TURN:
                return Run(in_slices(context, request))
            if not is_shown(topic, index) and _may_wait_for(context, topic):
                # Later requests on the connection, such as the end of a transaction, do not
                # overtake.
                return Run(_poll_then_handle(misses, handler, context, request))
        return handler(context, request)

    return polling


def _may_wait_for(context: RequestContext, topic: str | bytes) -> bool:
    """Whether a wait cannot reveal, by its duration, a topic that the client must not see."""
    may_see = context.access.may_see
    return isinstance(topic, bytes) or may_see(operations.ResourceType.TOPIC, topic)


async def _poll_then_handle(
    misses: Misses,
    handler: Callable[..., Any],
    context: RequestContext,
    request: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Handle a request after a poll, unless its client disconnects before that."""
    await Aside(lambda: asyncio.ensure_future(misses.wait_for_poll()))
    return await response_of(handler(context, request))
