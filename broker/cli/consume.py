"""``barnabas consume``: the records of a topic, printed as they come."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from broker.cli.arguments import (
    add_server,
    addresses,
    partition_numbers,
    positive_number,
)
from broker.cli.cluster import Cluster, Partition
from broker.cli.consumer import Consumer, starting_positions
from broker.cli.errors import OK, USAGE, CommandError
from broker.cli.offsets import (
    EARLIEST,
    ISOLATION,
    LATEST,
    Place,
    offsets_at,
    patiently,
    place_text,
)
from broker.cli.output import Progress, count_text
from broker.cli.record_text import (
    BadRecord,
    Part,
    Template,
    record_as_json,
    record_as_text,
)

_NO_OFFSET = -1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to read, from where to where, and how to print it."""
    parser.usage = "barnabas consume TOPIC [options]"
    parser.epilog = (
        "Templates: %t topic, %p partition, %o offset, %k key, %v value, %h headers, "
        "%T time in ms, %D date, %K and %V lengths (-1: null), \\n, \\t."
    )
    parser.add_argument("topic", metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument(
        "-o", "--offset", default="end", metavar="WHERE",
        help="beginning, end (default), N, -N (last N), @TIME",
    )  # fmt: skip
    parser.add_argument(
        "-p", "--partition", type=partition_numbers, action="extend", default=[], metavar="N[,N]",
        help="only these partitions",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--max-messages", type=positive_number, metavar="N", help="stop after so many records"
    )
    parser.add_argument("-e", "--exit", action="store_true", help="stop at what is the end now")
    parser.add_argument(
        "--isolation", choices=tuple(ISOLATION), default="read_committed", metavar="LEVEL",
        help="read_committed (default), read_uncommitted",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="values, or JSON with everything"
    )
    parser.add_argument(
        "-K", "--key-separator", metavar="TEXT", help="print the keys, too, and this behind them"
    )
    parser.add_argument("-f", "--template", metavar="TEXT", help="print this for each record")
    add_server(parser, timeout_seconds=30)


def run(arguments: argparse.Namespace) -> int:
    """Print records until told to stop."""
    printer = _printer(arguments)
    where = Where(arguments.offset)
    with Cluster(addresses(arguments.bootstrap_server), arguments.timeout) as cluster:
        consumer = _consumer(cluster, arguments, where)
        left: int | None = arguments.max_messages
        count = 0
        with Progress() as progress:
            while left != 0 and not consumer.at_end:
                for record in consumer.poll():
                    sys.stdout.buffer.write(printer(record))
                    count += 1
                    if left is not None:
                        left -= 1
                        if left == 0:
                            break
                sys.stdout.buffer.flush()
                progress.show(f"{count_text(count, 'record')} read")
    return OK


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
        return lambda record: record_as_json(record).encode() + b"\n"
    return record_as_text(arguments.key_separator)


class Where:
    """Where to begin: an offset (negative: from the end), the end, or a time in ms."""

    def __init__(self, text: str) -> None:
        """Read what was typed; raises CommandError."""
        self.offset: int | None = None
        self.timestamp: int | None = None
        self.at_beginning = text in {"beginning", "earliest"}
        if text.startswith("@"):
            self.timestamp = milliseconds(text[1:])
        elif not self.at_beginning and text not in {"end", "latest"}:
            try:
                self.offset = int(text)
            except ValueError:
                raise CommandError(
                    f"{text} is not beginning, end, an offset or @TIME", USAGE
                ) from None

    def positions(
        self,
        partitions: list[Partition],
        starts: dict[Place, int],
        ends: dict[Place, int],
        at_time: dict[Place, int],
    ) -> dict[Place, int]:
        """Return the first offset to read of each partition; raises CommandError."""
        if self.at_beginning:
            return {each.place: starts[each.place] for each in partitions}
        if self.timestamp is not None:
            return {
                each.place: ends[each.place]
                if at_time[each.place] == _NO_OFFSET
                else at_time[each.place]
                for each in partitions
            }
        return starting_positions(partitions, starts, ends, self.offset)


def milliseconds(text: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601, in UTC unless it says otherwise."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{text} is no time: milliseconds, or like 2026-01-31T12:00:00", USAGE
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _consumer(cluster: Cluster, arguments: argparse.Namespace, where: Where) -> Consumer:
    """Look up partitions and offsets, and be ready to read; raises CommandError."""
    isolation, timeout_seconds = arguments.isolation, arguments.timeout
    _partitions(cluster, arguments)  # A topic that is not there is told at once.

    def look_up() -> tuple[dict[Place, int], dict[Place, int]]:
        partitions = _partitions(cluster, arguments)
        starts = offsets_at(cluster, partitions, EARLIEST, isolation)
        ends = offsets_at(cluster, partitions, LATEST, isolation)
        at_time: dict[Place, int] = {}
        if where.timestamp is not None:
            at_time = offsets_at(cluster, partitions, where.timestamp, isolation)
        return where.positions(partitions, starts, ends, at_time), ends

    positions, ends = patiently(cluster, timeout_seconds, look_up)
    return Consumer(
        cluster,
        positions,
        isolation=isolation,
        timeout_seconds=timeout_seconds,
        ends=ends if arguments.exit else None,
    )


def _partitions(cluster: Cluster, arguments: argparse.Namespace) -> list[Partition]:
    found = cluster.partitions(arguments.topic)
    if not arguments.partition:
        return found
    wanted = set(arguments.partition)
    for number in sorted(wanted - {each.number for each in found}):
        place = place_text((arguments.topic, number))
        raise CommandError(f"{place}: the topic has only {len(found)} partitions")
    return [each for each in found if each.number in wanted]
