"""UpdateFeatures 0-2: levels of features, changed for all brokers at once.

Version notes: v1 has kinds of updates, and validation without a change; v2 has no results for
single features. The permission to downgrade of v0 is ignored, as in Kafka: it only upgrades.
Rules and words are Apache Kafka's: all updates of a request or none, and no level that a broker in
service does not support.
Knowingly absent: ``group.version`` below 1, by which Kafka turns off groups of the consumer
protocol; and Kafka's refusals of lower levels of ``metadata.version``, which change nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.config.features import FEATURES, GROUP_VERSION, Ranges, unsupported_reason
from barnabas.broker.metadata.configs import DynamicConfigs
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

RESULTS_UNTIL: Final = 1
"""The last version that answers for single features."""
LOWEST_GROUP_VERSION: Final = 1


class Kind(IntEnum):
    """Kind of an update."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def refuse_update_features(
    _request: UpdateFeaturesRequest, code: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    """Return a response with one error and none for single features."""
    return UpdateFeaturesResponse(error_code=code, error_message=message)


@serves(UPDATE_FEATURES, versions=(0, 2), refuse=refuse_update_features)
async def update_features(
    configs: DynamicConfigs,
    brokers: Brokers,
    context: RequestContext,
    request: UpdateFeaturesRequest,
) -> UpdateFeaturesResponse:
    """Set levels that all brokers in service support."""
    updates = {each.feature: each for each in request.feature_updates}

    def change(levels: Mapping[str, int]) -> Mapping[str, int]:
        supported = dict(_supported(brokers))
        for each in updates.values():
            _check(each, levels.get(each.feature, 0), supported)
        return {**levels, **{name: each.max_version_level for name, each in updates.items()}}

    try:
        if request.validate_only:
            change(configs.features.levels)
        else:
            until_s = configs.changes.time_in(request.timeout_ms)
            await configs.alter_features(change, until_s)
    except KafkaError as error:
        message = error.message
        if error.code == ErrorCode.INVALID_UPDATE_VERSION:
            message = (
                "The update failed for all features since the following feature had an error: "
                f"{message}"
            )
        return UpdateFeaturesResponse(error_code=error.code, error_message=message)
    response = UpdateFeaturesResponse(error_message=None)
    if context.api_version <= RESULTS_UNTIL:
        response.results = [
            UpdatableFeatureResult(name, ErrorCode.NONE, "NONE") for name in updates
        ]
    return response


def _supported(brokers: Brokers) -> Iterator[tuple[str, Ranges]]:
    """Yield each broker's supported features with the broker's name in messages; this one first."""
    node_id = brokers.view.node_id
    yield f"Local controller {node_id}", FEATURES
    for node in brokers.view.nodes:
        yield f"Broker {node.node_id}", FEATURES if node.node_id == node_id else node.features


def _check(update: FeatureUpdateKey, present: int, supported: Mapping[str, Ranges]) -> None:
    """Raise KafkaError unless a feature may have another level than the present one."""
    problem = _problem(update, present, supported)
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {update.max_version_level} for feature {update.feature}. "
            f"{problem}",
        )


def _problem(update: FeatureUpdateKey, present: int, supported: Mapping[str, Ranges]) -> str | None:
    kind, level = update.upgrade_type, update.max_version_level
    if kind not in set(Kind):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    for who, ranges in supported.items():
        problem = unsupported_reason(update.feature, level, who, ranges)
        if problem is not None:
            return problem
    if level < present and kind == Kind.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > present and kind != Kind.UPGRADE:
        return "Can't downgrade to a newer version."
    if update.feature == GROUP_VERSION and level < LOWEST_GROUP_VERSION:
        return "There are always groups of the consumer protocol."
    return None
