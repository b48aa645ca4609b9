"""``barnabas produce``: lines of standard input become records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

from barnabas.broker.admin.exchange import Rejected, partition_text
from barnabas.broker.cli.arguments import (
    add_format,
    add_server,
    header,
    whole_number,
)
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import FAILED, OK, USAGE, CommandError
from barnabas.broker.cli.output import Progress, count_text, print_json
from barnabas.broker.cli.printing import print_text
from barnabas.broker.cli.records.producer import ALL, LEADER, NO_ACKS, Producer, ProducerOptions
from barnabas.broker.cli.records.record_text import (
    BadRecord,
    Headers,
    NewRecord,
    record_from_json,
    unescape,
)
from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.compression import NAMES

LINE_BYTES_MAX = 64 * 1024 * 1024

_ACKS = {"all": ALL, "-1": ALL, "1": LEADER, "0": NO_ACKS}
_READ_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topic and the input format."""
    parser.usage = "barnabas produce TOPIC [options] < lines"
    parser.add_argument("topic", metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument(
        "-K",
        "--key-separator",
        metavar="TEXT",
        help="separator after the key, such as : or \\t",
    )
    parser.add_argument(
        "-H",
        "--header",
        action="append",
        type=header,
        default=[],
        metavar="KEY=VALUE",
        help="add a header to every record; repeatable",
    )
    parser.add_argument(
        "-Z", "--empty-is-null", action="store_true", help="an empty key or value is null"
    )
    parser.add_argument(
        "--input",
        choices=("lines", "json"),
        default="lines",
        help="json: what 'consume --format json' prints",
    )
    parser.add_argument(
        "-J", "--json-values", action="store_true", help="with JSON: write values as JSON"
    )
    parser.add_argument(
        "-p", "--partition", type=whole_number, metavar="N", help="partition (default: by the key)"
    )
    parser.add_argument(
        "--acks",
        choices=_ACKS,
        default="all",
        metavar="all|1|0",
        help="acknowledgements to wait for (default all)",
    )
    parser.add_argument(
        "-z", "--compression", choices=NAMES, default="none", metavar="CODEC",
        help="gzip, snappy, lz4, zstd (default none)",
    )  # fmt: skip
    parser.add_argument(
        "--no-idempotence",
        action="store_true",
        help="do not retry; implied by acks 1 and 0",
    )
    add_server(parser, timeout_seconds=30)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write every line, then report the partitions."""
    acks = _ACKS[arguments.acks]
    options = ProducerOptions(
        acks,
        NAMES.index(arguments.compression),
        acks == ALL and not arguments.no_idempotence,
    )
    parse = parser_of(arguments)
    with Cluster.of(arguments) as cluster:
        producer = Producer(cluster, arguments.topic, options)
        try:
            with Progress(output_waits=not sys.stdin.isatty()) as progress:
                for records in read_records(sys.stdin.buffer, parse):
                    producer.write(records)
                    progress.show(f"{count_text(producer.records, 'record')} written")
        except (CommandError, Rejected, Unreachable) as problem:
            done = count_text(producer.records, "record")
            exit_code = problem.exit_code if isinstance(problem, CommandError) else FAILED
            raise CommandError(f"{problem}; {done} written before", exit_code) from None
    _print_written(producer, arguments)
    return OK


Parse = Callable[[bytes], NewRecord]


def parser_of(arguments: argparse.Namespace) -> Parse:
    """Return the parser of a line, which raises BadRecord."""
    headers: Headers = tuple((name, value.encode()) for name, value in arguments.header)
    separator: str | None = arguments.key_separator
    parse: Parse
    if arguments.input == "json":
        if separator is not None or arguments.empty_is_null:
            raise CommandError("-K and -Z are for lines, not for JSON", USAGE)
        parse = partial(record_from_json, json_values=arguments.json_values)
    elif arguments.json_values:
        raise CommandError("-J goes with --input json only", USAGE)
    else:
        if separator == "":
            raise CommandError("the key separator is empty", USAGE)
        between = unescape(separator).encode() if separator is not None else None
        parse = _line_parser(between, empty_is_null=arguments.empty_is_null)

    def parse_with_options(line: bytes) -> NewRecord:
        record = parse(line)
        partition = record.partition if arguments.partition is None else arguments.partition
        return record._replace(headers=record.headers + headers, partition=partition)

    return parse_with_options


def _line_parser(separator: bytes | None, *, empty_is_null: bool) -> Parse:
    def parse(line: bytes) -> NewRecord:
        key: bytes | None = None
        value: bytes | None = line
        if separator is not None:
            key, found, value = line.partition(separator)
            if not found:
                raise BadRecord(f"no key separator {separator.decode()!r}")
        if empty_is_null:
            key, value = key or None, value or None
        return NewRecord(key, value)

    return parse


def read_records(stream: BinaryIO, parse: Parse) -> Iterator[list[NewRecord]]:
    """Yield the records of the lines received together; raises CommandError.

    What precedes a bad line is yielded before the error is raised.
    """
    number = 0
    for lines in read_lines(stream):
        records = []
        for line in lines:
            number += 1
            try:
                records.append(parse(line))
            except BadRecord as problem:
                if records:
                    yield records
                raise CommandError(f"line {number}: {problem}") from None
        if records:
            yield records


def read_lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield complete lines, all of one read at a time; raises CommandError."""
    rest = bytearray()
    while data := _read(stream):
        lines = data.split(b"\n")
        lines[0] = bytes(rest) + lines[0] if rest and len(lines) > 1 else lines[0]
        if len(lines) > 1:
            yield lines[:-1]
            rest = bytearray(lines[-1])
        else:
            rest += data
        if len(rest) > LINE_BYTES_MAX:
            raise CommandError(f"a line is longer than {LINE_BYTES_MAX} bytes")
    if rest:
        yield [bytes(rest)]


def _read(stream: BinaryIO) -> bytes:
    try:
        return stream.read1(_READ_BYTES)  # type: ignore[attr-defined, no-any-return]
    except OSError as error:
        raise CommandError(f"standard input: {error.strerror}") from None


def _print_written(producer: Producer, arguments: argparse.Namespace) -> None:
    partitions = [
        {
            "partition": number,
            "records": written.records,
            "first_offset": written.first_offset,
            "last_offset": written.last_offset,
        }
        for number, written in sorted(producer.written.items())
    ]
    if arguments.format == "json":
        print_json(
            {"topic": arguments.topic, "records": producer.records, "partitions": partitions}
        )
        return
    if not partitions:
        print_text("nothing to write")
    for each in partitions:
        topic_partition = partition_text((arguments.topic, each["partition"] or 0))
        offsets = f", offsets {each['first_offset']} to {each['last_offset']}"
        known = each["first_offset"] is not None
        count = count_text(each["records"] or 0, "record")
        print_text(f"{topic_partition}: {count}{offsets if known else ''}")
