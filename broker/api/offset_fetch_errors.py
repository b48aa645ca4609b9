"""Errors of OffsetFetch, in a form on which each client library finds the coordinator again.

Version 1 has no error for a group, only one for each partition. Since version 2 the group has its
error, and Apache Kafka names no partition beside it. Two libraries need more than that:

* librdkafka 2.16.0 requests the committed offsets of an assignment once. NOT_COORDINATOR leaves
  them requested forever (``rd_kafka_assignment_handle_OffsetFetch``): the member keeps its place in
  the group and reads nothing. Its AdminClient, which has no group of its own, crashes on the error
  (``rd_kafka_handle_OffsetFetch`` uses ``rk_cgrp``, a null pointer there). So its connection is
  closed: a consumer looks for the coordinator then and sends the request again.
* aiokafka 0.14 (version 3) reads the errors of partitions only, and takes a response without one
  for a group that has committed nothing. It does not name its software. So a client that has not
  done so gets the group's error at each partition, too, before version 8. A request for all
  partitions names none: then the error is at partition -1 of a topic without a name. Other
  libraries read the group's error first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.api.client_software import is_librdkafka, is_unnamed
from barnabas.broker.api.dispatch import CloseConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.api.client_seen import ClientSeen

FETCH_GROUPS_SINCE: Final = 8
FETCH_GROUP_ERROR_SINCE: Final = 2
SENT_AGAIN: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})
"""Errors after which a client sends the same request again, to this broker or another one."""
NO_PARTITION: Final = -1
NOT_HERE: Final = "another broker coordinates the group"


def needs_new_connection(code: int, seen: ClientSeen) -> bool:
    """Return whether the client finds the coordinator only after its connection has closed."""
    return code == ErrorCode.NOT_COORDINATOR and is_librdkafka(seen)


def refused_fetch(
    request: OffsetFetchRequest, code: ErrorCode, version: int, seen: ClientSeen
) -> OffsetFetchResponse:
    """Return the response that refuses every group of ``request`` with ``code``.

    Raises CloseConnection for librdkafka if that response would not make it find the coordinator.
    """
    if needs_new_connection(code, seen):
        raise CloseConnection(NOT_HERE)
    if version < FETCH_GROUPS_SINCE:
        groups = [OffsetFetchResponseGroup(request.group_id, error_code=code)]
    else:
        groups = [
            OffsetFetchResponseGroup(each.group_id, error_code=code) for each in request.groups
        ]
    return fetch_response(request, groups, version, seen)


def fetch_response(
    request: OffsetFetchRequest,
    groups: list[OffsetFetchResponseGroup],
    version: int,
    seen: ClientSeen,
) -> OffsetFetchResponse:
    """Return the response with ``groups``, one for each group of ``request``, in its version."""
    if version >= FETCH_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        topics=_topics_before_groups(request, group, version, seen), error_code=group.error_code
    )


def _topics_before_groups(
    request: OffsetFetchRequest, group: OffsetFetchResponseGroup, version: int, seen: ClientSeen
) -> list[OffsetFetchResponseTopic]:
    """Return the topics as versions before 8 have them, with the error for each partition."""
    code = group.error_code
    if not code:
        # The same fields under other names, so that very many partitions are not copied.
        return cast("list[OffsetFetchResponseTopic]", group.topics)
    is_repeated = code in SENT_AGAIN and is_unnamed(seen)
    if version >= FETCH_GROUP_ERROR_SINCE and not is_repeated:
        return []
    if request.topics is None:
        return [_topic("", [NO_PARTITION], code)]
    return [_topic(each.name, each.partition_indexes, code) for each in request.topics]


def _topic(name: str, indexes: list[int], code: int) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name, [OffsetFetchResponsePartition(index, -1, -1, "", code) for index in indexes]
    )
