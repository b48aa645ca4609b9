"""Feature levels belong to the cluster, regardless of its brokers' configuration and release."""

from __future__ import annotations

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
from tests.broker.data_plane import Wire
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until

LEASE_MS = 60_000
OLDER = 77
"""The node id of a broker of another release."""
TRANSACTIONS = "transaction.version"
LEVEL_1 = {"barnabas.transaction.version": "1"}
LATER = {"epoch": "2", "metadata.version": "30", "group.version": "1", TRANSACTIONS: "3"}
UNKNOWN = "version 3 of transaction.version is finalized, and this release supports only 0 to 2"


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


def set_by_a_later_release(cluster):
    cluster._base.metastore(99).set_broker_configs(FEATURES_ENTITY, LATER)


def test_the_first_broker_says_what_is_in_force_and_an_update_reaches_all():
    with WatchedCluster(1, config=LEVEL_1) as cluster:
        cluster.add({})
        assert [finalized(each) for each in cluster.brokers] == [(1, 1)] * 2
        assert upgraded(cluster.brokers[1]) == (ErrorCode.NONE, None)
        wait_until(lambda: [finalized(each) for each in cluster.brokers] == [(2, 2)] * 2)
        cluster.restart(0)
        assert finalized(cluster.brokers[0]) == (2, 2), "whatever it is configured with"


def test_an_update_waits_for_the_last_broker_that_does_not_support_it():
    with WatchedCluster(1, config=LEVEL_1) as cluster:
        (broker,) = cluster.brokers
        features = {**FEATURES, TRANSACTIONS: (0, 1)}
        place = encode_place(Place(None, {"PLAINTEXT": ("older", 9092)}, features=features))
        session = cluster.index.register(uuid4(), OLDER, place, LEASE_MS)

        def nodes():
            return cluster.on(0, lambda server: {each.node_id for each in server.view.nodes})

        wait_until(lambda: OLDER in nodes())
        code, message = upgraded(broker)
        assert code == ErrorCode.INVALID_UPDATE_VERSION
        assert message.endswith(f"Broker {OLDER} only supports versions 0-1")
        assert finalized(broker) == (1, 1)
        cluster.index.fence(session)
        wait_until(lambda: OLDER not in nodes())
        assert upgraded(broker) == (ErrorCode.NONE, None)
        assert finalized(broker) == (2, 2)


def test_broker_without_support_for_feature_level_does_not_join():
    with WatchedCluster(0) as cluster:
        set_by_a_later_release(cluster)
        held = cluster.index.register(uuid4(), 0, "", LEASE_MS)
        with pytest.raises(StoreUnusable) as refused:
            cluster.add()
        assert str(refused.value) == UNKNOWN
        assert [each.session for each in cluster.index.snapshot(0).members] == [held]


def test_broker_stops_at_unsupported_feature_level(caplog):
    with WatchedCluster(1) as cluster:
        set_by_a_later_release(cluster)
        (broker,) = cluster.brokers
        wait_until(lambda: broker.failure is not None)
        assert isinstance(broker.failure, StoreUnusable)
        (said,) = (each for each in caplog.messages if each.startswith("broker stops: "))
        assert said.endswith(UNKNOWN)
        cluster.kill(0)
