"""Requests that a broker of a cluster refuses while its lease is not valid, by every way to it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.serving.lease_gate import gate
from barnabas.protocol.errors import ErrorCode, KafkaError

HANDLED = "handled"


class Shortcut:
    """Answers everything at once."""

    def __init__(self, _context):
        self.learn = None

    def take(self, _frames):
        return HANDLED


@pytest.fixture
def lease():
    return SimpleNamespace(is_valid=True)


def route_of(name, lease):
    """Return a route of every kind of handler behind the gate."""
    route = SimpleNamespace(
        name=name,
        handler=lambda _context, _request: HANDLED,
        shortcut=Shortcut,
    )
    gate([route], lambda: lease.is_valid, lambda _context, _request: None)
    return route


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("DeleteRecords", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("OffsetCommit", ErrorCode.NOT_COORDINATOR),
        ("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_request_without_a_lease_is_refused(lease, name, code):
    handle = route_of(name, lease).handler
    assert handle(None, None) == HANDLED
    lease.is_valid = False
    with pytest.raises(KafkaError) as refused:
        handle(None, None)
    assert refused.value.code == code


def test_shortcut_without_a_lease_leaves_all_to_the_handler(lease):
    shortcut = route_of("Produce", lease).shortcut(None)
    assert shortcut.take(None) == HANDLED
    lease.is_valid = False
    assert shortcut.take(None) is None


def test_request_that_needs_no_lease_is_handled_without_one(lease):
    lease.is_valid = False
    route = route_of("Metadata", lease)
    assert route.handler(None, None) == HANDLED
    assert route.shortcut is Shortcut
