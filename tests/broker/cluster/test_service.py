"""Reactions of a broker when others join, leave, or restart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster.start.leading import Service

OWN = 1


class Others:
    """Other brokers in the view of one broker, with the calls that their changes cause."""

    def __init__(self) -> None:
        self.sessions: dict[int, int | None] = {OWN: 10, 2: 20, 3: 30}
        self.forgotten: list[int] = []
        self.events: list[str] = []
        self.changes = 0
        nothing: Any = SimpleNamespace(
            follow_view=lambda: None,
            release_next=lambda: None,
            follow_next=lambda: None,
            stop=lambda: None,
        )
        view: Any = self
        peers: Any = SimpleNamespace(forget=self.forgotten.append)
        self.service = Service(
            view,
            peers,
            nothing,
            nothing,
            nothing,
            lambda kind, words: self.events.append(f"{kind}: {words}"),
            self._count_change,
            self.sessions.get,
        )

    def _count_change(self) -> None:
        self.changes += 1

    @property
    def node_id(self) -> int:
        return OWN

    @property
    def nodes(self) -> list[Any]:
        return [SimpleNamespace(node_id=node_id) for node_id in self.sessions]


@pytest.fixture
def others() -> Others:
    return Others()


def test_restarted_broker_gets_new_connections(others):
    """The previous process of a broker may have ended without closing its connections."""
    others.service.changed()
    assert others.forgotten == []
    others.sessions[3] = 31
    others.service.changed()
    others.service.changed()
    assert others.forgotten == [3]
    assert others.events == [], "it was never out of service"
    assert others.changes == 2, "this broker came, another one came again"


def test_leaving_and_joining_brokers_are_events(others):
    del others.sessions[2]
    others.service.changed()
    others.sessions |= {2: 21, 4: 40}
    others.service.changed()
    assert others.forgotten == [2]
    assert others.changes == 3
    assert others.events == [
        "broker_gone: node 2 is out of service",
        "broker_came: node 2 is in service",
        "broker_came: node 4 is in service",
    ]


def test_nothing_is_followed_once_the_broker_ends(others):
    others.service.stop()
    others.sessions[3] = 31
    others.service.changed()
    assert others.forgotten == []
