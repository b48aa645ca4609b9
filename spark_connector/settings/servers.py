"""Brokers of a pipeline whose source, sink or caller names none."""

from __future__ import annotations

import os
from typing import Final

DEFAULT_SERVERS_VARIABLE: Final = "BARNABAS_SERVERS"


def servers_or_default(servers: str | None) -> str:
    """Return the given addresses, else those of `--servers`, else the broker of this machine."""
    return servers or os.environ.get(DEFAULT_SERVERS_VARIABLE) or "localhost:9092"
