"""Requests that name what another broker has made, or deleted, a moment ago.

A client sends one request to one broker of a cluster, and the next one to another, which is told of
the change a little later. So before that one refuses something because of what it shows, it takes a
look at the cluster (``broker/cluster/metadata_refresh.py``): who administers topics, and
coordinators, whom clients tell of partitions that they have just written to elsewhere.

Left out is what clients send to the leader that they were told of, and send again by themselves;
and what a broker asks for a transaction: on its connection nobody waits, and it asks again.
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
"""The same, of requests whose handlers are no coroutines."""
MUST_NOT_BE: Final[Mapping[str, Callable[[Any], Iterable[Place]]]] = {"CreateTopics": _of_topics}
"""What they name that is refused where it is there already."""


def look_before_refusing(routes: Routes, catalogue: Catalogue, misses: Misses) -> None:
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
            route.handler = _looking_aside(route.handler, misses, named, is_shown)


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
        return await response_of(handler(context, request))

    return looking


def _looking_aside(
    handler: Callable[..., Any],
    misses: Misses,
    named: Callable[[Any], Iterable[Place]],
    is_shown: Callable[[str | bytes, int], bool],
) -> Callable[..., Any]:
    in_slices = _looking(handler, misses, named, is_shown, refused=False)

    def looking(context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        for number, (topic, index) in enumerate(named(request)):
            if number == NAMED_PER_TURN:
                return Run(in_slices(context, request))
            if not is_shown(topic, index) and _may_wait_for(context, topic):
                # What follows on the connection, the end of a transaction maybe, does not overtake.
                return Run(_look_then_handle(misses, handler, context, request))
        return handler(context, request)

    return looking


def _may_wait_for(context: RequestContext, topic: str | bytes) -> bool:
    """Nobody is to learn by the time it takes what he may not see."""
    may_see = context.access.may_see
    return isinstance(topic, bytes) or may_see(operations.ResourceType.TOPIC, topic)


async def _look_then_handle(
    misses: Misses,
    handler: Callable[..., Any],
    context: RequestContext,
    request: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Handle a request after a look, unless its client leaves meanwhile."""
    await Aside(lambda: asyncio.ensure_future(misses.look()))
    return await response_of(handler(context, request))
