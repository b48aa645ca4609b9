"""The first broker of a cluster says which levels of features are in force."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.config.features import FEATURES_ENTITY, FeatureLevels, levels_of, stored_form
from barnabas.storage.metastore.interface import Outdated

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore


def with_levels(metastore: MetaStore, image: MetadataImage, config: BrokerConfig) -> MetadataImage:
    """Return an image with feature levels; store those of this broker if there are none.

    On a thread. Raises MetaStoreError.
    """
    _, levels = levels_of({}, config.transaction_version)
    first = stored_form(FeatureLevels(1, levels))
    while FEATURES_ENTITY not in image.broker_configs:
        with contextlib.suppress(Outdated):
            keep = partial(metastore.set_broker_configs, FEATURES_ENTITY, first)
            metastore.based_on(image.version, keep)
        image = metastore.load()
    return image
