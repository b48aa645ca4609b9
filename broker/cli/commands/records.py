"""``barnabas records``: delete."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from barnabas.broker.admin.offsets import EARLIEST, Offsets, offsets_at, offsets_of
from barnabas.broker.admin.topics import delete_records
from barnabas.broker.cli.arguments import add_flag, add_operand, position, topic_partitions
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.output import print_found
from barnabas.broker.cli.retries import patiently
from barnabas.broker.cli.verbs import Verb, add_verbs, run_verb

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
    arguments.before = position(arguments.before)
    if arguments.before.at_beginning:
        raise CommandError("--before beginning would delete no records", USAGE)
    return run_verb(arguments)


def delete(cluster: Cluster, arguments: argparse.Namespace) -> None:
    """Delete records, and print the new start offsets."""
    partitions = cluster.chosen(arguments.topics)

    def work_out() -> tuple[Offsets, Offsets]:
        starts = cluster.run(offsets_at(partitions, EARLIEST))
        return starts, cluster.run(offsets_of(arguments.before, partitions))

    starts, offsets = patiently(cluster, work_out)
    if not arguments.dry_run:
        before = {each: offsets[each.topic_partition] for each in partitions}
        offsets = cluster.run(delete_records(before, int(arguments.timeout * 1000)))
    rows = [Start(*each, starts[each], offsets[each]) for each in sorted(offsets)]
    document = {"changed": not arguments.dry_run, "partitions": rows}
    print_found(rows, _STARTS, arguments.format, document)


_VERBS: Final = {
    "delete": Verb(
        "Delete the records before an offset or a time",
        "TOPIC[:N,N]... --before WHERE [options]",
        _add_delete,
        delete,
    )
}
