"""The groups of one partition of ``__consumer_offsets``: which code decides what.

One shard is one state machine: its state is what the records of its partition say, plus what is
volatile. This module only finds the function that decides a command or applies a record.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordinator.decision import Decision, Effect, Now, Record
from barnabas.coordinator.groups.classic import CLASSIC_GROUPS
from barnabas.coordinator.groups.commands import Command
from barnabas.coordinator.groups.consumer import CONSUMER_GROUPS
from barnabas.coordinator.groups.family import (
    ANY_GROUP,
    NO_GROUP,
    Applier,
    Changer,
    Decider,
    Family,
)
from barnabas.coordinator.groups.group_table import GroupTable
from barnabas.coordinator.groups.offset_removal import OFFSET_REMOVAL
from barnabas.coordinator.groups.offsets import OFFSETS

FAMILIES: Final = (OFFSETS, OFFSET_REMOVAL, CLASSIC_GROUPS, CONSUMER_GROUPS)


class GroupShard(GroupTable):
    """A partition's groups and offsets, with the functions that decide, apply and change."""

    def decide(self, command: Command, now: Now) -> Decision:
        """Return the decision on a command; changes nothing."""
        group = self.groups.get(command.group_id)
        kind = type(command)
        decider = _DECIDERS.get((kind, NO_GROUP if group is None else group.type_name))
        return (decider or _DECIDERS[kind, ANY_GROUP])(self, command, now)

    def apply(self, record: Record, offset: int) -> None:
        """Apply a record that was appended at ``offset`` of the partition.

        A log that was written by Apache Kafka may have records of share and streams groups: they
        are ignored.
        """
        applier = _APPLIERS.get(record.kind.key_type)
        if applier is not None:
            applier(self, record, offset)

    def change(self, change: object) -> None:
        """Apply a change that is not stored."""
        _CHANGERS[type(change)](self, change)

    def set_aside(self, _record_key: bytes) -> bool:
        """Refuse to continue without an unreadable record: it may be any part of a group."""
        return False

    def forget(self) -> None:
        """Skip the removal of references: no other object refers to the groups of a shard."""

    def begin(self, now: Now) -> tuple[Effect, ...]:
        """Return the effects after a start: the timers of the members that the records contain."""
        return tuple(
            effect
            for family in FAMILIES
            if family.begin is not None
            for effect in family.begin(self, now)
        )


def _merged(
    families: tuple[Family, ...],
) -> tuple[dict[tuple[type, str], Decider], dict[int, Applier], dict[type, Changer]]:
    """Merge the functions of all families into one table; two for one key are an error."""
    deciders: dict[tuple[type, str], Decider] = {}
    appliers: dict[int, Applier] = {}
    changers: dict[type, Changer] = {}
    for family in families:
        assert not deciders.keys() & family.deciders.keys()
        assert not appliers.keys() & family.appliers.keys()
        assert not changers.keys() & family.changers.keys()
        deciders.update(family.deciders)
        appliers.update(family.appliers)
        changers.update(family.changers)
    return deciders, appliers, changers


_DECIDERS, _APPLIERS, _CHANGERS = _merged(FAMILIES)
