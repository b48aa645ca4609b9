"""Retention of transactional ids: by prefix, for some are used once and never again.

A job that writes in parallel takes an id for each task of each batch, thousands a day; kept for a
week like the others they would be most of the coordinator's memory.
"""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig


class IdExpiration:
    """The idle time after which each transactional id is forgotten."""

    def __init__(self, config: BrokerConfig) -> None:
        """Read the settings in force."""
        self._default_ms = config.transactional_id_expiration_ms
        pairs = (entry.rpartition(":") for entry in config.transactional_id_expiration_prefixes)
        # The longest first: it is the most specific.
        self._prefixes = sorted(
            ((prefix, int(time_ms)) for prefix, _, time_ms in pairs),
            key=lambda pair: len(pair[0]),
            reverse=True,
        )

    def idle_ms(self, transactional_id: str) -> int:
        """Maximum idle time of this id; a prefix never prolongs the general limit."""
        for prefix, time_ms in self._prefixes:
            if transactional_id.startswith(prefix):
                return min(time_ms, self._default_ms)
        return self._default_ms
