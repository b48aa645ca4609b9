"""The table of handlers, and what an error becomes that leaves one."""

from __future__ import annotations

import inspect

import pytest

from barnabas.broker.api.dispatch import ROUTES, CloseConnection, Deferred, Route, Routes
from barnabas.broker.api.refusals import mirror, refusal
from barnabas.broker.opening.services import services_of
from barnabas.broker.testing.embedded import Broker
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.find_coordinator import (
    FIND_COORDINATOR,
    FindCoordinatorRequest,
)
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.share_fetch import SHARE_FETCH
from tests.worlds import world

__all__ = ["world"]

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def answer(context, request):
    return HeartbeatResponse()


async def answer_later(context, request):
    return HeartbeatResponse()


def test_a_handler_is_registered_beside_its_api():
    routes = Routes()
    assert routes.serves(HEARTBEAT, versions=(1, 3))(answer) is answer
    route = routes.get(HEARTBEAT.key)
    assert (route.name, route.min_version, route.max_version) == ("Heartbeat", 1, 3)
    assert not route.is_coroutine
    assert routes.get(999) is None
    assert len(routes) == 1


def test_coroutines_are_known_as_such():
    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(answer_later)
    assert routes.get(HEARTBEAT.key).is_coroutine


def test_a_handler_is_given_the_services_that_it_names():
    def answer_with(groups, clock, context, request):
        return groups, clock, context, request

    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(answer_with)
    routes.bind({"clock": "time", "groups": "all groups", "logs": "more"})
    route = routes.get(HEARTBEAT.key)
    assert route.handler("who", "what") == ("all groups", "time", "who", "what")


def test_a_class_is_made_once_and_handles_all_requests():
    class Answer:
        def __init__(self, clock):
            self.clock = clock

        def __call__(self, context, request):
            return self, self.clock, context, request

    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4), shortcut=lambda clock, context: (clock, context))(
        Answer
    )
    routes.bind({"clock": "time"})
    route = routes.get(HEARTBEAT.key)
    first, *rest = route.handler("who", "what")
    assert rest == ["time", "who", "what"]
    assert route.handler("who", "what")[0] is first
    assert route.shortcut("who") == ("time", "who")


def test_missing_service_is_found_before_a_client_connects():
    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(lambda group, context, request: None)
    with pytest.raises(KeyError, match="group"):
        routes.bind({"groups": "all groups"})


def test_binding_leaves_other_brokers_alone():
    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(lambda clock, context, request: clock)
    for time in ("early", "late"):
        copy = routes.copy()
        copy.bind({"clock": time})
        assert copy.get(HEARTBEAT.key).handler("who", "what") == time


async def test_services_are_named_as_what_they_are():
    """A handler gets by name what it declares by type."""
    async with Broker() as broker:
        offered = services_of(broker.server, broker.server._brokers())
    wrong = []
    for route in ROUTES:
        for function in filter(None, (route.handler, route.shortcut)):
            for parameter in inspect.signature(function).parameters.values():
                service = offered.get(parameter.name)
                types = {each.__name__ for each in type(service).__mro__} | (
                    {"Host"} if parameter.name == "host" else set()
                )
                if service is not None and parameter.annotation not in types:
                    wrong.append((route.name, str(parameter)))
    assert wrong == []


def test_an_api_has_one_handler():
    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(answer)
    with pytest.raises(AssertionError, match="Heartbeat has two handlers"):
        routes.serves(HEARTBEAT, versions=(0, 4))(answer)


@pytest.mark.parametrize("versions", [(0, 5), (-1, 4), (3, 2)])
def test_versions_without_a_codec_cannot_be_served(versions):
    with pytest.raises(AssertionError, match="not covered by the codec"):
        Routes().serves(HEARTBEAT, versions=versions)(answer)


def test_each_server_counts_for_itself():
    routes = Routes()
    routes.serves(HEARTBEAT, versions=(0, 4))(answer)
    copy = routes.copy()
    copy.get(HEARTBEAT.key).requests += 1
    assert routes.get(HEARTBEAT.key).requests == 0


def test_only_what_is_there_can_be_replaced():
    routes = ROUTES.copy()
    with pytest.raises(AssertionError, match="has no handler"):
        routes.replace(Route(SHARE_FETCH, 0, 1, answer, is_coroutine=False, refuse=None))


def test_routes_are_iterated_by_key():
    keys = [route.key for route in ROUTES]
    assert keys == sorted(keys)


def test_an_answer_is_given_once():
    deferred = Deferred()
    deferred.complete("x")
    with pytest.raises(AssertionError, match="twice"):
        deferred.complete("y")


def test_a_plain_deferred_may_be_left():
    Deferred().abandoned()


# ---------------------------------------------------------------------------------------- refusals


def route_of(api, refuse=None):
    return Route(api, api.min_version, api.max_version, answer, is_coroutine=False, refuse=refuse)


def test_an_error_at_the_top():
    response = refusal(route_of(HEARTBEAT), HeartbeatRequest("g"), KafkaError(CODE))
    assert response == HeartbeatResponse(0, CODE)


def test_an_error_with_its_text():
    request = FindCoordinatorRequest(key="g")
    response = refusal(route_of(FIND_COORDINATOR), request, KafkaError(CODE, "no luck"))
    assert (response.error_code, response.error_message) == (CODE, "no luck")


def test_an_api_that_has_moved_its_errors_says_them_in_both_places():
    request = FindCoordinatorRequest(coordinator_keys=["g", "h"])
    response = refusal(route_of(FIND_COORDINATOR), request, KafkaError(CODE))
    assert response.error_code == CODE
    assert [(each.key, each.error_code) for each in response.coordinators] == [
        ("g", CODE),
        ("h", CODE),
    ]


def test_an_api_may_say_it_in_its_own_way():
    own = refusal(route_of(HEARTBEAT, lambda *args: args), "request", KafkaError(CODE, "text"))
    assert own == ("request", CODE, "text")


def test_an_error_at_every_partition():
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic("a", [ListOffsetsPartition(0), ListOffsetsPartition(3)]),
            ListOffsetsTopic("b", [ListOffsetsPartition(1)]),
        ]
    )
    response = mirror(ListOffsetsResponse, request, CODE, None)
    assert [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in response.topics
    ] == [("a", [(0, CODE), (3, CODE)]), ("b", [(1, CODE)])]


def test_names_that_differ_between_request_and_response():
    request = OffsetCommitRequest(
        topics=[OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(4)])]
    )
    (topic,) = mirror(OffsetCommitResponse, request, CODE, None).topics
    assert (topic.name, topic.partitions[0].partition_index) == ("t", 4)
    assert topic.partitions[0].error_code == CODE
    fetch = FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(2)])])
    (topic,) = mirror(FetchResponse, fetch, CODE, None).responses
    assert (topic.topic, topic.partitions[0].partition_index) == ("t", 2)


def test_an_error_that_has_no_place_ends_the_connection():
    with pytest.raises(CloseConnection, match=f"{CODE.name}: no luck"):
        refusal(route_of(LIST_OFFSETS), ListOffsetsRequest(), KafkaError(CODE, "no luck"))
