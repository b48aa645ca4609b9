"""``barnabas groups``: list, describe, reset-offsets, delete."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import Any

from barnabas.broker.cli.arguments import (
    add_verbs,
    one_of,
    topic_partitions,
)
from barnabas.broker.cli.cluster_view import Cluster, Partition, Rejected, check
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.group_view import (
    GROUP_STATES,
    GROUP_TYPES,
    GroupView,
    by_topic,
    coordinators,
    list_groups,
    view_group,
)
from barnabas.broker.cli.offsets import (
    EARLIEST,
    LATEST,
    TopicPartition,
    offsets_at,
    partition_text,
    patiently,
)
from barnabas.broker.cli.outcome import Outcome
from barnabas.broker.cli.output import count_text, print_json, print_pairs, print_table
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.where import Where
from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.protocol.versions import OFFSET_COMMIT_BY_NAME

_UNCOMMITTED = "read_uncommitted"
_VERBS = {
    "list": "List groups",
    "describe": "Show members, offsets and lag of groups",
    "reset-offsets": "Reset the committed offsets of a group without members",
    "delete": "Delete groups without members, and their offsets",
    "delete-offsets": "Delete offsets that a group has committed for topics it does not read",
}
_RENAMED = dict.fromkeys(("seek", "move", "reset"), "reset-offsets")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs with theirs."""
    parser.usage = "barnabas groups VERB [options]"
    adders = _add_list, _add_describe, _add_reset_offsets, _add_delete, _add_delete_offsets
    add_verbs(parser, _VERBS, *adders, renamed=_RENAMED)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas groups list [options]"
    parser.add_argument(
        "--state", action="append", default=[], metavar="STATE", type=one_of(GROUP_STATES),
        help="only in this state, such as Stable or Empty",
    )  # fmt: skip
    parser.add_argument(
        "--type", action="append", default=[], metavar="TYPE", type=one_of(GROUP_TYPES),
        help="only of this type, such as classic or consumer",
    )  # fmt: skip


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas groups describe GROUP... [options]"
    parser.add_argument("groups", metavar="GROUP", nargs="+", help=argparse.SUPPRESS)


def _add_reset_offsets(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas groups reset-offsets GROUP (--to WHERE | --by N) [options]"
    parser.add_argument("group", metavar="GROUP", help=argparse.SUPPRESS)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="WHERE", help="beginning, end, N, -N (last N), @TIME")
    where.add_argument("--by", type=int, metavar="N", help="so many on, or back if N is negative")
    parser.add_argument(
        "-t", "--topic", type=topic_partitions, action="append", default=[], metavar="TOPIC[:N,N]",
        help="only these (default: all it has read)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas groups delete GROUP... [options]"
    parser.add_argument("groups", metavar="GROUP", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument(
        "--if-exists", action="store_true", help="a group that is not there is no error"
    )


def _add_delete_offsets(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas groups delete-offsets GROUP -t TOPIC[:N,N] [options]"
    parser.add_argument("group", metavar="GROUP", help=argparse.SUPPRESS)
    parser.add_argument(
        "-t", "--topic", type=topic_partitions, action="append", required=True,
        metavar="TOPIC[:N,N]", help="of these; repeatable",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    verb = {
        "list": list_all,
        "describe": describe,
        "reset-offsets": reset_offsets,
        "delete": delete,
        "delete-offsets": delete_offsets,
    }[arguments.verb]
    if arguments.verb == "reset-offsets" and arguments.to is not None:
        arguments.to = Where(arguments.to)
    with Cluster.of(arguments) as cluster:
        cluster.topics([])  # A broker that is not there is reported at once.
        verb(cluster, arguments)
    return OK


# -------------------------------------------------------------------------------- list, describe


def list_all(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print every group's state and type."""
    groups = patiently(
        cluster,
        arguments.timeout,
        lambda: list_groups(cluster, arguments.state, arguments.type),
    )
    if arguments.format == "json":
        print_json(
            [
                {
                    "group": each.group_id,
                    "state": each.group_state,
                    "type": each.group_type,
                    "protocol_type": each.protocol_type,
                }
                for each in groups
            ]
        )
        return
    print_table(
        ("GROUP", "STATE", "TYPE", "PROTOCOL"),
        [
            (each.group_id, each.group_state, each.group_type, each.protocol_type or None)
            for each in groups
        ],
    )


def describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Print members, offsets and lag of groups."""
    described = [
        patiently(cluster, arguments.timeout, partial(_describe, cluster, group_id))
        for group_id in dict.fromkeys(arguments.groups)
    ]
    if arguments.format == "json":
        print_json(described)
        return
    for number, group in enumerate(described):
        if number:
            print_text()
        _print_description(group)


def _describe(cluster: Cluster, group_id: str) -> dict[str, Any]:
    view = view_group(cluster, group_id)
    topic_partitions = sorted({*view.offsets, *view.owners})
    partitions = _partitions(cluster, topic_partitions)
    starts = offsets_at(cluster, partitions, EARLIEST, _UNCOMMITTED)
    ends = offsets_at(cluster, partitions, LATEST, _UNCOMMITTED)
    return {
        "group": view.group_id,
        "state": view.state,
        "type": view.type,
        "coordinator": view.coordinator,
        "assignor": view.assignor or None,
        "epoch": view.epoch,
        "lag": _sum(_lag(view, topic_partition, ends) for topic_partition in topic_partitions),
        "partitions": [
            {
                "topic": topic_partition[0],
                "partition": topic_partition[1],
                "committed_offset": view.offsets.get(topic_partition),
                "start_offset": starts.get(topic_partition),
                "end_offset": ends.get(topic_partition),
                "lag": _lag(view, topic_partition, ends),
                "member": view.owners[topic_partition].member_id
                if topic_partition in view.owners
                else None,
            }
            for topic_partition in topic_partitions
        ],
        "members": [
            {
                "member": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.host,
                "partitions": [
                    {"topic": topic, "partitions": numbers}
                    for topic, numbers in by_topic(member.partitions).items()
                ],
            }
            for member in sorted(view.members, key=lambda member: member.member_id)
        ],
    }


def _lag(
    view: GroupView, topic_partition: TopicPartition, ends: dict[TopicPartition, int]
) -> int | None:
    """How much is left to read; None where the group has not begun or the log is gone."""
    committed, end = view.offsets.get(topic_partition), ends.get(topic_partition)
    return None if committed is None or end is None else max(end - committed, 0)


def _sum(lags: Iterable[int | None]) -> int | None:
    """Return the sum of the lags that are known; None if none is, as without a committed offset."""
    known = [each for each in lags if each is not None]
    return sum(known) if known else None


def _partitions(cluster: Cluster, topic_partitions: list[TopicPartition]) -> list[Partition]:
    """Return those of the places that are there and have a leader."""
    wanted, found = set(topic_partitions), []
    names = sorted({topic for topic, _ in topic_partitions})
    for topic in cluster.topics(names) if names else []:
        if topic.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            raise Rejected(topic.name or "", topic.error_code)
        found += [
            Partition(topic.name or "", each.partition_index, each.leader_id)
            for each in topic.partitions
            if (topic.name, each.partition_index) in wanted and each.leader_id >= 0
        ]
    return found


def _print_description(group: dict[str, Any]) -> None:
    names = ("group", "state", "type", "coordinator", "assignor", "epoch", "lag")
    pairs = [(name, group[name]) for name in names if group[name] is not None]
    print_pairs([*pairs, ("members", len(group["members"]))])
    if group["partitions"]:
        print_text()
        print_table(
            ("TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG", "MEMBER"),
            [
                (
                    each["topic"],
                    each["partition"],
                    each["committed_offset"],
                    each["start_offset"],
                    each["end_offset"],
                    each["lag"],
                    each["member"],
                )
                for each in group["partitions"]
            ],
        )
    if group["members"]:
        print_text()
        print_table(
            ("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"),
            [
                (
                    each["member"],
                    each["instance"],
                    each["client"],
                    each["host"],
                    sum(len(topic["partitions"]) for topic in each["partitions"]),
                )
                for each in group["members"]
            ],
        )


# ---------------------------------------------------------------------------------- reset-offsets


def reset_offsets(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Commit other offsets for a group without members; one that is not there is made so."""
    chosen_partitions(cluster, arguments.topic)  # A topic that is not there is reported at once.

    def work_out() -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        return _offsets_to_commit(cluster, arguments, arguments.to)

    old, new = patiently(cluster, arguments.timeout, work_out)
    if not arguments.dry_run:
        patiently(cluster, arguments.timeout, lambda: _commit(cluster, arguments.group, new))
    moves = [
        {
            "topic": topic_partition[0],
            "partition": topic_partition[1],
            "old_offset": old.get(topic_partition),
            "new_offset": new[topic_partition],
        }
        for topic_partition in sorted(new)
    ]
    if arguments.format == "json":
        print_json({"group": arguments.group, "changed": not arguments.dry_run, "offsets": moves})
        return
    print_table(
        ("TOPIC", "PARTITION", "OLD", "NEW"),
        [
            (each["topic"], each["partition"], each["old_offset"], each["new_offset"])
            for each in moves
        ],
    )


def _offsets_to_commit(
    cluster: Cluster, arguments: argparse.Namespace, where: Where | None
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the old and the new offsets of what is to be moved; raises CommandError."""
    group_id = arguments.group
    old = _offsets_of_idle_group(cluster, group_id)
    partitions = (
        chosen_partitions(cluster, arguments.topic)
        if arguments.topic
        else _partitions(cluster, sorted(old))
    )
    if not partitions:
        raise CommandError(f"{group_id}: it has read nothing yet, say which topics with -t", USAGE)
    if where is not None:
        return old, where.positions(cluster, partitions, _UNCOMMITTED)
    starts = offsets_at(cluster, partitions, EARLIEST, _UNCOMMITTED)
    ends = offsets_at(cluster, partitions, LATEST, _UNCOMMITTED)
    new = {}
    for partition in partitions:
        topic_partition = partition.topic_partition
        if topic_partition not in old:
            raise CommandError(
                f"{partition_text(topic_partition)}: the group has no offset to move by"
            )
        new[topic_partition] = min(
            max(old[topic_partition] + arguments.by, starts[topic_partition]), ends[topic_partition]
        )
    return old, new


def _offsets_of_idle_group(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    try:
        view = view_group(cluster, group_id)
    except Rejected as problem:
        if problem.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return {}
    if view.members:
        members = count_text(len(view.members), "member")
        raise CommandError(f"{group_id}: the group has {members}, which must stop first")
    return view.offsets


def chosen_partitions(cluster: Cluster, topics: list[tuple[str, list[int]]]) -> list[Partition]:
    """Return the partitions that were named; raises CommandError for one that is not there."""
    chosen: dict[TopicPartition, Partition] = {}
    for topic, numbers in topics:
        found = {each.number: each for each in cluster.partitions(topic)}
        for number in numbers or found:
            if number not in found:
                topic_partition = partition_text((topic, number))
                raise CommandError(f"{topic_partition}: the topic has only {len(found)} partitions")
            chosen[topic, number] = found[number]
    return list(chosen.values())


def _commit(cluster: Cluster, group_id: str, offsets: dict[TopicPartition, int]) -> None:
    request = OffsetCommitRequest(
        group_id,
        -1,
        "",
        None,
        -1,
        [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(number, offsets[topic, number], -1, "")
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )
    broker = _coordinator(cluster, group_id)
    for topic in broker.ask(OFFSET_COMMIT, request, OFFSET_COMMIT_BY_NAME).topics:
        for each in topic.partitions:
            check(partition_text((topic.name, each.partition_index)), each.error_code)


def _coordinator(cluster: Cluster, group_id: str) -> Connection:
    return cluster.node(coordinators(cluster, [group_id])[group_id])


# ----------------------------------------------------------------------------------------- delete


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete groups one by one; what worked is said beside what did not."""
    outcome = Outcome("group", "deleted", arguments.format)
    for group_id in dict.fromkeys(arguments.groups):
        try:
            patiently(cluster, arguments.timeout, partial(_delete, cluster, group_id))
        except Rejected as problem:
            if arguments.if_exists and problem.code == ErrorCode.GROUP_ID_NOT_FOUND:
                outcome.unchanged(group_id, "was not there")
            else:
                outcome.failed(problem)
        else:
            outcome.done(group_id)
    outcome.conclude()


def _delete(cluster: Cluster, group_id: str) -> None:
    broker = _coordinator(cluster, group_id)
    (result,) = broker.ask(DELETE_GROUPS, DeleteGroupsRequest([group_id])).results
    check(group_id, result.error_code)


# --------------------------------------------------------------------------------- delete-offsets


def delete_offsets(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete committed offsets; of topics that a member reads the broker keeps them."""
    group_id = arguments.group
    partitions = chosen_partitions(cluster, arguments.topic)
    request = OffsetDeleteRequest(
        group_id,
        [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(each) for each in numbers])
            for name, numbers in by_topic(each.topic_partition for each in partitions).items()
        ],
    )

    def ask() -> OffsetDeleteResponse:
        response = _coordinator(cluster, group_id).ask(OFFSET_DELETE, request)
        check(group_id, response.error_code)
        return response

    done: list[dict[str, Any]] = []
    problems: list[str] = []
    for topic in patiently(cluster, arguments.timeout, ask).topics:
        for each in topic.partitions:
            at = topic.name, each.partition_index
            if each.error_code:
                problems.append(str(Rejected(partition_text(at), each.error_code)))
                continue
            done.append({"topic": at[0], "partition": at[1]})
            if arguments.format == "text":
                print_text(f"{partition_text(at)} deleted")
    if arguments.format == "json":
        print_json({"group": group_id, "deleted": done})
    if problems:
        raise CommandError("; ".join(problems))
