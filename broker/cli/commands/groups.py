"""``barnabas groups``: list, describe, reset-offsets, delete."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial

from barnabas.broker.admin import groups
from barnabas.broker.admin.exchange import Rejected, partition_text
from barnabas.broker.admin.offsets import Offsets, moved_by, offsets_of
from barnabas.broker.cli.arguments import add_flag, add_operand, add_topics, one_of, position
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.group_view import (
    GROUP_STATES,
    GROUP_TYPES,
    GroupDescription,
    describe_group,
    led_partitions,
    list_groups,
    view_group,
)
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import (
    count_text,
    print_each,
    print_found,
    print_json,
    print_pairs,
    print_rows,
)
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.retries import patiently, repeat
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.protocol.errors import ErrorCode

_RENAMED = dict.fromkeys(("seek", "move", "reset"), "reset-offsets")
_LISTED = {"GROUP": "group", "STATE": "state", "TYPE": "type", "PROTOCOL": "protocol_text"}
_PARTITIONS = {
    "TOPIC": "topic",
    "PARTITION": "partition",
    "COMMITTED": "committed_offset",
    "START": "start_offset",
    "END": "end_offset",
    "LAG": "lag",
    "MEMBER": "member",
}
_MEMBERS = {
    "MEMBER": "member",
    "INSTANCE": "instance",
    "CLIENT": "client",
    "HOST": "host",
    "PARTITIONS": "partition_count",
}
_RESETS = {"TOPIC": "topic", "PARTITION": "partition", "OLD": "old_offset", "NEW": "new_offset"}


@dataclass(frozen=True)
class Reset:
    """The committed offset of a partition before and after a reset."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS, renamed=_RENAMED)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", action="append", default=[], metavar="STATE", type=one_of(GROUP_STATES),
        help="only in this state, such as Stable or Empty",
    )  # fmt: skip
    parser.add_argument(
        "--type", action="append", default=[], metavar="TYPE", type=one_of(GROUP_TYPES),
        help="only of this type, such as classic or consumer",
    )  # fmt: skip


def _add_describe(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "groups", "GROUP", count="+")


def _add_reset_offsets(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "group", "GROUP")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="WHERE", help="beginning, end, N, -N (last N), @TIME")
    where.add_argument("--by", type=int, metavar="N", help="N forward, or back if N is negative")
    add_topics(parser, "only these topics (default: all that the group has read)")
    add_flag(parser, "--dry-run", "only show the new offsets")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "groups", "GROUP", count="+")
    add_flag(parser, "--if-exists", "ignore groups that do not exist")


def _add_delete_offsets(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "group", "GROUP")
    add_topics(parser, "topic or partitions; repeatable", required=True)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.verb == "reset-offsets" and arguments.to is not None:
        arguments.to = position(arguments.to)
    return run_verb(arguments, at_once=True)


# -------------------------------------------------------------------------------- list, describe


def list_all(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print every group's state and type."""
    found = patiently(
        cluster,
        lambda: list_groups(cluster, arguments.state, arguments.type),
    )
    print_found(found, _LISTED, arguments.format)


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print members, offsets and lag of groups."""
    described = [
        patiently(cluster, partial(describe_group, cluster, group_id))
        for group_id in dict.fromkeys(arguments.groups)
    ]
    print_each(described, _print_description, arguments.format)


def _print_description(group: GroupDescription) -> None:
    names = ("group", "state", "type", "coordinator", "assignor", "epoch", "lag")
    pairs = [(name, getattr(group, name)) for name in names]
    print_pairs([*(each for each in pairs if each[1] is not None), ("members", len(group.members))])
    for rows, columns in ((group.partitions, _PARTITIONS), (group.members, _MEMBERS)):
        if rows:
            print_text()
            print_rows(rows, columns)


# ---------------------------------------------------------------------------------- reset-offsets


def reset_offsets(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Commit other offsets for a group without members; create a missing group."""
    cluster.chosen(arguments.topic)  # A topic that does not exist is reported at once.

    old, new = patiently(cluster, lambda: _offsets_to_commit(cluster, arguments))
    if not arguments.dry_run:
        repeat(cluster, groups.commit, arguments.group, new)
    resets = [Reset(*each, old.get(each), new[each]) for each in sorted(new)]
    document = {"group": arguments.group, "changed": not arguments.dry_run, "offsets": resets}
    print_found(resets, _RESETS, arguments.format, document)


def _offsets_to_commit(cluster: Cluster, arguments: argparse.Namespace) -> tuple[Offsets, Offsets]:
    """Return the present and the new offsets of the selected partitions; raises CommandError."""
    group_id = arguments.group
    old = _offsets_of_idle_group(cluster, group_id)
    partitions = (
        cluster.chosen(arguments.topic) if arguments.topic else led_partitions(cluster, old)
    )
    if not partitions:
        raise CommandError(f"{group_id}: the group has no offsets yet; name topics with -t", USAGE)
    if arguments.to is not None:
        return old, cluster.run(offsets_of(arguments.to, partitions))
    for each in partitions:
        if each.topic_partition not in old:
            name = partition_text(each.topic_partition)
            raise CommandError(f"{name}: the group has no offset to move by")
    return old, cluster.run(moved_by(arguments.by, old, partitions))


def _offsets_of_idle_group(cluster: Cluster, group_id: str) -> Offsets:
    try:
        view = view_group(cluster, group_id)
    except Rejected as problem:
        if problem.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return {}
    if view.group.members:
        members = count_text(len(view.group.members), "member")
        raise CommandError(f"{group_id}: the group has {members}, which must stop first")
    return view.offsets


# ----------------------------------------------------------------------------------------- delete


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete groups one by one; report successes and failures."""
    outcome = Outcome("group", "deleted", arguments.format)
    for group_id in dict.fromkeys(arguments.groups):
        try:
            repeat(cluster, groups.delete, group_id)
        except Rejected as problem:
            if arguments.if_exists and problem.code == ErrorCode.GROUP_ID_NOT_FOUND:
                outcome.unchanged(group_id, "was not there")
            else:
                outcome.failed(problem)
        else:
            outcome.done(group_id)
    outcome.conclude()


# --------------------------------------------------------------------------------- delete-offsets


def delete_offsets(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete committed offsets; the broker keeps those of topics that a member reads."""
    group_id = arguments.group
    partitions = [each.topic_partition for each in cluster.chosen(arguments.topic)]
    results = repeat(cluster, groups.delete_offsets, group_id, partitions)
    done = [at for at, code in results.items() if not code]
    if arguments.format == "json":
        deleted = [dict(zip(("topic", "partition"), at, strict=True)) for at in done]
        print_json({"group": group_id, "deleted": deleted})
    else:
        for at in done:
            print_text(f"{partition_text(at)} deleted")
    problems = [str(Rejected(partition_text(at), code)) for at, code in results.items() if code]
    if problems:
        raise CommandError("; ".join(problems))


_VERBS = {
    "list": Verb("List groups", "[options]", _add_list, list_all),
    "describe": Verb(
        "Show members, offsets and lag of groups", "GROUP... [options]", _add_describe, describe
    ),
    "reset-offsets": Verb(
        "Reset the committed offsets of a group without members",
        "GROUP (--to WHERE | --by N) [options]",
        _add_reset_offsets,
        reset_offsets,
    ),
    "delete": Verb(
        "Delete groups without members, and their offsets",
        "GROUP... [options]",
        _add_delete,
        delete,
    ),
    "delete-offsets": Verb(
        "Delete offsets that a group has committed for topics it does not read",
        "GROUP -t TOPIC[:N,N] [options]",
        _add_delete_offsets,
        delete_offsets,
    ),
}
