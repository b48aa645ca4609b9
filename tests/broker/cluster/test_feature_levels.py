"""Levels of features are those of the cluster, whatever its brokers are configured with or know."""

from __future__ import annotations

import contextlib
from uuid import uuid4

import pytest

from barnabas.broker.cluster.endpoints import Place, encode_place
from barnabas.broker.config.features import FEATURES, FEATURES_ENTITY
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from barnabas.storage.errors import StoreUnusable
from barnabas.storage.memory_base import MemoryStore
from tests.broker.cluster.members import CLUSTER_ID, MemberBroker
from tests.broker.data_plane import Wire
from tests.waiting import wait_until

LEASE_MS = 60_000
OLDER = 77
"""The node id of a broker of another release."""
TRANSACTIONS = "transaction.version"
LEVEL_1 = {"barnabas.transaction.version": "1"}
LATER = {"epoch": "2", "metadata.version": "30", "group.version": "1", TRANSACTIONS: "3"}
UNKNOWN = (
    "this release does not support version 3 of transaction.version, which is finalized: it "
    "supports 0 to 2"
)


@pytest.fixture
def store():
    with contextlib.closing(MemoryStore(CLUSTER_ID)) as found:
        yield found


def finalized(broker):
    with Wire(broker.address) as wire:
        response = wire.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 4)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return response.finalized_features_epoch, levels[TRANSACTIONS]


def upgraded(broker):
    with Wire(broker.address) as wire:
        request = UpdateFeaturesRequest(60_000, [FeatureUpdateKey(TRANSACTIONS, 2)])
        response = wire.ask(UPDATE_FEATURES, request, 2)
    return response.error_code, response.error_message


def set_by_a_later_release(store):
    with contextlib.closing(store.base()) as base:
        base.metastore(99).set_broker_configs(FEATURES_ENTITY, LATER)


def test_the_first_broker_says_what_is_in_force_and_an_update_reaches_all(store):
    with MemberBroker(store, **LEVEL_1) as first, MemberBroker(store) as second:
        brokers = (first, second)
        assert [finalized(each) for each in brokers] == [(1, 1)] * 2
        assert upgraded(second) == (ErrorCode.NONE, None)
        wait_until(lambda: [finalized(each) for each in brokers] == [(2, 2)] * 2)
        first.restart()
        assert finalized(first) == (2, 2), "whatever it is configured with"


def test_an_update_waits_for_the_last_broker_that_does_not_support_it(store):
    with MemberBroker(store, **LEVEL_1) as broker:
        features = {**FEATURES, TRANSACTIONS: (0, 1)}
        place = encode_place(Place(None, {"PLAINTEXT": ("older", 9092)}, features=features))
        session = store.index.register(uuid4(), OLDER, place, LEASE_MS)

        def nodes():
            return {each.node_id for each in broker.server.view.nodes}

        wait_until(lambda: OLDER in broker.call(nodes))
        code, message = upgraded(broker)
        assert code == ErrorCode.INVALID_UPDATE_VERSION
        assert message.endswith(f"Broker {OLDER} only supports versions 0-1")
        assert finalized(broker) == (1, 1)
        store.index.fence(session)
        wait_until(lambda: OLDER not in broker.call(nodes))
        assert upgraded(broker) == (ErrorCode.NONE, None)
        assert finalized(broker) == (2, 2)


def test_who_does_not_support_what_is_in_force_does_not_join(store):
    set_by_a_later_release(store)
    held = store.index.register(uuid4(), 5, "", LEASE_MS)
    with pytest.raises(StoreUnusable) as refused, MemberBroker(store, **{"node.id": "5"}):
        pass
    assert str(refused.value) == UNKNOWN
    assert [each.session for each in store.index.picture(0).members] == [held]


def test_who_hears_of_a_level_that_it_does_not_support_ends(store, caplog):
    with MemberBroker(store) as broker:
        set_by_a_later_release(store)
        wait_until(lambda: broker.server.failure is not None)
        assert isinstance(broker.server.failure, StoreUnusable)
        (said,) = (each for each in caplog.messages if each.startswith("broker stops: "))
        assert said.endswith(UNKNOWN)
        broker.crash()
