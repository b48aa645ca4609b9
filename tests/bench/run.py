"""Run the rows against the brokers in turn and collect what was measured."""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.bench.controlled import control, give_rights
from tests.bench.end_to_end import EndToEnd, Peer
from tests.bench.frames import (
    FetchPlace,
    Frames,
    batch,
    create_topic_frame,
    delete_topic_frame,
    fetch_error_position,
    fetch_frame,
    find_coordinator_frame,
    offset_commit_error_position,
    offset_commit_frame,
    produce_error_position,
    produce_frame,
)
from tests.bench.load import ClosedLoop, Measurement, RequestFailed
from tests.bench.memory import touch_memory
from tests.bench.rebalance import Rebalance
from tests.bench.rows import ACL_ROWS, IN_FLIGHT, ROWS, Row
from tests.bench.spark_job import SparkMeasurement
from tests.bench.spark_rows import SparkRow
from tests.bench.spark_run import run_spark
from tests.bench.starts import StartMeasurement
from tests.bench.transactions import Transactions
from tests.certificates import Authority
from tests.counterparts.apache_kafka import ApacheKafkaAsItComes
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import BrokerProcess

BROKERS: dict[str, type[BrokerProcess]] = {
    "barnabas": BarnabasProcess,
    "kafka": ApacheKafkaAsItComes,
}
TWO_PHASE_COMMIT = {"barnabas": {"transaction_two_phase_commit_enable": "true"}}
"""Settings that the two_phase sink of Spark needs."""
CREATE_TIMEOUT_S = 30
IDLE_S = 3.0
SLICE_BYTES = 1 << 20
FETCH_BATCH_RECORDS = 640  # 70 KB: some fourteen whole batches in a slice
FETCH_PARTITION_BATCHES = 480
FETCH_SLICES = 32
GROUPS_MADE_READY = 8
BRIEF_WARM_UP_S, BRIEF_DURATION_S = 0.3, 1.5
"""Times of rows that write much: touched memory stays for two seconds (``memory.py``)."""


class Effort(NamedTuple):
    """Duration and repetition of the measurements."""

    rounds: int
    first_warm_up_s: float
    """Warm-up per broker: Apache Kafka is at its speed after its compiler has seen the load."""
    warm_up_s: float
    duration_s: float
    starts: int
    touched_bytes: int
    """Memory touched before each measurement that writes much, or 0 for none."""


FULL = Effort(
    rounds=3, first_warm_up_s=15.0, warm_up_s=1.5, duration_s=3.0, starts=5, touched_bytes=4 << 30
)
QUICK = Effort(
    rounds=1, first_warm_up_s=2.0, warm_up_s=0.5, duration_s=1.0, starts=1, touched_bytes=0
)


@dataclass
class Results:
    """Medians by broker and row; start-up in seconds and memory in bytes by broker."""

    rows: dict[tuple[str, str], Measurement] = field(default_factory=dict)
    spark: dict[tuple[str, str], SparkMeasurement] = field(default_factory=dict)
    start_up_s: dict[str, float] = field(default_factory=dict)
    idle_bytes: dict[str, int] = field(default_factory=dict)
    loaded_bytes: dict[str, int] = field(default_factory=dict)
    starts: dict[str, StartMeasurement] = field(default_factory=dict)


def run(
    names: Sequence[str], rows: Sequence[Row], spark_rows: Sequence[SparkRow], effort: Effort
) -> Results:
    """Start the brokers, run every row in every round on each of them in turn, take medians."""
    results = Results()
    with ExitStack() as stack:
        brokers = {
            name: stack.enter_context(BROKERS[name](**TWO_PHASE_COMMIT.get(name, {})))
            for name in names
        }
        for name, broker in brokers.items():
            results.start_up_s[name] = _start_up(broker, effort.starts)
        time.sleep(IDLE_S)
        for name, broker in brokers.items():
            results.idle_bytes[name] = broker.resident_bytes()
        for broker in brokers.values():
            _warm_up(broker, effort.first_warm_up_s)
        for row in rows:
            if row.tls or row in ACL_ROWS:
                continue
            for name, measurements in _rounds(brokers, row, effort).items():
                results.rows[name, row.key] = _median(measurements)
        results.spark = run_spark(brokers, spark_rows, quick=effort is QUICK)
        for name, broker in brokers.items():
            results.loaded_bytes[name] = broker.resident_bytes()
    if any(row.tls for row in rows):
        _run_tls(names, [row for row in rows if row.tls], effort, results)
    if any(row.acls for row in rows):
        _run_controlled(names, [row for row in rows if row.acls], effort, results)
    return results


def _run_controlled(
    names: Sequence[str], rows: Sequence[Row], effort: Effort, results: Results
) -> None:
    """The same on brokers with ACLs and on such without, in turn: they differ by little."""
    with ExitStack() as stack:
        controlled = {name: stack.enter_context(control(BROKERS[name]())) for name in names}
        for broker in controlled.values():
            give_rights(broker)
        free = {f"{name}, free": stack.enter_context(BROKERS[name]()) for name in names}
        brokers = controlled | free
        for broker in brokers.values():
            _warm_up(broker, effort.first_warm_up_s)
        for row in rows:
            measured = _rounds(brokers, row, effort)
            for name in names:
                results.rows[name, row.key] = _median(measured[name])
                results.rows[name, row.versus[0].key] = _median(measured[f"{name}, free"])


def _run_tls(names: Sequence[str], rows: Sequence[Row], effort: Effort, results: Results) -> None:
    """The same on brokers that have a listener with TLS, too: what it costs is theirs alone."""
    credential = Authority().issue()
    with ExitStack() as stack:
        brokers = {
            name: stack.enter_context(BROKERS[name]().serve_tls(credential)) for name in names
        }
        for broker in brokers.values():
            _warm_up(broker, effort.first_warm_up_s, tls=True)
        for row in rows:
            for name, measurements in _rounds(brokers, row, effort).items():
                results.rows[name, row.key] = _median(measurements)


def _start_up(broker: BrokerProcess, starts: int) -> float:
    """Return the median time from process start to the first Metadata answer."""
    times = [broker.start_up_s]
    for _ in range(starts - 1):
        # A clean stop: recovery after a crash is another question.
        broker.terminate()
        broker.restart()
        times.append(broker.start_up_s)
    return statistics.median(times)


def _warm_up(broker: BrokerProcess, duration_s: float, *, tls: bool = False) -> None:
    """Load a broker with single records, and throw the measurement away."""
    row, topic = ROWS[0], "bench-warm-up"
    create_topic(broker.port, topic, row.connections)
    loop = _closed_loop(broker, produce_frames(topic, row), IN_FLIGHT, tls=tls)
    loop.run(0.0, duration_s, broker.cpu_time)
    delete_topic(broker.port, topic)


def _rounds(
    brokers: dict[str, BrokerProcess], row: Row, effort: Effort
) -> dict[str, list[Measurement]]:
    measurements: dict[str, list[Measurement]] = {name: [] for name in brokers}
    topic = f"bench-{row.key}"
    for broker in brokers.values():
        create_topic(broker.port, topic, row.topic_partitions)
        if row.kind in {"commit", "rebalance"}:
            find_coordinator(broker.port, topic)
    for number in range(effort.rounds):
        for name, broker in brokers.items():
            # What the previous run left dirty is written now and not during this run.
            os.sync()
            print(f"  {row.title}: {name}, round {number + 1}", file=sys.stderr, flush=True)
            measured = _measure(broker, row, topic, effort, first=number == 0)
            measurements[name].append(measured)
    for broker in brokers.values():
        delete_topic(broker.port, topic)
    return measurements


def _measure(
    broker: BrokerProcess, row: Row, topic: str, effort: Effort, *, first: bool
) -> Measurement:
    # The first round also has code to compile that only this row runs.
    warm_up_s = effort.warm_up_s * (2 if first else 1)
    if not (effort.touched_bytes and row.writes_much):
        return run_row(broker, row, topic, warm_up_s, effort.duration_s)
    if first:
        run_row(broker, row, topic, 0.0, warm_up_s)
        os.sync()
    touch_memory(effort.touched_bytes)
    return run_row(broker, row, topic, BRIEF_WARM_UP_S, BRIEF_DURATION_S)


def run_row(
    broker: BrokerProcess, row: Row, topic: str, warm_up_s: float, duration_s: float
) -> Measurement:
    if row.kind == "end-to-end":
        pair = EndToEnd(broker.port, topic)
        return pair.run(warm_up_s, duration_s, broker.cpu_time)
    if row.kind == "rebalance":
        group = Rebalance(broker.port, topic, row.connections)
        return group.run(warm_up_s, duration_s, broker.cpu_time)
    if row.kind == "transaction":
        producers = Transactions(
            broker.port,
            topic,
            producers=row.connections,
            partitions=row.partitions,
            records=row.records,
            plain_in_flight=row.plain_in_flight,
        )
        return producers.run(warm_up_s, duration_s, broker.cpu_time)
    if row.kind == "commit":
        loop = ClosedLoop(broker.port, commit_frames(topic, row), in_flight=IN_FLIGHT)
    elif row.kind == "fetch":
        _preload(broker.port, topic, row.connections)
        loop = _closed_loop(broker, fetch_frames(topic, row.connections), 1, tls=row.tls)
    else:
        loop = _closed_loop(broker, produce_frames(topic, row), IN_FLIGHT, tls=row.tls)
    return loop.run(warm_up_s, duration_s, broker.cpu_time)


def _closed_loop(
    broker: BrokerProcess, frames: Sequence[Frames], in_flight: int, *, tls: bool
) -> ClosedLoop:
    port = broker.more_ports["SSL"] if tls else broker.port
    return ClosedLoop(port, frames, in_flight, tls=tls)


def produce_frames(topic: str, row: Row) -> list[Frames]:
    """Return the frames of each connection: every connection has a partition of its own."""
    encoded = batch(row.records, row.value_bytes)
    error_position = produce_error_position(topic)
    return [
        Frames([produce_frame(topic, partition, encoded)], error_position)
        for partition in range(row.connections)
    ]


def commit_frames(topic: str, row: Row) -> list[Frames]:
    """Return the frames of each connection: every connection has a group of its own."""
    error_position = offset_commit_error_position(topic)
    return [
        Frames([offset_commit_frame(f"{topic}-{number}", topic, number)], error_position)
        for number in range(row.connections)
    ]


def fetch_frames(topic: str, connections: int) -> list[Frames]:
    """Return the frames of each connection: slices spread over a partition of its own."""
    step = (FETCH_PARTITION_BATCHES - 20) // FETCH_SLICES * FETCH_BATCH_RECORDS
    error_position = fetch_error_position(topic)
    return [
        Frames(
            [
                fetch_frame(FetchPlace(topic, partition, index * step, SLICE_BYTES, 500))
                for index in range(FETCH_SLICES)
            ],
            error_position,
        )
        for partition in range(connections)
    ]


def _preload(port: int, topic: str, partitions: int) -> None:
    """Fill the partitions for the fetch row, unless an earlier round did."""
    peer = Peer(port)
    encoded = batch(FETCH_BATCH_RECORDS, 100)
    position = produce_error_position(topic)
    for partition in range(partitions):
        frame = produce_frame(topic, partition, encoded)
        for _ in range(FETCH_PARTITION_BATCHES):
            answer = peer.ask(frame)
            base_offset = int.from_bytes(answer[position + 2 : position + 10], "big")
            if answer[position : position + 2] != b"\0\0":
                raise RequestFailed(f"could not fill {topic}: {answer[position:].hex()}")
            if base_offset >= FETCH_PARTITION_BATCHES * FETCH_BATCH_RECORDS:
                break
    peer.close()


def create_topic(port: int, topic: str, partitions: int) -> None:
    """Create a topic and wait until each of its partitions takes a record."""
    peer = Peer(port)
    answer = peer.ask(create_topic_frame(topic, partitions))
    # Size, correlation id, throttle time, topic count, name, error code.
    error = int.from_bytes(answer[18 + len(topic) : 20 + len(topic)], "big", signed=True)
    if error:
        raise RequestFailed(f"CreateTopics answered error code {error}")
    encoded = batch(1, 1)
    position = produce_error_position(topic)
    deadline = time.monotonic() + CREATE_TIMEOUT_S
    for partition in range(partitions):
        frame = produce_frame(topic, partition, encoded)
        while peer.ask(frame)[position : position + 2] != b"\0\0":
            if time.monotonic() > deadline:
                raise RequestFailed(f"{topic}-{partition} takes no records")
            time.sleep(0.05)
    peer.close()


def find_coordinator(port: int, topic: str) -> None:
    """Wait until groups can commit offsets of a topic."""
    peer = Peer(port)
    position = offset_commit_error_position(topic)
    deadline = time.monotonic() + CREATE_TIMEOUT_S
    for number in range(GROUPS_MADE_READY):
        group = f"{topic}-{number}"
        peer.ask(find_coordinator_frame(group))
        frame = offset_commit_frame(group, topic, 0)
        while peer.ask(frame)[position : position + 2] != b"\0\0":
            if time.monotonic() > deadline:
                raise RequestFailed(f"group {group} takes no offsets")
            time.sleep(0.05)
    peer.close()


def delete_topic(port: int, topic: str) -> None:
    """Delete a topic; its files may go later."""
    peer = Peer(port)
    peer.ask(delete_topic_frame(topic))
    peer.close()


def _median(measurements: Sequence[Measurement]) -> Measurement:
    """Return the medians of several runs, each number for itself."""
    return Measurement(*(statistics.median(column) for column in zip(*measurements, strict=True)))
