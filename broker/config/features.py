"""The features of Kafka (KIP-584): what this release supports of each, and which level is in force.

Rules of this file:

* All brokers of a cluster have the same levels. The MetaStore keeps them as the dynamic settings of
  an entity named "features", so all brokers follow a change as they follow other settings.
* A cluster stores all levels when its first broker starts. A higher level of a later release is in
  force only after an operator sets it, as in Apache Kafka. A standalone broker stores no level
  until one is changed; then it stores all of them.
* A broker that does not support a level in force does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.storage.errors import StoreUnusable

Ranges: TypeAlias = Mapping[str, tuple[int, int]]
"""The lowest and the highest level of each feature that a broker supports."""

FEATURES_ENTITY: Final = "features"
"""Kind of the entity in the MetaStore whose settings are the levels."""
_EPOCH: Final = "epoch"

METADATA_VERSION: Final = "metadata.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
CONFIGURED_VERSION: Final = "barnabas.transaction.version"
"""The setting with its level while none is kept."""

FEATURES: Final[Ranges] = {
    METADATA_VERSION: (7, 30),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}
"""Feature levels that this release supports.

``metadata.version``: Kafka 3.3 to 4.3; tools derive the broker's release from the level.
``group.version`` 1: groups of the consumer protocol (KIP-848) exist; clients and tools use it to
decide. ``transaction.version`` 2: the transactions of KIP-890.
"""

_DISABLED: Final = (0, 0)


class FeatureLevels(NamedTuple):
    """The levels in force."""

    epoch: int
    """Number of the newest change, or 0 if no level is stored."""
    levels: Mapping[str, int]
    """Level by feature; a missing feature has level 0."""


def levels_of(stored: Mapping[str, str], transaction_version: int) -> FeatureLevels:
    """Return the stored feature levels, or the defaults if none is stored.

    Defaults are the highest levels, with the configured ``transaction_version``.
    """
    if stored:
        levels = {name: int(level) for name, level in stored.items() if name != _EPOCH}
        return FeatureLevels(int(stored[_EPOCH]), levels)
    highest = {name: high for name, (_, high) in FEATURES.items()}
    return FeatureLevels(0, {**highest, TRANSACTION_VERSION: transaction_version})


def stored_form(features: FeatureLevels) -> dict[str, str]:
    """Return the stored form of feature levels."""
    levels = {
        name: str(level) for name, level in features.levels.items() if level or name in FEATURES
    }
    # The epoch comes last: no feature has its name, but a client can send any name.
    return {**levels, _EPOCH: str(features.epoch)}


def unsupported_reason(feature: str, level: int, broker: str, ranges: Ranges) -> str | None:
    """Return the reason that a broker cannot take part at a level, or None if it can.

    The text is that of Apache Kafka.
    """
    low, high = ranges.get(feature, _DISABLED)
    if low <= level <= high:
        return None
    if high == 0:
        return f"{broker} does not support this feature."
    return f"{broker} only supports versions {low if low == high else f'{low}-{high}'}"


def check_supported(stored: Mapping[str, str]) -> None:
    """Raise StoreUnusable if this release does not support the stored levels."""
    for feature, level in levels_of(stored, 0).levels.items() if stored else ():
        if unsupported_reason(feature, level, "", FEATURES) is not None:
            low, high = FEATURES.get(feature, _DISABLED)
            raise StoreUnusable(
                f"version {level} of {feature} is finalized, and this release supports only"
                f" {low} to {high}"
            )
