"""Messages for the operator about a broker that stops by itself."""

from __future__ import annotations

from barnabas.broker.cluster.membership.membership import NodeIdTaken
from barnabas.broker.config.types import ConfigError
from barnabas.storage.errors import StoreUnusable


def words_of_end(error: BaseException) -> str:
    """Return the reason; it states whether written data is affected."""
    if isinstance(error, NodeIdTaken):
        return str(error)
    if isinstance(error, StoreUnusable):
        return f"the store of the cluster cannot be used any more: {error}"
    if isinstance(error, ConfigError):
        return f"settings that another broker has committed cannot be used here: {error}"
    return f"what was written is not safe: {error!r}"
