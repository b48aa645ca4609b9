"""``barnabas bench``: produce, consume. How fast a broker is, as one client sees it.

Batches are encoded beforehand and sent five at a time, so that the broker is measured and not this
program. What is consumed is read as ``barnabas consume`` reads it, record by record in Python.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle
from typing import Any, Final, NamedTuple

from barnabas.broker.cli.arguments import add_verbs, positive_number, seconds
from barnabas.broker.cli.cluster_view import Cluster, Partition, Rejected, check
from barnabas.broker.cli.consumer import Consumer
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.interruption import Interruption
from barnabas.broker.cli.offsets import EARLIEST, LATEST, offsets_at, partition_text
from barnabas.broker.cli.output import Progress, print_json, print_pairs
from barnabas.broker.client.connection import Connection
from barnabas.protocol.compression import NAMES
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, encode_batch

_VERBS: Final = {
    "produce": "Write records as fast as the broker takes them",
    "consume": "Read a topic from its beginning as fast as it comes",
}
IN_FLIGHT: Final = 5
PRODUCE_BY_NAME: Final = 12
"""The last version of Produce that names topics; later ones want ids."""
DEFAULT_SECONDS: Final = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs with theirs."""
    parser.usage = "barnabas bench VERB TOPIC [options]"
    add_verbs(parser, _VERBS, _add_produce, _add_consume)


def _add_produce(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas bench produce TOPIC [options]"
    _add_common(parser)
    parser.add_argument(
        "--size",
        type=positive_number,
        default=100,
        metavar="BYTES",
        help="of a value (default 100)",
    )
    parser.add_argument(
        "--batch",
        type=positive_number,
        default=100,
        metavar="N",
        help="records of one (default 100)",
    )
    parser.add_argument(
        "-z", "--compression", choices=NAMES, default="none", metavar="CODEC",
        help="gzip, snappy, lz4, zstd (default none)",
    )  # fmt: skip


def _add_consume(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barnabas bench consume TOPIC [options]"
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help=argparse.SUPPRESS)
    parser.add_argument(
        "-n", "--max-messages", type=positive_number, metavar="N", help="stop after so many records"
    )
    parser.add_argument(
        "-s", "--seconds", type=seconds, default=DEFAULT_SECONDS, metavar="N",
        help="stop after so long (default 10)",
    )  # fmt: skip


@dataclass
class Run:
    """What was measured so far; latencies in seconds."""

    most: int | None
    ends_s: float
    interruption: Interruption
    started_s: float = field(default_factory=time.perf_counter)
    records: int = 0
    size_bytes: int = 0
    latencies_s: list[float] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether there were enough records, or enough time."""
        enough = self.most is not None and self.records >= self.most
        return enough or time.perf_counter() >= self.ends_s or self.interruption.has_come()

    def add(self, records: int, size_bytes: int, latency_s: float) -> None:
        """Count the records of one request, or of one round of fetches."""
        self.records += records
        self.size_bytes += size_bytes
        self.latencies_s.append(latency_s)

    def result(self) -> dict[str, Any]:
        """Return what is printed in the end."""
        took_s = max(time.perf_counter() - self.started_s, 1e-9)
        ordered = sorted(self.latencies_s) or [0.0]
        return {
            "records": self.records,
            "seconds": round(took_s, 3),
            "records_per_second": round(self.records / took_s),
            "megabytes_per_second": round(self.size_bytes / took_s / 1e6, 1),
            "p50_ms": round(ordered[len(ordered) // 2] * 1000, 2),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 2),
        }

    def line(self) -> str:
        """Describe how it goes."""
        found = self.result()
        return (
            f"{found['records']:,} records, {found['records_per_second']:,}/s, "
            f"{found['megabytes_per_second']} MB/s, p50 {found['p50_ms']} ms, "
            f"p99 {found['p99_ms']} ms"
        )


def run(arguments: argparse.Namespace) -> int:
    """Measure until it is over or a signal comes, and print what was found."""
    verb: Callable[[Cluster, argparse.Namespace, Run, Progress], None]
    verb = {"produce": produce, "consume": consume}[arguments.verb]
    with (
        Interruption() as interruption,
        Cluster.of(arguments) as cluster,
        Progress(output_waits=True) as progress,
    ):
        ends_s = time.perf_counter() + arguments.seconds
        measured = Run(arguments.max_messages, ends_s, interruption)
        try:
            verb(cluster, arguments, measured, progress)
        except KeyboardInterrupt:
            if not interruption.has_come():
                raise
        progress.clear()
        found = measured.result()
    if arguments.format == "json":
        print_json({"verb": arguments.verb, "topic": arguments.topic, **found})
    else:
        print_pairs([(name.replace("_", " "), str(value)) for name, value in found.items()])
    return interruption.exit_code


# ---------------------------------------------------------------------------------------- produce


def produce(
    cluster: Cluster, arguments: argparse.Namespace, measured: Run, progress: Progress
) -> None:
    """Send the same batch to one partition after the other, acknowledged by all replicas."""
    partitions = cluster.partitions(arguments.topic)
    for each in partitions:
        if each.leader_id < 0:
            at = partition_text(each.topic_partition)
            raise Rejected(at, ErrorCode.LEADER_NOT_AVAILABLE)
    encode = lru_cache(
        lambda records: _batch(records, arguments.size, NAMES.index(arguments.compression))
    )
    encode(min(arguments.batch, measured.most or arguments.batch))
    flying: deque[_Flying] = deque()
    # All connections at once: the first request should not pay for them.
    brokers = {each.leader_id: cluster.node(each.leader_id) for each in partitions}
    measured.started_s = time.perf_counter()
    sent = 0
    for partition in cycle(partitions):
        left = arguments.batch if measured.most is None else measured.most - sent
        if measured.is_over or not left:
            break
        records = min(arguments.batch, left)
        batch = encode(records)
        broker = brokers[partition.leader_id]
        timeout_ms = int(arguments.timeout * 1000)
        broker.send(PRODUCE, _request(partition, batch, timeout_ms), PRODUCE_BY_NAME)
        flying.append(_Flying(broker, records, len(batch), time.perf_counter()))
        sent += records
        if len(flying) == IN_FLIGHT:
            _take(flying, measured)
            progress.show(measured.line())
    while flying:
        _take(flying, measured)


class _Flying(NamedTuple):
    """One request without its answer."""

    broker: Connection
    records: int
    size_bytes: int
    sent_s: float


def _batch(records: int, size_bytes: int, compression: int) -> bytes:
    """Values of random digits: neither all alike nor beyond compression."""
    digits = random.Random(1)  # noqa: S311
    now_ms = time.time_ns() // 1_000_000
    return encode_batch(
        [
            Record(at, now_ms, None, b"%0*d" % (size_bytes, digits.randrange(10**9)))
            for at in range(records)
        ],
        compression=compression,
    )


def _request(partition: Partition, batch: bytes, timeout_ms: int) -> ProduceRequest:
    data = PartitionProduceData(partition.number, memoryview(batch))
    topics = [TopicProduceData(partition.topic, partition_data=[data])]
    return ProduceRequest(None, -1, timeout_ms, topics)


def _take(flying: deque[_Flying], measured: Run) -> None:
    """Take the oldest answer."""
    oldest = flying.popleft()
    (topic,) = oldest.broker.receive(PRODUCE).responses
    (result,) = topic.partition_responses
    check(partition_text((topic.name, result.index)), result.error_code, result.error_message)
    measured.add(oldest.records, oldest.size_bytes, time.perf_counter() - oldest.sent_s)


# ---------------------------------------------------------------------------------------- consume


def consume(
    cluster: Cluster, arguments: argparse.Namespace, measured: Run, progress: Progress
) -> None:
    """Read what there is now; what is timed is a round: a fetch at each leader, and its records."""
    partitions = cluster.partitions(arguments.topic)
    starts = offsets_at(cluster, partitions, EARLIEST, "read_committed")
    ends = offsets_at(cluster, partitions, LATEST, "read_committed")
    if starts == ends:
        raise CommandError(f"{arguments.topic}: there is nothing to read")
    consumer = Consumer(
        cluster,
        starts,
        isolation="read_committed",
        timeout_seconds=arguments.timeout,
        ends=ends,
        wait=measured.interruption.wait,
    )
    measured.started_s = time.perf_counter()
    while not (consumer.at_end or measured.is_over):
        round_s = time.perf_counter()
        records = size_bytes = 0
        for record in consumer.poll():
            records += 1
            size_bytes += len(record.key or b"") + len(record.value or b"")
            if measured.most is not None and measured.records + records >= measured.most:
                break
        measured.add(records, size_bytes, time.perf_counter() - round_s)
        progress.show(measured.line())
