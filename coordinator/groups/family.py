"""Tables of deciders and appliers, by which a part of the group coordinator is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.coordinator.decision import Decision, Effect, Now, Record

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

NO_GROUP: Final = ""
"""Type of a group that does not exist."""
ANY_GROUP: Final = "*"
"""Stands for every type, and for none."""

Decider: TypeAlias = Callable[["GroupTable", Any, Now], Decision]
Applier: TypeAlias = Callable[["GroupTable", Record, int], None]
Changer: TypeAlias = Callable[["GroupTable", Any], None]
Starter: TypeAlias = Callable[["GroupTable", Now], Iterable[Effect]]


@dataclass(frozen=True, slots=True)
class Family:
    """Functions of a family of groups, by their purpose."""

    deciders: Mapping[tuple[type, str], Decider] = field(default_factory=dict)
    """Functions by type of command and type of the group (CLASSIC, CONSUMER, NO_GROUP or
    ANY_GROUP)."""
    appliers: Mapping[int, Applier] = field(default_factory=dict)
    """Functions that apply a record, by its key type; they get the record and its offset."""
    changers: Mapping[type, Changer] = field(default_factory=dict)
    """Functions that apply a change, by its type."""
    begin: Starter | None = None
    """Effects after a start: the timers of the members that the records contain."""
