"""Run the rows on both clusters in turn, and collect what was seen.

After a run of all rows a broker of each cluster is killed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple

from tests.bench.cluster.producers import Place, run_transactions
from tests.bench.cluster.rows import BULK_RECORDS, ROWS, VALUE_BYTES, Row
from tests.bench.cluster.sides import (
    SIDES,
    TOPIC,
    Layout,
    Side,
    key_coordinated_by,
    layout,
    make_topic,
)
from tests.bench.end_to_end import EndToEnd, Peer
from tests.bench.frames import Frames, batch, produce_error_position, produce_frame
from tests.bench.load import ClosedLoop, Measurement, RequestFailed
from tests.counterparts.usage import CpuTime

IDLE_S = 3.0
TAKEOVER_TIMEOUT_S = 60.0
ASK_AGAIN_S = 0.02
BULK_MORE_S = 6.0
"""Time for which bulk runs longer than the transactions behind it."""


class Effort(NamedTuple):
    """Duration and repetition of the measurements."""

    rounds: int
    first_warm_up_s: float
    """Warm-up per cluster: Apache Kafka is at its speed after its compiler has seen the load."""
    warm_up_s: float
    duration_s: float


FULL = Effort(rounds=2, first_warm_up_s=8.0, warm_up_s=0.5, duration_s=2.5)
QUICK = Effort(rounds=1, first_warm_up_s=1.0, warm_up_s=0.3, duration_s=1.0)


class Measured(NamedTuple):
    """Result of one run of a row; rates per second, times in seconds."""

    rate: float
    p50_s: float
    p99_s: float
    end_p50_s: float
    """Median of EndTxn alone; 0 without transactions."""
    end_p99_s: float
    brokers_cpu_s: float
    """CPU time for one record, all brokers together."""
    store_cpu_s: float
    """CPU time for one record, the store's processes together."""
    client_share: float
    """Share of one core that the load client uses."""
    again: float
    """Number of retries of one request."""
    megabytes: float = 0.0
    """MB of values per second; 0 if the row does not count them."""
    brokers_cpu_s_of_mb: float = 0.0
    """CPU time for one MB of values, all brokers together."""
    store_cpu_s_of_mb: float = 0.0
    """CPU time for one MB of values, the store's processes together."""

    @property
    def megabytes_for_each_cpu_second(self) -> float:
        """MB of values for each CPU second of brokers and store."""
        return 1 / (self.brokers_cpu_s_of_mb + self.store_cpu_s_of_mb)


@dataclass
class Results:
    """Medians by cluster and row; the rest by cluster: seconds, and bytes of brokers and store."""

    rows: dict[tuple[str, str], Measured] = field(default_factory=dict)
    start_up_s: dict[str, float] = field(default_factory=dict)
    takeover_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Seconds until the first and the last partition of a killed broker has accepted a record."""
    idle_bytes: dict[str, tuple[int, int]] = field(default_factory=dict)
    loaded_bytes: dict[str, tuple[int, int]] = field(default_factory=dict)


def run(names: Sequence[str], rows: Sequence[Row], effort: Effort) -> Results:
    """Start the clusters, run every row in every round on each of them in turn, take medians."""
    results = Results()
    with ExitStack() as stack:
        sides: dict[str, Side] = {}
        for name in names:
            _say(f"starting three {name}")
            sides[name] = stack.enter_context(SIDES[name]())
        layouts = {name: make_topic(side) for name, side in sides.items()}
        time.sleep(IDLE_S)
        for name, side in sides.items():
            results.start_up_s[name] = side.start_up_s
            results.idle_bytes[name] = side.brokers_bytes(), side.store_bytes()
            _warm_up(side, layouts[name], effort.first_warm_up_s)
        for row in rows:
            for name, measured in _rounds(sides, layouts, row, effort).items():
                results.rows[name, row.key] = measured
        for name, side in sides.items():
            results.loaded_bytes[name] = side.brokers_bytes(), side.store_bytes()
        for name, side in sides.items() if len(rows) == len(ROWS) else ():
            _say(f"a broker of {name} is killed")
            results.takeover_s[name] = takeover(side, layouts[name])
    return results


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _warm_up(side: Side, where: Layout, duration_s: float) -> None:
    row = Row("", "", "produce", producers=15, brokers=3, in_flight=5)
    _run_row(side, where, row, 0.0, duration_s)


def _rounds(
    sides: dict[str, Side], layouts: dict[str, Layout], row: Row, effort: Effort
) -> dict[str, Measured]:
    measured: dict[str, list[Measured]] = {name: [] for name in sides}
    for number in range(effort.rounds):
        for name, side in sides.items():
            # What the previous run left dirty is written now and not during this run.
            os.sync()
            _say(f"{row.title}: {name}, round {number + 1}")
            measured[name].append(
                _run_row(side, layouts[name], row, effort.warm_up_s, effort.duration_s)
            )
    return {
        name: Measured(*(statistics.median(column) for column in zip(*each, strict=True)))
        for name, each in measured.items()
    }


def _run_row(side: Side, where: Layout, row: Row, warm_up_s: float, duration_s: float) -> Measured:
    side.samples.clear()
    if row.kind == "transaction":
        places = [place_of(side, where, row, number) for number in range(row.producers)]
        with _bulk(where, row, warm_up_s, duration_s):
            measured, ends, again = run_transactions(TOPIC, places, warm_up_s, duration_s, side.cpu)
        middle, high = ends[len(ends) // 2], ends[min(len(ends) - 1, len(ends) * 99 // 100)]
        return _measured(side, row, measured, duration_s, (middle, high), again)
    if row.kind == "end-to-end":
        pair = EndToEnd(where.ports[where.leader_of(0)], TOPIC)
        whole = pair.run(warm_up_s, duration_s, side.cpu)
    else:
        whole = _produce(where, row).run(warm_up_s, duration_s, side.cpu)
    return _measured(side, row, whole, duration_s)


def _measured(
    side: Side,
    row: Row,
    whole: Measurement,
    duration_s: float,
    ends: tuple[float, float] = (0.0, 0.0),
    again: int = 0,
) -> Measured:
    first, last = side.samples[0], side.samples[-1]
    count = whole.rate * duration_s
    records = count * row.records_of_one
    brokers_s, store_s = last.brokers_s - first.brokers_s, last.store_s - first.store_s
    megabytes = count * row.megabytes_of_one
    return Measured(
        whole.rate,
        whole.p50_s,
        whole.p99_s,
        *ends,
        brokers_s / records,
        store_s / records,
        whole.client_share,
        again / count,
        megabytes / duration_s,
        brokers_s / megabytes if megabytes else 0.0,
        store_s / megabytes if megabytes else 0.0,
    )


@contextmanager
def _bulk(where: Layout, row: Row, warm_up_s: float, duration_s: float) -> Iterator[None]:
    """Produce in bulk from a process of its own; its connections take turns with partitions."""
    if not row.behind:
        yield
        return
    bulk = Row("", "", "produce", row.behind, row.brokers, records=BULK_RECORDS, in_flight=2)
    # It starts before and ends after the measurement.
    process = get_context("spawn").Process(
        target=_produce_bulk, args=(where, bulk, warm_up_s, duration_s + BULK_MORE_S), daemon=True
    )
    process.start()
    try:
        time.sleep(BULK_MORE_S / 2)
        yield
        if not process.is_alive():
            raise RequestFailed("the bulk behind which transactions end has ended before them")
    finally:
        process.terminate()
        process.join()


def _produce_bulk(where: Layout, row: Row, warm_up_s: float, duration_s: float) -> None:
    _produce(where, row).run(warm_up_s, duration_s, lambda: CpuTime(0.0, 0.0))


def _produce(where: Layout, row: Row) -> ClosedLoop:
    """Every connection has a partition of its own."""
    encoded, position = batch(row.records, VALUE_BYTES), produce_error_position(TOPIC)
    chosen = [_spread(where, row.brokers, number) for number in range(row.producers)]
    return ClosedLoop(
        [where.ports[node] for node, _ in chosen],
        [Frames([produce_frame(TOPIC, partition, encoded)], position) for _, partition in chosen],
        row.in_flight,
    )


def _spread(where: Layout, brokers: int, number: int) -> tuple[int, int]:
    """Return the node and the partition that is the ``number``-th if so many brokers take turns."""
    node = where.nodes[number % brokers]
    led = where.led_by[node]
    return node, led[number // brokers % len(led)]


def place_of(side: Side, where: Layout, row: Row, number: int) -> Place:
    """Return the partitions and coordinator of a producer: the first of its brokers.

    Producers over several brokers take turns with their coordinators. Each has partitions of its
    own, as far as there are enough.
    """
    partitions: dict[int, list[int]] = {}
    for index in range(row.partitions):
        node, partition = _spread(where, row.brokers, number * row.partitions + index)
        partitions.setdefault(where.ports[node], []).append(partition)
    coordinator = where.nodes[number % row.brokers]
    key = key_coordinated_by(side, coordinator, f"{row.key}-{time.time_ns()}-{number}")
    return Place(key, where.ports[coordinator], partitions)


def takeover(side: Side, where: Layout) -> tuple[float, float]:
    """Kill the last broker: how long until the first and all of its partitions take records?"""
    victim = side.brokers[-1]
    node = next(node for node, port in where.ports.items() if port == victim.port)
    left = set(where.led_by[node])
    encoded, position = batch(1, 1), produce_error_position(TOPIC)
    victim.kill()
    killed, first_s = time.monotonic(), 0.0
    while left:
        now_s = time.monotonic() - killed
        if now_s > TAKEOVER_TIMEOUT_S:
            raise RequestFailed(f"{len(left)} partitions of the killed broker take no records")
        time.sleep(ASK_AGAIN_S)
        for other, partitions in layout(side).led_by.items():
            found = left.intersection(partitions)
            if other in {node, -1} or not found:
                continue
            peer = Peer(where.ports[other])
            for partition in found:
                answer = peer.ask(produce_frame(TOPIC, partition, encoded))
                if answer[position : position + 2] == b"\0\0":
                    left.remove(partition)
                    first_s = first_s or time.monotonic() - killed
            peer.close()
    return first_s, time.monotonic() - killed
