"""Classic groups: the members agree on a generation, their leader assigns."""

from __future__ import annotations

from typing import Final

from coordinator.groups.family import Family

CLASSIC_GROUPS: Final = Family()
