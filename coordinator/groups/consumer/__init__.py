"""Consumer groups (KIP-848): the coordinator assigns, member by member."""

from __future__ import annotations

from typing import Final

from coordinator.groups.family import Family

CONSUMER_GROUPS: Final = Family()
