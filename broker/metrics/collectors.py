"""Which collectors a broker has from the start. Others register beside these.

Each looks at what the broker keeps anyway; before storage is open there is nothing to look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metrics.process import process_families

if TYPE_CHECKING:
    from broker.server import BrokerServer


def register_collectors(server: BrokerServer) -> None:
    """Register everything that this package counts of ``server``."""
    server.metrics.register(process_families)
