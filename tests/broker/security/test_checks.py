"""The table of checks: every API has a row, and a whole request is checked before its handler."""

import pytest

from barnabas.broker import handlers
from barnabas.broker.api.checks import CHECKS, Denial, guarded
from barnabas.broker.api.dispatch import ROUTES, RequestContext, Routes
from barnabas.broker.security.acls.access import Access, Generation
from barnabas.broker.security.acls.operations import (
    ASKED_BESIDES,
    CLUSTER_NAME,
    SUPPORTED,
)
from barnabas.protocol.api import Api
from barnabas.protocol.errors import KafkaError
from tests.broker.sample_requests import SAMPLES

assert handlers


class Deny:
    """Denies one operation on one type of resource, and records the checks."""

    def __init__(self, *denied):
        self.denied = denied
        self.asked = []

    def may(self, principal, host, operation, resource_type, name, *, quiet):
        self.asked.append((operation, resource_type, name))
        return (operation, resource_type) not in self.denied

    def may_some(self, principal, host, operation, resource_type):
        return True


def test_every_api_that_is_served_has_a_row_and_every_row_is_served():
    assert {route.name for route in ROUTES} == set(CHECKS)


def test_a_route_without_a_row_cannot_be_registered():
    with pytest.raises(AssertionError, match="has no row in the table of checks"):
        Routes(checks={}).add(next(iter(ROUTES)))


@pytest.mark.parametrize("name", CHECKS)
def test_rows_name_operations_that_their_resources_know(name):
    for check in CHECKS[name]:
        for operation, kind in ((check.operation, check.resource_type), *check.or_else):
            assert operation in SUPPORTED[kind] or (operation, kind) in ASKED_BESIDES


WHOLE = [
    (name, number)
    for name, checks in CHECKS.items()
    for number, check in enumerate(checks)
    if check.denial is Denial.REQUEST
]


@pytest.mark.parametrize(("name", "number"), WHOLE)
def test_a_request_is_refused_before_its_handler(name, number):
    check = CHECKS[name][number]
    route = next(route for route in ROUTES if route.name == name)
    judge = Deny((check.operation, check.resource_type), *check.or_else)
    handled = []
    handler = guarded(CHECKS[name], lambda _context, request: handled.append(request))
    request = SAMPLES[name]("t", bytes(16), "u", bytes(16))
    version = max(check.versions[0], route.min_version)
    api: Api = route.api
    access = Access("User:alice", "10.0.0.1", judge, Generation())
    context = RequestContext(None, api.key, version, "client", access)
    with pytest.raises(KafkaError) as caught:
        handler(context, request)
    assert caught.value.code == check.code
    assert not handled
    name_asked = getattr(request, check.name) if check.name else CLUSTER_NAME
    assert (check.operation, check.resource_type, name_asked) in judge.asked
    judge.denied = ()
    handler(context, request)
    assert handled == [request]


def test_an_alternative_is_as_good():
    check = CHECKS["WriteTxnMarkers"][0]
    judge = Deny((check.operation, check.resource_type))
    access = Access("User:alice", "10.0.0.1", judge, Generation())
    handler = guarded(CHECKS["WriteTxnMarkers"], lambda _context, _request: "handled")
    context = RequestContext(None, 27, 1, "client", access)
    assert handler(context, SAMPLES["WriteTxnMarkers"]("t", bytes(16), "u", bytes(16))) == "handled"
