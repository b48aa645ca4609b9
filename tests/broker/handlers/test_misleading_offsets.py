"""OffsetFetch where a client would take an error for an answer: it is hung up on, or told more."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.handlers.group_offsets import offset_fetch
from barnabas.broker.security.access import OPEN
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_HERE = ErrorCode.NOT_COORDINATOR
NAMED = [OffsetFetchRequestTopic("topic", [0, 3])]
ASKED = OffsetFetchRequest("g", NAMED, [OffsetFetchRequestGroup("g", topics=None)])
TWO = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(each, topics=None) for each in "gh"])


class Check:
    """Says when a test wants it whether a partition is led here."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[bool], None]] = []

    def check(self, _partition_id: int, then: Callable[[bool], None]) -> None:
        self.waiting.append(then)


def ask(code: ErrorCode, version: int, check: Check | None, request: Any = ASKED) -> Any:
    groups: Any = SimpleNamespace(
        refusal=lambda _key: code,
        have_many_offsets=lambda _keys: False,
        image=None,
        log=SimpleNamespace(partition_id_of=lambda _key: 1),
    )
    context: Any = SimpleNamespace(
        access=OPEN,
        api_version=version,
        client_id="client",
        connection=SimpleNamespace(peer_host="host"),
    )
    catalogue: Any = None
    leadership_check: Any = check
    return offset_fetch(catalogue, groups, leadership_check, context, request)


def answered(code: ErrorCode, version: int, check: Check | None) -> OffsetFetchResponse:
    response: OffsetFetchResponse = ask(code, version, check).response
    return response


@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_a_group_that_is_loaded_is_so_at_every_partition(version):
    """aiokafka looks nowhere else before version 8, and begins anew where it finds nothing."""
    response = answered(LOADING, version, None)
    assert response.error_code == LOADING
    found = {each.partition_index: each for topic in response.topics for each in topic.partitions}
    assert [(at, each.error_code, each.committed_offset) for at, each in found.items()] == [
        (0, LOADING, -1),
        (3, LOADING, -1),
    ]


def test_who_names_no_partition_is_hung_up_on():
    with pytest.raises(CloseConnection):
        ask(LOADING, 3, None, OffsetFetchRequest("g", None))
    assert answered(LOADING, 9, None).groups[0].error_code == LOADING


@pytest.mark.parametrize("version", [3, 9])
def test_who_asks_another_broker_is_hung_up_on_in_a_cluster(version):
    with pytest.raises(CloseConnection):
        ask(NOT_HERE, version, Check())
    alone = answered(NOT_HERE, version, None)
    assert (alone.groups[0].error_code if version == 9 else alone.error_code) == NOT_HERE
    groups = ask(NOT_HERE, 9, Check(), TWO).response.groups
    assert [each.error_code for each in groups] == [NOT_HERE, NOT_HERE]


def test_who_has_waited_is_hung_up_on():
    check, closed = Check(), []
    pending = ask(ErrorCode.NONE, 9, check)
    pending.connection = SimpleNamespace(close=closed.append)
    check.waiting[0](False)
    assert len(closed) == 1
    assert pending.response is None


def test_who_has_gone_meanwhile_keeps_nobody_else_waiting():
    check = Check()
    pending = ask(ErrorCode.NONE, 9, check)
    assert pending.connection is None, "as the pipeline leaves it, too"
    check.waiting[0](False)
    assert pending.response is None
