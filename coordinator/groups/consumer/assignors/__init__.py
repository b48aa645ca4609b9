"""Assignment of partitions to members: the assignors that run in the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordinator.groups.consumer.assignors import ranges, uniform
from barnabas.coordinator.groups.consumer.assignors.specification import Assign

ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": uniform.assign, "range": ranges.assign}
"""Assignors by the names in ``group.consumer.assignors``, which clients request."""
