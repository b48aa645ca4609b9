"""``barnabas records``: delete."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.broker.admin.requests import TopicPartition, gathered
from barnabas.broker.cli.arguments import add_flag, add_operand, topic_partitions
from barnabas.broker.cli.cluster_view import Cluster, Partition, by_leader, check, partition_text
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import as_json, print_json, print_rows
from barnabas.broker.cli.records.offsets import EARLIEST, offsets_at, patiently
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb
from barnabas.broker.cli.where import Where
from barnabas.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

_UNCOMMITTED: Final = "read_uncommitted"
_STARTS: Final = {
    "TOPIC": "topic",
    "PARTITION": "partition",
    "OLD START": "old_start",
    "NEW START": "new_start",
}


@dataclass(frozen=True)
class Start:
    """The first offset of a partition before and after a deletion."""

    topic: str
    partition: int
    old_start: int
    new_start: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb with its arguments."""
    add_verbs(parser, _VERBS)


def _add_delete(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "topics", "TOPIC[:N,N]", count="+", read=topic_partitions)
    parser.add_argument(
        "--before", metavar="WHERE", required=True, help="end, N, -N (keep the last N), @TIME"
    )
    add_flag(parser, "--dry-run", "only show the new start offsets")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    arguments.before = Where(arguments.before)
    if arguments.before.at_beginning:
        raise CommandError("--before beginning would delete no records", USAGE)
    return run_verb(arguments)


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete records, and print the new start offsets."""
    partitions = cluster.chosen(arguments.topics)

    def work_out() -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        starts = offsets_at(cluster, partitions, EARLIEST, _UNCOMMITTED)
        return starts, arguments.before.positions(cluster, partitions, _UNCOMMITTED)

    starts, offsets = patiently(cluster, arguments.timeout, work_out)
    if not arguments.dry_run:
        offsets = _delete(cluster, partitions, offsets, arguments.timeout)
    rows = [Start(*each, starts[each], offsets[each]) for each in sorted(offsets)]
    if arguments.format == "json":
        print_json({"changed": not arguments.dry_run, "partitions": as_json(rows)})
    else:
        print_rows(rows, _STARTS)


def _delete(
    cluster: Cluster,
    partitions: list[Partition],
    offsets: Mapping[TopicPartition, int],
    timeout_seconds: float,
) -> dict[TopicPartition, int]:
    """Delete at each leader; return the new start offset of each partition."""
    found: dict[TopicPartition, int] = {}
    for leader_id, led in by_leader(partitions).items():
        asked = gathered(
            (each.topic, DeleteRecordsPartition(each.number, offsets[each.topic_partition]))
            for each in led
        )
        topics = [DeleteRecordsTopic(*each) for each in asked.items()]
        request = DeleteRecordsRequest(topics, int(timeout_seconds * 1000))
        for topic in cluster.node(leader_id).ask(DELETE_RECORDS, request).topics:
            for result in topic.partitions:
                at = topic.name, result.partition_index
                check(partition_text(at), result.error_code)
                found[at] = result.low_watermark
    return found


_VERBS: Final = {
    "delete": Verb(
        "Delete the records before an offset or a time",
        "TOPIC[:N,N]... --before WHERE [options]",
        _add_delete,
        delete,
    )
}
