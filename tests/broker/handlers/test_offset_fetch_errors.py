"""OffsetFetch errors of a group, in the form that each client library needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.direct_call import response_to
from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.cluster.serving import lease_gate
from barnabas.broker.handlers.groups.group_offsets import offset_fetch
from barnabas.broker.security.acls.access import OPEN
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
REQUEST = OffsetFetchRequest("g", NAMED, [OffsetFetchRequestGroup("g", topics=None)])
ALL_PARTITIONS = OffsetFetchRequest("g", None)
TWO = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(each, topics=None) for each in "gh"])
UNNAMED = ("", "")
JAVA = ("apache-kafka-java", "4.3.0")
LIBRDKAFKA = [
    ("librdkafka", "2.16.0"),
    ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"),
    ("confluent-kafka-go", "2.16.0"),
    ("confluent-kafka-dotnet", "2.16.0"),
    ("confluent-kafka-javascript", "v1.10.1-librdkafka-2.16.0"),
    ("karafka", "v2.5.0-rdkafka-ruby-v0.19.5-librdkafka-v2.8.0"),
]
OTHERS = [UNNAMED, JAVA, ("kgo", "1.22.3"), ("sarama", "v1.61.1"), ("kafka-python", "3.0.12")]


class Check:
    """A leadership check whose result the test gives."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[bool], None]] = []

    def check(self, _partition_id: int, then: Callable[[bool], None]) -> None:
        self.waiting.append(then)


def context_of(version: int, software: tuple[str, str]) -> Any:
    seen = ClientSeen()
    seen.software, seen.software_version = software
    return SimpleNamespace(
        access=OPEN,
        api_version=version,
        client_id="client",
        connection=SimpleNamespace(peer_host="host", seen=seen),
    )


async def ask(
    code: ErrorCode,
    version: int,
    request: OffsetFetchRequest = REQUEST,
    software: tuple[str, str] = UNNAMED,
    check: Check | None = None,
) -> Any:
    groups: Any = SimpleNamespace(
        refusal=lambda _key: code,
        has_many_offsets=lambda _keys: False,
        image=None,
        log=SimpleNamespace(partition_id_of=lambda _key: 1),
    )
    catalogue: Any = None
    leadership_check: Any = check
    context = context_of(version, software)
    outcome = offset_fetch(catalogue, groups, leadership_check, context, request)
    return await response_to(outcome, cast("Any", SimpleNamespace(name="OffsetFetch")))


def errors_of(response: OffsetFetchResponse) -> list[tuple[str, int, int]]:
    return [
        (topic.name, each.partition_index, each.error_code)
        for topic in response.topics
        for each in topic.partitions
        if each.committed_offset == -1
    ]


@pytest.mark.parametrize("version", [1, 2, 3, 7])
@pytest.mark.parametrize("code", [LOADING, NOT_HERE])
async def test_unnamed_client_gets_the_error_of_its_group_at_each_partition(code, version):
    """aiokafka reads the errors of partitions alone, and resets its position without one."""
    response = await ask(code, version)
    assert response.error_code == code
    assert errors_of(response) == [("topic", 0, code), ("topic", 3, code)]
    named = await ask(code, version, REQUEST, JAVA)
    assert named.topics == (response.topics if version == 1 else [])


@pytest.mark.parametrize("version", [2, 3, 7])
@pytest.mark.parametrize("code", [LOADING, NOT_HERE])
async def test_unnamed_client_that_names_no_partition_gets_error_at_a_made_up_one(code, version):
    response = await ask(code, version, ALL_PARTITIONS)
    assert response.error_code == code
    assert errors_of(response) == [("", -1, code)]
    assert (await ask(code, version, ALL_PARTITIONS, JAVA)).topics == []


@pytest.mark.parametrize("code", [LOADING, NOT_HERE])
async def test_groups_have_their_error_since_version_8(code):
    (group,) = (await ask(code, 9)).groups
    assert (group.error_code, group.topics) == (code, [])
    assert [each.error_code for each in (await ask(code, 9, TWO)).groups] == [code, code]


@pytest.mark.parametrize("version", [3, 7, 9])
@pytest.mark.parametrize("software", OTHERS)
async def test_client_of_another_coordinator_gets_not_coordinator(software, version):
    response = await ask(NOT_HERE, version, REQUEST, software)
    code = response.groups[0].error_code if version == 9 else response.error_code
    assert code == NOT_HERE


@pytest.mark.parametrize("version", [3, 7, 9])
@pytest.mark.parametrize("software", LIBRDKAFKA)
async def test_connection_of_librdkafka_closes_instead_of_not_coordinator(software, version):
    with pytest.raises(CloseConnection):
        await ask(NOT_HERE, version, REQUEST, software)
    assert await ask(LOADING, version, REQUEST, software) is not None


@pytest.mark.parametrize("software", [JAVA, LIBRDKAFKA[0]])
async def test_failed_leadership_check_gives_the_same_as_another_coordinator(software):
    check = Check()
    asked = asyncio.ensure_future(ask(ErrorCode.NONE, 9, REQUEST, software, check))
    await asyncio.sleep(0)
    check.waiting[0](False)
    if software == JAVA:
        assert (await asked).groups[0].error_code == NOT_HERE
    else:
        with pytest.raises(CloseConnection):
            await asked


async def test_disconnected_client_keeps_no_other_waiting():
    check = Check()
    asked = asyncio.ensure_future(ask(ErrorCode.NONE, 9, REQUEST, LIBRDKAFKA[0], check))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    check.waiting[0](False)
    assert asked.cancelled()


def test_expired_lease_gives_not_coordinator_and_closes_librdkafka():
    route: Any = SimpleNamespace(name="OffsetFetch", handler=lambda *_: "served", shortcut=None)
    is_valid = [True]
    lease_gate.gate([route], lambda: is_valid[0], lambda *_: None)  # type: ignore[arg-type]
    assert route.handler(context_of(9, JAVA), REQUEST) == "served"
    is_valid[0] = False
    assert route.handler(context_of(9, JAVA), REQUEST).groups[0].error_code == NOT_HERE
    assert route.handler(context_of(3, UNNAMED), REQUEST).error_code == NOT_HERE
    with pytest.raises(CloseConnection):
        route.handler(context_of(9, LIBRDKAFKA[0]), REQUEST)
