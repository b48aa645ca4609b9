"""A member by wire gives up its partitions before another member can be assigned them."""

from __future__ import annotations

import pytest

from barnabas.testing import Broker, World
from tests.history import checker
from tests.history.model import ASSIGNED, REVOKED
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.drivers.wire_member import LEAVE, Member
from tests.workload.journal import Journal, in_order
from tests.workload.progress import Progress
from tests.workload.settings import LEFT, PARTITIONS, Kind, Settings


class Recorded:
    """A member of a group with its journal."""

    def __init__(self, name: str, servers: str) -> None:
        self.events = []
        settings = Settings.of(
            Kind("member", "wire"), name, servers, SEED, topics=(LEFT,), group="members"
        )
        self.member = Member(settings, Progress(settings, Journal(self.events.append, name)))

    @property
    def assigned(self) -> list[str]:
        """Reasons of the changes of its partitions, in order."""
        return [each.reason for each in in_order([self.events]) if each.moved]

    def poll_until_assigned(self) -> None:
        """Join the group, and stay until partitions are assigned."""

        def is_assigned() -> bool:
            self.member.poll()
            return ASSIGNED in self.assigned

        wait_until(is_assigned)


@pytest.fixture
def servers():
    with World(SEED), Broker(seed=SEED) as broker:
        broker.create_topic(LEFT, PARTITIONS)
        yield broker.bootstrap_servers


def test_next_owner_is_assigned_before_the_response_to_a_leave_arrives(servers, monkeypatch):
    leaving, staying = Recorded("leaving", servers), Recorded("staying", servers)
    leaving.poll_until_assigned()
    ask = leaving.member.routing.ask

    def ask_with_late_response(place, api, request, version):
        response = ask(place, api, request, version)
        if getattr(request, "member_epoch", None) == LEAVE:
            staying.poll_until_assigned()
        return response

    monkeypatch.setattr(leaving.member.routing, "ask", ask_with_late_response)
    leaving.member.close()
    staying.member.close()
    assert leaving.assigned == staying.assigned == [ASSIGNED, REVOKED]
    history = in_order([leaving.events, staying.events])
    assert checker.check(history).anomalies == set()
