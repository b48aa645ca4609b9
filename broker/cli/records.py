"""``barnabas records``: delete."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from barnabas.broker.cli.arguments import add_verbs, topic_partitions
from barnabas.broker.cli.cluster_view import Cluster, Partition, check
from barnabas.broker.cli.errors import OK, USAGE, CommandError
from barnabas.broker.cli.groups import chosen_partitions
from barnabas.broker.cli.offsets import (
    EARLIEST,
    TopicPartition,
    offsets_at,
    partition_text,
    patiently,
)
from barnabas.broker.cli.output import print_json, print_table
from barnabas.broker.cli.where import Where
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

_VERBS: Final = {"delete": "Delete the records before an offset or a time"}
_UNCOMMITTED: Final = "read_uncommitted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb with its arguments."""
    parser.usage = "barnabas records VERB [options]"
    add_verbs(parser, _VERBS, _add_delete)


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas records delete TOPIC[:N,N]... --before WHERE [options]"
    parser.add_argument(
        "topics", metavar="TOPIC[:N,N]", nargs="+", type=topic_partitions, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--before", metavar="WHERE", required=True, help="end, N, -N (keep the last N), @TIME"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")


def run(arguments: argparse.Namespace) -> int:
    """Delete, and print where the partitions begin now."""
    where = Where(arguments.before)
    if where.at_beginning:
        raise CommandError("there is nothing before the beginning", USAGE)
    with Cluster.of(arguments) as cluster:
        partitions = chosen_partitions(cluster, arguments.topics)

        def work_out() -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
            starts = offsets_at(cluster, partitions, EARLIEST, _UNCOMMITTED)
            return starts, where.positions(cluster, partitions, _UNCOMMITTED)

        starts, offsets = patiently(cluster, arguments.timeout, work_out)
        if not arguments.dry_run:
            offsets = _delete(cluster, partitions, offsets, arguments.timeout)
    _print(arguments, starts, offsets)
    return OK


def _delete(
    cluster: Cluster,
    partitions: list[Partition],
    offsets: Mapping[TopicPartition, int],
    timeout_seconds: float,
) -> dict[TopicPartition, int]:
    """Delete at each leader; return where each partition begins then."""
    by_leader: dict[int, list[Partition]] = defaultdict(list)
    for each in partitions:
        by_leader[each.leader_id].append(each)
    found: dict[TopicPartition, int] = {}
    for leader_id, led in by_leader.items():
        topics: dict[str, list[DeleteRecordsPartition]] = defaultdict(list)
        for each in led:
            offset = offsets[each.topic_partition]
            topics[each.topic].append(DeleteRecordsPartition(each.number, offset))
        request = DeleteRecordsRequest(
            [DeleteRecordsTopic(name, some) for name, some in topics.items()],
            int(timeout_seconds * 1000),
        )
        for topic in cluster.node(leader_id).ask(DELETE_RECORDS, request).topics:
            for result in topic.partitions:
                at = topic.name, result.partition_index
                check(partition_text(at), result.error_code)
                found[at] = result.low_watermark
    return found


def _print(
    arguments: argparse.Namespace,
    starts: Mapping[TopicPartition, int],
    offsets: Mapping[TopicPartition, int],
) -> None:
    rows = [
        {"topic": at[0], "partition": at[1], "old_start": starts[at], "new_start": offsets[at]}
        for at in sorted(offsets)
    ]
    if arguments.format == "json":
        print_json({"changed": not arguments.dry_run, "partitions": rows})
        return
    print_table(
        ("TOPIC", "PARTITION", "OLD START", "NEW START"),
        [(*at, starts[at], offsets[at]) for at in sorted(offsets)],
    )
