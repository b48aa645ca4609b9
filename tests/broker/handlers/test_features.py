"""UpdateFeatures: levels for all brokers, as far as all of them support them."""

from __future__ import annotations

import pytest

from barnabas.broker.config.features import FEATURES, FEATURES_ENTITY
from barnabas.broker.config.types import ConfigSource
from barnabas.broker.metadata.resources import ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from barnabas.testing import Broker, Cluster
from tests.broker.data_plane import Wire

NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION
UPGRADE, SAFE, UNSAFE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "
TRANSACTIONS = "transaction.version"
NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)


@pytest.fixture
def broker():
    with Broker() as found:
        yield found


def update(wire, *updates, version=2, validate_only=False):
    """Request updates of (feature, level, kind); return the error, its message and each result."""
    asked = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(60_000, asked, validate_only)
    response = wire.ask(UPDATE_FEATURES, request, version)
    results = {each.feature: each.error_code for each in response.results}
    return response.error_code, response.error_message, results


def finalized(wire):
    response = wire.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), 4)
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    return response.finalized_features_epoch, levels


def test_levels_are_changed_and_kept(broker, wire):
    before, levels = finalized(wire)
    assert update(wire, (TRANSACTIONS, 1, SAFE), ("metadata.version", 25, SAFE)) == (NONE, None, {})
    epoch, found = finalized(wire)
    assert epoch > before, "clients keep what they know otherwise"
    assert found == levels | {TRANSACTIONS: 1, "metadata.version": 25}
    assert broker.call(lambda: broker.server.config.transaction_version) == 1
    broker.restart()
    with Wire(broker.address) as again:
        assert finalized(again) == (epoch, found)
        assert update(again, (TRANSACTIONS, 2, UPGRADE), version=1) == (
            NONE,
            None,
            {TRANSACTIONS: NONE},
        )
        assert finalized(again) == (epoch + 1, found | {TRANSACTIONS: 2})
        assert update(again, (TRANSACTIONS, 2, UPGRADE))[0] == NONE
        assert finalized(again)[0] == epoch + 1, "it was so already"


def test_the_setting_says_where_the_level_in_force_comes_from(broker, wire):
    def described():
        resource = DescribeConfigsResource(
            ResourceType.BROKER, "1", ["barnabas.transaction.version"]
        )
        request = DescribeConfigsRequest([resource], include_synonyms=True)
        ((found,),) = [each.configs for each in wire.ask(DESCRIBE_CONFIGS, request, 4).results]
        synonyms = [(each.value, each.source) for each in found.synonyms]
        return (found.value, found.config_source, found.read_only), synonyms

    default = ("2", ConfigSource.DEFAULT)
    assert described() == ((*default, True), [default])
    for level in (1, 2):
        assert update(wire, (TRANSACTIONS, level, SAFE if level == 1 else UPGRADE))[0] == NONE
        kept = (str(level), ConfigSource.DYNAMIC_DEFAULT_BROKER)
        assert described() == ((*kept, True), [kept, default])


def test_no_name_of_a_feature_sets_the_epoch_back_or_is_kept(broker, wire):
    assert update(wire, (TRANSACTIONS, 1, SAFE))[0] == NONE
    before, levels = finalized(wire)
    # As in Apache Kafka, any feature has level 0.
    assert update(wire, ("epoch", 0, UNSAFE), ("nobody.knows", 0, UNSAFE))[0] == NONE
    assert finalized(wire)[0] >= before
    assert finalized(wire)[1] == levels
    stored = broker.call(lambda: broker.server.catalogue.configs.broker_overrides[FEATURES_ENTITY])
    assert stored.keys() == {*FEATURES, "epoch"}


def test_only_asked(wire):
    before = finalized(wire)
    assert update(wire, (TRANSACTIONS, 1, SAFE), validate_only=True) == (NONE, None, {})
    code, message, _ = update(wire, (TRANSACTIONS, 3, UPGRADE), validate_only=True)
    assert (code, message.startswith(FAILED)) == (INVALID, True)
    assert finalized(wire) == before


@pytest.mark.parametrize(
    ("update_of", "message"),
    [
        ((TRANSACTIONS, 3, UPGRADE), "Local controller 1 only supports versions 0-2"),
        ((TRANSACTIONS, -1, UPGRADE), "A feature version cannot be less than 0."),
        ((TRANSACTIONS, 1, UPGRADE), NO_DOWNGRADE),
        ((TRANSACTIONS, 1, 0), "The controller does not support the given upgrade type."),
        (("metadata.version", 6, SAFE), "Local controller 1 only supports versions 7-30"),
        (("share.version", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("group.version", 0, SAFE), "There are always groups of the consumer protocol."),
    ],
)
def test_invalid_update_rejects_the_whole_request(wire, update_of, message):
    before = finalized(wire)
    words = f"{FAILED}Invalid update version {update_of[1]} for feature {update_of[0]}. {message}"
    other = ("metadata.version", 29, SAFE)
    assert update(wire, other, update_of) == (INVALID, words, {})
    assert finalized(wire) == before


def test_a_downgrade_to_a_newer_version(wire):
    assert update(wire, (TRANSACTIONS, 1, SAFE))[0] == NONE
    code, message, _ = update(wire, (TRANSACTIONS, 2, SAFE))
    assert (code, message.endswith("Can't downgrade to a newer version.")) == (INVALID, True)


def test_the_first_version_only_upgrades(wire):
    for allowed in (False, True):
        asked = [FeatureUpdateKey(TRANSACTIONS, 1, allowed)]
        response = wire.ask(UPDATE_FEATURES, UpdateFeaturesRequest(60_000, asked), 0)
        assert (response.error_code, response.results) == (INVALID, [])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({TRANSACTIONS: (0, 1)}, "Broker 1 only supports versions 0-1"),
        ({TRANSACTIONS: (1, 1)}, "Broker 1 only supports versions 1"),
        ({}, "Broker 1 does not support this feature."),
    ],
)
def test_a_level_that_another_broker_does_not_support(world, features, message, monkeypatch):
    config = {"barnabas.transaction.version": "1"}
    with Cluster(brokers=2, config=config) as cluster, Wire(cluster.brokers[0].address) as wire:
        view = cluster.brokers[0].server.view
        first, second = view.nodes
        with monkeypatch.context() as patch:
            older = second._replace(features=features)
            patch.setattr(view, "nodes", [first, older])
            code, said, _ = update(wire, (TRANSACTIONS, 2, UPGRADE))
        assert code == INVALID
        assert said.endswith(f"Invalid update version 2 for feature {TRANSACTIONS}. {message}")
        assert finalized(wire)[1][TRANSACTIONS] == 1
        assert update(wire, (TRANSACTIONS, 2, UPGRADE))[0] == NONE
        assert finalized(wire)[1][TRANSACTIONS] == 2
