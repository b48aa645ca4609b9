"""``barnabas consume``: the records of a topic, printed as they come."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase

from barnabas.broker.admin.exchange import Partition, TopicPartition, partition_text
from barnabas.broker.admin.offsets import (
    COMMITTED,
    ISOLATION,
    LATEST,
    Offsets,
    offsets_at,
    offsets_of,
)
from barnabas.broker.admin.positions import Position
from barnabas.broker.cli.arguments import (
    add_server,
    partition_numbers,
    position,
    positive_number,
    topic_partitions,
)
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import USAGE, CommandError
from barnabas.broker.cli.interruption import Interruption, Wait
from barnabas.broker.cli.output import Progress, count_text
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.records.consumer import Consumer
from barnabas.broker.cli.records.group_reader import GroupReader
from barnabas.broker.cli.records.record_text import (
    BadRecord,
    Part,
    Template,
    record_as_json,
    record_as_text,
)
from barnabas.broker.cli.retries import patiently
from barnabas.storage.runtime.clock import monotonic

FLUSH_SECONDS = 0.5
"""Interval at which printed records are flushed and the group receives a heartbeat."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topics, the range and the output format."""
    parser.usage = "barnabas consume TOPIC[:N,N]... [options]"
    parser.epilog = (
        "A TOPIC may be 'orders-*'. Templates: %t topic, %p partition, %o offset, %k key, "
        "%v value, %h headers, %T ms, %D date, %K, %V lengths (-1: null), \\n, \\t."
    )
    parser.add_argument(
        "topics", metavar="TOPIC[:N,N]", nargs="+", type=topic_partitions, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "-o", "--offset", default="end", metavar="WHERE",
        help="beginning, end (default), N, -N, @TIME",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--partition", type=partition_numbers, action="extend", default=[], metavar="N[,N]",
        help="only these partitions",
    )  # fmt: skip
    parser.add_argument(
        "-g", "--group", metavar="GROUP", help="read as a group, commit printed records"
    )
    parser.add_argument(
        "-n", "--max-messages", type=positive_number, metavar="N", help="stop after N records"
    )
    parser.add_argument("-e", "--exit", action="store_true", help="stop at the current end")
    parser.add_argument(
        "--isolation", choices=tuple(ISOLATION), default=COMMITTED, metavar="LEVEL",
        help="read_committed (default), read_uncommitted",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="values, or JSON with everything"
    )
    parser.add_argument(
        "-J", "--json-values", action="store_true", help="with JSON: values that are JSON as such"
    )
    parser.add_argument(
        "-K", "--key-separator", metavar="TEXT", help="also print keys, with this text after them"
    )
    parser.add_argument("-f", "--template", metavar="TEXT", help="template of each record's line")
    add_server(parser, timeout_seconds=30)


def run(arguments: argparse.Namespace) -> int:
    """Print records to the end or until a signal."""
    printer = _printer(arguments)
    where = position(arguments.offset)
    with (
        Interruption() as interruption,
        Cluster.of(arguments) as cluster,
    ):
        make = _consumer if arguments.group is None else _group_reader
        reader = make(cluster, arguments, where, interruption)
        try:
            reader.open()
            _print_all(reader, printer, arguments.max_messages, interruption)
            if reader.at_end and arguments.isolation == COMMITTED:
                _warn_of_open_transactions(cluster, list(reader.positions), interruption.wait)
        except KeyboardInterrupt:
            pass  # ``exit_code`` says which signal it was.
        finally:
            reader.close()
    return interruption.exit_code


def _print_all(
    reader: Consumer | GroupReader, printer: Part, most: int | None, interruption: Interruption
) -> None:
    """Print records up to ``most``, to the end, or until a signal."""
    count = 0
    with Progress() as progress:
        while count != most and not reader.at_end and not interruption.has_come():
            flush_due_s = monotonic() + FLUSH_SECONDS
            for record in reader.poll():
                sys.stdout.buffer.write(printer(record))
                count += 1
                if count == most or interruption.has_come() or monotonic() > flush_due_s:
                    break
            sys.stdout.buffer.flush()
            reader.printed()
            progress.show(f"{count_text(count, 'record')} read")


def _warn_of_open_transactions(
    cluster: Cluster, read: Sequence[TopicPartition], wait: Wait
) -> None:
    """Name each partition whose last stable offset is before its end: the rest was not read."""

    def look_up() -> tuple[Offsets, Offsets]:
        topics = sorted({topic for topic, _ in read})
        found = [each for topic in topics for each in cluster.partitions(topic)]
        partitions = [each for each in found if each.topic_partition in read]
        ends = cluster.run(offsets_at(partitions, LATEST))
        # Requested second, and it never decreases: a transaction is open now.
        return ends, cluster.run(offsets_at(partitions, LATEST, COMMITTED))

    ends, stable = patiently(cluster, look_up, wait)
    for at, end in ends.items():
        if stable[at] < end:
            print_text(
                f"barnabas: {partition_text(at)}: offsets {stable[at]} to {end - 1} were not "
                "read, since a transaction is open; `barnabas transactions list-blocking` shows it",
                file=sys.stderr,
            )


def _printer(arguments: argparse.Namespace) -> Part:
    if arguments.template is not None:
        if arguments.format == "json" or arguments.key_separator is not None:
            raise CommandError("a template goes neither with JSON nor with -K", USAGE)
        try:
            return Template(arguments.template).fill
        except BadRecord as problem:
            raise CommandError(str(problem), USAGE) from None
    if arguments.format == "json":
        if arguments.key_separator is not None:
            raise CommandError("-K does not go with JSON, which has the keys", USAGE)
        as_json = arguments.json_values
        return lambda record: record_as_json(record, json_values=as_json).encode() + b"\n"
    if arguments.json_values:
        raise CommandError("-J goes with --format json only", USAGE)
    return record_as_text(arguments.key_separator)


def _group_reader(
    cluster: Cluster, arguments: argparse.Namespace, where: Position, interruption: Interruption
) -> GroupReader:
    if arguments.partition or any(numbers for _, numbers in arguments.topics):
        raise CommandError(
            "a group assigns partitions itself: -g goes neither with -p nor with TOPIC:N", USAGE
        )
    return GroupReader(
        cluster,
        arguments.group,
        topics_of(cluster, [topic for topic, _ in arguments.topics]),
        where,
        isolation=arguments.isolation,
        to_the_end=arguments.exit,
        wait=interruption.wait,
    )


def _consumer(
    cluster: Cluster, arguments: argparse.Namespace, where: Position, interruption: Interruption
) -> Consumer:
    """Look up partitions and offsets, and be ready to read; raises CommandError."""
    isolation = arguments.isolation
    _partitions(cluster, arguments)  # Missing topics and partitions are reported at once.

    def look_up() -> tuple[Offsets, Offsets]:
        partitions = _partitions(cluster, arguments)
        ends = cluster.run(offsets_at(partitions, LATEST, isolation))
        return cluster.run(offsets_of(where, partitions, isolation)), ends

    positions, ends = patiently(cluster, look_up, interruption.wait)
    return Consumer(
        cluster,
        positions,
        isolation=isolation,
        ends=ends if arguments.exit else None,
        wait=interruption.wait,
    )


def topics_of(cluster: Cluster, given: Sequence[str]) -> list[str]:
    """Return the names of the requested topics, also by pattern; raises CommandError."""
    names: list[str] = []
    for each in given:
        if not set(each) & set("*?["):
            cluster.partitions(each)  # An unknown topic is reported at once.
            names.append(each)
            continue
        there = [topic.name or "" for topic in cluster.topics() if not topic.is_internal]
        matching = [name for name in there if fnmatchcase(name, each)]
        if not matching:
            raise CommandError(f"{each}: no topic matches")
        names += matching
    return list(dict.fromkeys(names))


def _partitions(cluster: Cluster, arguments: argparse.Namespace) -> list[Partition]:
    """Return the requested partitions; raises CommandError."""
    given: Sequence[tuple[str, list[int]]] = arguments.topics
    if arguments.partition:
        if len(given) > 1 or given[0][1]:
            raise CommandError("-p goes with one topic, named without partitions", USAGE)
        given = [(given[0][0], arguments.partition)]
    chosen: dict[TopicPartition, Partition] = {}
    for name, numbers in given:
        topics = topics_of(cluster, [name])
        if arguments.partition and len(topics) > 1:
            raise CommandError("-p goes with one topic", USAGE)
        for topic in topics:
            chosen |= {(topic, each.number): each for each in _of_topic(cluster, topic, numbers)}
    return list(chosen.values())


def _of_topic(cluster: Cluster, topic: str, numbers: Sequence[int]) -> list[Partition]:
    """Return these partitions of a topic, or all of them if no number is given."""
    found = cluster.partitions(topic)
    for number in sorted(set(numbers) - {each.number for each in found}):
        raise CommandError(
            f"{partition_text((topic, number))}: the topic has only {len(found)} partitions"
        )
    return [each for each in found if not numbers or each.number in numbers]
