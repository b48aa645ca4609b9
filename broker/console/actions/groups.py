"""Groups: their next offsets, their committed offsets, and their deletion."""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.broker.admin import groups
from barnabas.broker.admin.exchange import (
    Partition,
    TopicPartition,
    check_partition,
    partition_text,
)
from barnabas.broker.admin.offsets import Offsets, moved_by, offsets_of
from barnabas.broker.admin.positions import BadPosition, Position
from barnabas.broker.console.actions.command import Command, Conflict, invalid
from barnabas.broker.console.actions.effect import Change, Plan
from barnabas.broker.console.pages.groups import machine_of
from barnabas.protocol.errors import ErrorCode, KafkaError

CHANGES_SHOWN: Final = 1000


class _Reset(NamedTuple):
    """Offsets before and after."""

    old: Offsets
    new: Offsets


# ---------------------------------------------------------------------------------- reset-offsets


async def plan_reset_offsets(command: Command) -> Plan:
    """Return old and new offsets, and the records skipped or read again."""
    reset = await _work_out(command)
    skipped = again = 0
    changes = []
    for (topic, index), offset in sorted(reset.new.items()):
        before = reset.old.get((topic, index))
        step = 0 if before is None else offset - before
        skipped += max(step, 0)
        again += max(-step, 0)
        note = f"{step} skipped" if step > 0 else f"{-step} read again" if step else None
        shown = None if before is None else str(before)
        changes.append(Change(f"{topic}-{index}", shown, str(offset), note))
    figures = {"partitions": len(changes), "offsets_skipped": skipped, "offsets_read_again": again}
    basis = tuple(sorted(reset.old.items()))
    words = f"reset the committed offsets of {command.names['group']}"
    return Plan(words, figures, tuple(changes[:CHANGES_SHOWN]), basis, reset)


async def reset_offsets(command: Command, plan: Plan) -> None:
    """Commit other offsets for a group without members; a new group is created that way."""
    found = plan.state
    assert isinstance(found, _Reset)
    # Nothing comes in between this look and the commit: it is made in the same turn.
    if _offsets(command, is_idle=True) != found.old:
        raise Conflict
    await command.wire.run(groups.commit(command.names["group"], found.new))


async def _work_out(command: Command) -> _Reset:
    """Return the old and new offsets of a group without members; raises KafkaError."""
    old = _offsets(command, is_idle=True)
    node_id = command.broker.node_id
    wanted = [Partition(topic, index, node_id) for topic, index in _chosen(command, old)]
    if not wanted:
        raise invalid("topic: required, since the group has no committed offsets")
    by, to = command.number("by"), command.text("to")
    if (by is None) == (not to):
        raise invalid("to, by: expected exactly one of them")
    if by is not None:
        for each in wanted:
            if each.topic_partition not in old:
                name = partition_text(each.topic_partition)
                raise invalid(f"by: the group has no offset to move from on {name}")
        return _Reset(old, await command.wire.run(moved_by(by, old, wanted)))
    try:
        position = Position.parse(to)
    except BadPosition as problem:
        raise invalid(f"to: {problem}") from None
    return _Reset(old, await command.wire.run(offsets_of(position, wanted)))


def _chosen(command: Command, old: Offsets) -> list[TopicPartition]:
    """Return the selected partitions: those of a topic, one of them, or all that the group has
    read.
    """
    name, index = command.text("topic"), command.number("partition")
    catalogue = command.broker.catalogue
    if not name:
        if index is not None:
            raise invalid("topic: required together with partition")
        return [key for key in old if catalogue.partition(*key) is not None]
    topic = catalogue.topic(name) if command.may_see(name) else None
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")
    if index is None:
        return [(name, each.index) for each in topic.partitions]
    if not 0 <= index < len(topic.partitions):
        words = f"{name} has {len(topic.partitions)} partitions"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    return [(name, index)]


# --------------------------------------------------------------------------------------- deletion


async def plan_delete(command: Command) -> Plan:
    """Return the group that would be deleted."""
    old = _offsets(command, is_idle=True)
    if machine_of(command) is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    words = f"delete the group {command.names['group']} and its offsets"
    return Plan(words, {"offsets": len(old)}, _gone(old), tuple(sorted(old.items())))


async def delete(command: Command, _: Plan) -> None:
    """Delete a group."""
    await command.wire.run(groups.delete(command.names["group"]))


async def plan_delete_offsets(command: Command) -> Plan:
    """Return the offsets that would be deleted."""
    old = _of_topic(command)
    if not old:
        words = f"the group has no committed offsets of {command.text('topic')}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    words = f"delete the offsets of {command.names['group']} for {command.text('topic')}"
    return Plan(words, {"offsets": len(old)}, _gone(old), tuple(sorted(old.items())))


async def delete_offsets(command: Command, _: Plan) -> None:
    """Delete the committed offsets of a group for a topic."""
    deletion = groups.delete_offsets(command.names["group"], _of_topic(command))
    for at, code in (await command.wire.run(deletion)).items():
        check_partition(at, code)


def _of_topic(command: Command) -> Offsets:
    name = command.text("topic")
    return {key: offset for key, offset in _offsets(command).items() if key[0] == name}


def _gone(old: Offsets) -> tuple[Change, ...]:
    rows = sorted(old.items())[:CHANGES_SHOWN]
    return tuple(
        Change(f"{topic}-{index}", str(offset), None, None) for (topic, index), offset in rows
    )


# ------------------------------------------------------------------------------- what there is


def _offsets(command: Command, *, is_idle: bool = False) -> Offsets:
    """Return the committed offsets of a group for topics visible to the user.

    Raises KafkaError if the group has members and must be empty.
    """
    machine, group_id = machine_of(command), command.names["group"]
    if machine is None:
        return {}
    group = machine.groups.get(group_id)
    if is_idle and group is not None and group.members:
        count = len(group.members)
        words = f"the group has {count} {'member' if count == 1 else 'members'}: stop them first"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, words)
    return {
        (topic, index): committed.offset
        for topic, partitions in machine.offsets.of_group(group_id).items()
        if command.may_see(topic)
        for index, committed in partitions.items()
    }
