"""A group in a World, as it is and with a member that begins where it should not."""

from __future__ import annotations

import pytest

from barnabas.testing import Broker, World
from tests.history.model import ASSIGNED, COMMIT, OK, POLL, REVOKED
from tests.seeds import SEED
from tests.workload.drivers import wire_member
from tests.workload.settings import PARTITIONS, TOPICS, Kind
from tests.workload.simulated import Workload

KINDS = (Kind("sender", "wire"), *[Kind("member", "wire")] * 3)
POLLS = 300
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}
"""Assign as soon as a member joins or leaves, so that partitions move often."""


def history_of_a_group():
    with World(SEED), Broker(config=AT_ONCE, seed=SEED) as broker:
        for topic in TOPICS:
            broker.create_topic(topic, PARTITIONS)
        with Workload(broker.bootstrap_servers, SEED, 0.02, KINDS) as workload:
            workload.goes_on(POLLS)
            workload.end()
            return workload.judge()


def test_members_come_and_go_and_read_all():
    found = [each for each in history_of_a_group() if each.group == "members" or each.commits]
    reasons = {each.reason for each in found if each.moved}
    assert reasons == {ASSIGNED, REVOKED}
    members = {each.process for each in found if each.kind == POLL}
    assert len(members) == 3
    assert sum(each.kind == COMMIT and each.outcome == OK for each in found) > 10


def test_a_member_that_begins_before_the_committed_offset_is_found(monkeypatch):
    monkeypatch.setattr(wire_member, "committed_offset", lambda *_where: 0)
    with pytest.raises(AssertionError, match="read again"):
        history_of_a_group()
