"""Reads from a broker with an uncertain lease."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.testing import Broker
from tests.broker.data_plane import Named, Wire, batch
from tests.worlds import world

__all__ = ["world"]

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def lease(monkeypatch):
    """Whether it is valid."""
    state = {"is_valid": True}

    class LeasedCatalogue(Catalogue):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named | {"may_serve": lambda: state["is_valid"]})

    monkeypatch.setattr("barnabas.broker.server.Catalogue", LeasedCatalogue)
    return state


def end_of_epoch(wire):
    topic = OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, 1)])
    response = wire.ask(OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest(-1, [topic]), 4)
    return response.topics[0].partitions[0].error_code


@pytest.mark.parametrize("is_restarted", [False, True])
def test_nothing_is_read_without_a_lease(lease, is_restarted):
    with Broker() as broker:
        broker.create_topic("t")
        if is_restarted:
            broker.restart()
        topic = Named("t", broker.server.catalogue.topic("t").topic_id)
        with Wire(broker.address) as wire:
            assert wire.produce(topic, batch(b"a")).error_code == 0
            assert wire.read(topic) == [b"a"]
            lease["is_valid"] = False
            assert wire.fetch_one(topic, 0).error_code == NOT_LEADER
            assert wire.list_offset("t", -1)[0] == NOT_LEADER
            assert end_of_epoch(wire) == NOT_LEADER
            assert wire.produce(topic, batch(b"b")).error_code == 0, "the store decides of writes"
            lease["is_valid"] = True
            assert wire.read(topic) == [b"a", b"b"]
            assert end_of_epoch(wire) == ErrorCode.NONE
