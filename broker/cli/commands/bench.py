"""``barnabas bench``: produce, consume. Throughput and latency of a broker for one client.

Batches are encoded beforehand and sent five at a time, so that the broker is measured and not this
program. Consumed records are read as ``barnabas consume`` reads them, one by one in Python.

A latency is the time from sending a request to its response. Five requests are in flight at any
time, so a broker that stops delays five of them: no others are sent meanwhile. With a rate, each
request has a due time, from which its latency counts.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle
from random import Random
from typing import Any, Final, NamedTuple

from barnabas.broker.admin.exchange import Partition, by_leader, check, partition_text
from barnabas.broker.admin.offsets import EARLIEST, LATEST, offsets_at
from barnabas.broker.cli.arguments import add_operand, positive_number, seconds
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.interruption import Interruption
from barnabas.broker.cli.output import Progress, print_json, print_pairs
from barnabas.broker.cli.records.consumer import Consumer
from barnabas.broker.cli.verbs import Verb, add_verbs
from barnabas.broker.client.connection import Connection
from barnabas.protocol.compression import NAMES
from barnabas.protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, encode_batch
from barnabas.protocol.versions import PRODUCE_BY_NAME
from barnabas.storage.runtime.clock import counter_seconds, now_ns, sleep

IN_FLIGHT: Final = 5
DEFAULT_SECONDS: Final = 10.0
_LOOK_S: Final = 0.1
"""Maximum delay before a signal is noticed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their arguments."""
    add_verbs(parser, _VERBS)


def _add_produce(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "--size", type=positive_number, default=100, metavar="BYTES",
        help="size of a value (default 100)",
    )  # fmt: skip
    parser.add_argument(
        "--batch", type=positive_number, default=100, metavar="N",
        help="records of a batch (default 100)",
    )  # fmt: skip
    parser.add_argument(
        "-z", "--compression", choices=NAMES, default="none", metavar="CODEC",
        help="gzip, snappy, lz4, zstd (default none)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=positive_number, metavar="N",
        help="records a second, timed from their due time",
    )  # fmt: skip


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_operand(parser, "topic", "TOPIC")
    parser.add_argument(
        "-n", "--max-messages", type=positive_number, metavar="N", help="stop after N records"
    )
    parser.add_argument(
        "-s", "--seconds", type=seconds, default=DEFAULT_SECONDS, metavar="N",
        help="stop after N seconds (default 10)",
    )  # fmt: skip


class Latencies:
    """Histogram of times, each 1 % or less too high: of constant size."""

    _WIDTH: Final = math.log(1.01)
    _LEAST_S: Final = 1e-6

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.most_s = 0.0

    def add(self, latency_s: float) -> None:
        """Count a latency."""
        self.most_s = max(self.most_s, latency_s)
        self._buckets[math.ceil(math.log(max(latency_s, self._LEAST_S)) / self._WIDTH)] += 1

    def percentile(self, percent: int) -> float:
        """Return a percentile of the latencies, or 0 without any."""
        rank = math.ceil(self._buckets.total() * percent / 100)
        for bucket in sorted(self._buckets):
            rank -= self._buckets[bucket]
            if rank <= 0:
                return min(math.exp(bucket * self._WIDTH), self.most_s)
        return 0.0


@dataclass
class Run:
    """Measurements so far."""

    most: int | None
    seconds: float
    interruption: Interruption
    started_s: float = field(default_factory=counter_seconds)
    records: int = 0
    size_bytes: int = 0
    """Total size of keys and values."""
    latencies: Latencies = field(default_factory=Latencies)

    @property
    def ends_s(self) -> float:
        """Time of the end, in seconds."""
        return self.started_s + self.seconds

    @property
    def is_over(self) -> bool:
        """Return whether enough records were measured, or enough time has passed."""
        enough = self.most is not None and self.records >= self.most
        return enough or counter_seconds() >= self.ends_s or self.interruption.has_come()

    def begin(self) -> None:
        """Start the measurement."""
        self.started_s = counter_seconds()

    def add(self, records: int, size_bytes: int, latency_s: float) -> None:
        """Count the records of one request, or of one round of fetches."""
        self.records += records
        self.size_bytes += size_bytes
        self.latencies.add(latency_s)

    def result(self) -> dict[str, Any]:
        """Return the final figures."""
        took_s = max(counter_seconds() - self.started_s, 1e-9)
        return {
            "records": self.records,
            "seconds": round(took_s, 3),
            "records_per_second": round(self.records / took_s),
            "megabytes_per_second": round(self.size_bytes / took_s / 1e6, 1),
            "p50_ms": round(self.latencies.percentile(50) * 1000, 2),
            "p99_ms": round(self.latencies.percentile(99) * 1000, 2),
            "max_ms": round(self.latencies.most_s * 1000, 2),
        }

    def line(self) -> str:
        """Return the line of the progress."""
        found = self.result()
        return (
            f"{found['records']:,} records, {found['records_per_second']:,}/s, "
            f"{found['megabytes_per_second']} MB/s, p50 {found['p50_ms']} ms, "
            f"p99 {found['p99_ms']} ms, max {found['max_ms']} ms"
        )

    def show(self, progress: Progress) -> None:
        """Show the current figures, if a new line is due."""
        if progress.is_due:
            progress.show(self.line())


def run(arguments: argparse.Namespace) -> int:
    """Measure until the end or a signal, and print the figures."""
    with (
        Interruption() as interruption,
        Cluster.of(arguments) as cluster,
        Progress(output_waits=True) as progress,
    ):
        measured = Run(arguments.max_messages, arguments.seconds, interruption)
        try:
            arguments.action(cluster, arguments, measured, progress)
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
    encode = lru_cache(
        lambda records: _batch(records, arguments.size, NAMES.index(arguments.compression))
    )
    encode(min(arguments.batch, measured.most or arguments.batch))
    flying: deque[_Flying] = deque()
    # All connections at once: the first request should not pay for them.
    brokers = {leader_id: cluster.node(leader_id) for leader_id in by_leader(partitions)}
    timeout_ms = int(arguments.timeout * 1000)
    measured.begin()
    for partition, (records, due_s) in zip(
        cycle(partitions), _sends(arguments, measured, flying), strict=False
    ):
        broker = brokers[partition.leader_id]
        request = _request(partition, encode(records), timeout_ms)
        broker.send(PRODUCE, request, PRODUCE_BY_NAME)
        since_s = counter_seconds() if due_s is None else due_s
        flying.append(_Flying(broker, records, records * arguments.size, since_s))
        if len(flying) == IN_FLIGHT:
            _take(flying, measured)
        measured.show(progress)
    while flying:
        _take(flying, measured)


def _sends(
    arguments: argparse.Namespace, measured: Run, flying: deque[_Flying]
) -> Iterator[tuple[int, float | None]]:
    """Yield the number of records to send now and their due time, until the end."""
    sent = 0
    due_s = None
    while sent != measured.most:
        if arguments.rate is not None:
            due_s = measured.started_s + sent / arguments.rate
            _wait_until(min(due_s, measured.ends_s), flying, measured)
        if measured.is_over:
            return
        left = arguments.batch if measured.most is None else measured.most - sent
        records = min(arguments.batch, left)
        yield records, due_s
        sent += records


class _Flying(NamedTuple):
    """One request without its response."""

    broker: Connection
    records: int
    size_bytes: int
    """Size of the values."""
    since_s: float
    """Time when it was sent, or should have been sent."""


def _batch(records: int, size_bytes: int, compression: int) -> bytes:
    """Return a batch with values of random digits, which compress moderately."""
    digits = Random(1)  # noqa: S311
    now_ms = now_ns() // 1_000_000
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


def _wait_until(time_s: float, flying: deque[_Flying], measured: Run) -> None:
    """Wait, and receive responses in that time."""
    while (left_s := time_s - counter_seconds()) > 0 and not measured.interruption.has_come():
        if not flying:
            sleep(min(left_s, _LOOK_S))
        elif flying[0].broker.has_answer(min(left_s, _LOOK_S)):
            _take(flying, measured)


def _take(flying: deque[_Flying], measured: Run) -> None:
    """Receive the oldest response."""
    oldest = flying.popleft()
    (topic,) = oldest.broker.receive(PRODUCE).responses
    (result,) = topic.partition_responses
    check(partition_text((topic.name, result.index)), result.error_code, result.error_message)
    measured.add(oldest.records, oldest.size_bytes, counter_seconds() - oldest.since_s)


# ---------------------------------------------------------------------------------------- consume


def consume(
    cluster: Cluster, arguments: argparse.Namespace, measured: Run, progress: Progress
) -> None:
    """Read the present records; each round is timed: a fetch at each leader, and its records."""
    partitions = cluster.partitions(arguments.topic)
    starts = cluster.run(offsets_at(partitions, EARLIEST, "read_committed"))
    ends = cluster.run(offsets_at(partitions, LATEST, "read_committed"))
    if starts == ends:
        raise CommandError(f"{arguments.topic}: the topic has no records")
    consumer = Consumer(
        cluster,
        starts,
        isolation="read_committed",
        ends=ends,
        wait=measured.interruption.wait,
    )
    measured.begin()
    while not (consumer.at_end or measured.is_over):
        round_s = counter_seconds()
        records = size_bytes = 0
        for record in consumer.poll():
            records += 1
            size_bytes += len(record.key or b"") + len(record.value or b"")
            if measured.most is not None and measured.records + records >= measured.most:
                break
        measured.add(records, size_bytes, counter_seconds() - round_s)
        measured.show(progress)


_VERBS: Final = {
    "produce": Verb(
        "Write records as fast as the broker accepts them",
        "TOPIC [options]",
        _add_produce,
        produce,
    ),
    "consume": Verb(
        "Read a topic from its beginning as fast as possible",
        "TOPIC [options]",
        _add_common,
        consume,
    ),
}
