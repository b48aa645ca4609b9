"""Time without a leader for many partitions: a failover of the store, a stop, a join, a kill.

Three brokers over a PostgreSQL pair lead a topic of many partitions, with records in each.
Requests and responses go over the wire. These responses count: a durable Produce, a Fetch of all
written records, and a producer for a transactional id.

All partitions are queried in cycles. Every number here is too large by up to one cycle, which is
measured, too.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.bench.cluster.asking import Lines
from tests.bench.cluster.sides import STORE_SETTINGS
from tests.bench.frames import batch
from tests.bench.load import RequestFailed
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import Pair, Server
from tests.counterparts.probe import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "takeovers"
BROKERS = 3
RECORDS_OF_BATCH = 10
BATCHES = 3
SAMPLE = 32
"""Partitions that are written to all the time while a broker stops: one commit for all of them."""
ASK_AGAIN_S = 0.01
SETTLED_S = 2.0
"""Time without a change of leaders, after which none is expected."""
READY_TIMEOUT_S = 120.0
OUTAGE_TIMEOUT_S = 120.0
CLOSED = "barnabas_cluster_logs_closed_total"
LOADED = "barnabas_cluster_takeover_seconds_count"


class Size(NamedTuple):
    """Size of the cluster."""

    partitions: int = 1000
    transactional_ids: int = 50
    lease_ms: int = 10_000
    settings: tuple[tuple[str, str], ...] = ()
    """More settings of the brokers."""
    in_memory: bool = True
    """Whether the files of PostgreSQL are in memory where there is room."""


class Times(NamedTuple):
    """Times of many partitions or ids, in seconds."""

    first: float
    middle: float
    last: float
    slowest: Sequence[int] = ()
    """The slowest ones, the worst first."""

    @classmethod
    def of(cls, times: dict[int, float]) -> Times:
        """Sum up times by partition."""
        order = sorted(times, key=lambda each: times[each])
        chosen = (order[0], order[len(order) // 2], order[-1])
        return cls(*(times[each] for each in chosen), order[:-6:-1])


class Failover(NamedTuple):
    """The primary of the store goes, and its standby takes its place."""

    title: str
    outage_s: float
    """Time until the new primary accepted writes."""
    acknowledged_s: dict[int, float]
    """Time from then until the broker of a port acknowledged a Produce, by port."""
    loaded: int
    """Logs that were read from the store because of it."""
    closed: int


class Stop(NamedTuple):
    """The stop of a broker by SIGTERM."""

    partitions: int
    whole_s: float
    samples: int
    """Number of the partitions that the test writes to."""
    read: Times
    """Time without a leader that serves consumers."""
    written: Times
    """Time without a leader that accepts records of the samples."""
    cycle_s: float
    """Time between two queries, the median."""


class Kill(NamedTuple):
    """A broker is killed."""

    lease_s: float
    partitions: int
    served: Times
    """Times from the kill on."""
    coordinators: int
    coordinated: Times


class Results(NamedTuple):
    """All that was measured."""

    size: Size
    failovers: Sequence[Failover]
    stop: Stop
    join_s: float
    kill: Kill


def run(size: Size) -> Results:
    """Measure one after the other, on one cluster."""
    with cluster_of(size) as cluster:
        cluster.fill()
        failovers = [
            cluster.fail_over("it crashes", Server.crash, 0.0),
            cluster.fail_over("it falls silent", Server.pause, 0.0),
            cluster.fail_over("it crashes, one and a half leases before", Server.crash, 1.5),
        ]
        stop = cluster.stop()
        join_s = cluster.join()
        return Results(size, failovers, stop, join_s, cluster.kill())


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


@contextmanager
def cluster_of(size: Size) -> Iterator[Cluster]:
    """Start the brokers on a pair, with the topic, each leading its share."""
    with Pair(in_memory=size.in_memory, **STORE_SETTINGS) as pair, ExitStack() as stack:
        _say("starting three brokers")
        brokers = [_Broker(pair, size) for _ in range(BROKERS)]
        for each in brokers:
            stack.callback(each.remove)
        with ThreadPoolExecutor(BROKERS) as threads:
            list(threads.map(_Broker.start, brokers))
        lines = Lines(TOPIC)
        stack.callback(lines.close)
        cluster = Cluster(size, pair, brokers, lines)
        cluster.make_topic()
        yield cluster


class _Broker(BarnabasProcess):
    """One of them, whose metrics can be read."""

    def __init__(self, pair: Pair, size: Size) -> None:
        super().__init__()
        self.http_port = free_port()
        self.overrides |= {
            "barnabas.metadata": pair.url,
            "barnabas.lease.ms": str(size.lease_ms),
            "barnabas.http.listener": f"{HOST}:{self.http_port}",
            **dict(size.settings),
        }

    def count(self, name: str) -> int:
        """Return the value of one of its metrics."""
        with urllib.request.urlopen(f"http://{HOST}:{self.http_port}/metrics") as answer:
            text = answer.read().decode()
        return next(
            int(float(line.rpartition(" ")[2]))
            for line in text.splitlines()
            if line.partition("{")[0].partition(" ")[0] == name
        )


class Cluster:
    """The brokers, their partitions, and the clients."""

    def __init__(self, size: Size, pair: Pair, brokers: Sequence[_Broker], lines: Lines) -> None:
        self._size = size
        self.pair = pair
        self._brokers = brokers
        self._lines = lines
        self._batch = batch(RECORDS_OF_BATCH, 100)
        self._one = batch(1, 10)
        self._everything = range(size.partitions)
        self._keys = [f"transactional-{number}" for number in range(size.transactional_ids)]

    @property
    def _ports(self) -> list[int]:
        return [each.port for each in self._brokers if each.is_running]

    # -- what it is made of ------------------------------------------------------------------------

    def make_topic(self) -> None:
        """Make the topic, and wait until each broker leads its share of it."""
        topics = [CreatableTopic(TOPIC, self._size.partitions, BROKERS)]
        request = CreateTopicsRequest(topics, timeout_ms=60_000)
        answer = self._lines.ask(self._ports[0], CREATE_TOPICS, request, 7)
        (made,) = answer.topics
        assert not made.error_code, made
        self._until_spread()

    def restart(self, meanwhile: Callable[[Pair], None], end_offset: int) -> None:
        """Stop all brokers, call ``meanwhile``, and start them again.

        ``end_offset``: from here on readers look for records.
        """
        _say("stopping all brokers")
        with ThreadPoolExecutor(BROKERS) as threads:
            list(threads.map(_Broker.terminate, self._brokers))
            self._lines.close()
            _say("writing old records")
            meanwhile(self.pair)
            _say("starting all brokers")
            list(threads.map(_Broker.start, self._brokers))
        self._lines.fetch_offset = end_offset
        self._until_spread()

    def leader_of(self, partition: int) -> _Broker:
        """Return the leader of a partition."""
        port = next(port for port, partitions in self._led().items() if partition in partitions)
        return next(each for each in self._brokers if each.port == port)

    def fill(self) -> None:
        """Write to every partition, and have a producer for every transactional id."""
        _say("writing to every partition")
        for _ in range(BATCHES):
            for port, partitions in self._led().items():
                taken = self._lines.produced(port, partitions, self._batch)
                assert taken == set(partitions), f"{len(partitions) - len(taken)} refused"
        waiting = set(self._keys)
        started_s = time.monotonic()
        while waiting:
            assert time.monotonic() - started_s < READY_TIMEOUT_S, f"{len(waiting)} ids refused"
            waiting -= self._begun(waiting)

    def _led(self) -> dict[int, list[int]]:
        """Return the partitions by the port of their leader, or by 0 without a leader."""
        topics = [MetadataRequestTopic(name=TOPIC)]
        request = MetadataRequest(topics, allow_auto_topic_creation=False)
        answer = self._lines.ask(self._ports[0], METADATA, request, 9)
        ports = {each.node_id: each.port for each in answer.brokers}
        led: dict[int, list[int]] = {}
        for each in answer.topics[0].partitions:
            led.setdefault(ports.get(each.leader_id, 0), []).append(each.partition_index)
        return led

    def _until_spread(self) -> float:
        """Wait until brokers lead, and serve, what they will for good; return since when.

        They lead equally much of all topics, so of this one a few more or less.
        """
        settled_s = time.monotonic()
        before: dict[int, list[int]] = {}

        def is_settled() -> bool:
            nonlocal before, settled_s
            led = self._led()
            if led != before or not all(led.get(each) for each in self._ports):
                before, settled_s = led, time.monotonic()
            return time.monotonic() - settled_s > SETTLED_S and all(
                len(self._lines.fetched(port, led[port])) == len(led[port]) for port in led
            )

        wait_until(is_settled, "settled", seconds=READY_TIMEOUT_S, pause_s=0.1)
        return settled_s

    def _begun(self, keys: set[str]) -> set[str]:
        """Return those ids that have been given a producer by their coordinators."""
        where = self._lines.coordinators(self._ports[0], keys)
        return {key for key, port in where.items() if self._lines.begun(port, key)}

    def highest(self) -> dict[int, int]:
        """Return the high watermarks of all partitions."""
        return {
            partition: offset
            for port, partitions in self._led().items()
            for partition, offset in self._lines.fetched(port, partitions).items()
        }

    # -- the store fails over ----------------------------------------------------------------------

    def fail_over(self, title: str, end: Callable[[Server], None], leases: float) -> Failover:
        """End the primary, and promote the standby after a multiple of the lease time."""
        _say(f"the primary of the store goes: {title}")
        counted = [(each.count(LOADED), each.count(CLOSED)) for each in self._brokers]
        producers = [
            _Producer(port, partitions[:1]) for port, partitions in sorted(self._led().items())
        ]
        for each in producers:
            each.start()
        # A copy has the settings of its source, and has no standby at first.
        self.pair.standby.set(synchronous_standby_names="")
        time.sleep(1.0)
        begun_s = time.monotonic()
        end(self.pair.primary)
        time.sleep(leases * self._size.lease_ms / 1000)
        accepts_s = self._promoted()
        after_s = {each.port: each.first_after(accepts_s) - accepts_s for each in producers}
        for each in producers:
            each.stop()
        self.pair.take_over()
        if end is Server.pause:
            self.pair.standby.resume()
        self.pair.follow()
        wait_until(lambda: len(self.highest()) == self._size.partitions, "served")
        counts = [(each.count(LOADED), each.count(CLOSED)) for each in self._brokers]
        loaded, closed = (
            sum(now[which] - before[which] for now, before in zip(counts, counted, strict=True))
            for which in (0, 1)
        )
        return Failover(title, accepts_s - begun_s, after_s, loaded, closed)

    def _promoted(self) -> float:
        """Promote the standby; return when it took writes for the first time."""
        with self.pair.standby.connect() as asking, self.pair.standby.connect() as told:
            told.execute("SELECT pg_promote(false)")
            wait_until(
                lambda: asking.execute("SELECT NOT pg_is_in_recovery()").fetchone() == (True,),
                "promoted",
                pause_s=0.002,
            )
        return time.monotonic()

    # -- a broker stops, comes, is killed ----------------------------------------------------------

    def stop(self) -> Stop:
        """Stop the last broker; measure the time without a leader of its partitions."""
        victim = self._brokers[-1]
        _say("a broker is told to stop")
        left = set(self._led()[victim.port])
        sample = sorted(left)[:: max(1, len(left) // SAMPLE)][:SAMPLE]
        reading = _Watch(left, victim.port, self._lines.fetched)
        writing_lines = Lines(TOPIC)
        writing = _Watch(
            sample,
            victim.port,
            lambda port, asked: writing_lines.produced(port, asked, self._one),
        )
        ports = self._ports
        threads = [
            threading.Thread(target=each.run, args=(ports,), daemon=True)
            for each in (reading, writing)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        started_s = time.monotonic()
        os.kill(victim.pid, signal.SIGTERM)
        wait_until(
            lambda: reading.has_moved_all and writing.has_moved_all,
            "moved",
            seconds=OUTAGE_TIMEOUT_S,
        )
        whole_s = time.monotonic() - started_s
        reading.is_over = writing.is_over = True
        for thread in threads:
            thread.join()
        writing_lines.close()
        victim.terminate()
        cycle_s = statistics.median(reading.cycles_s)
        return Stop(len(left), whole_s, len(sample), reading.gaps(), writing.gaps(), cycle_s)

    def join(self) -> float:
        """Start the broker again; return how long it takes until it leads its share."""
        _say("it comes again")
        started_s = time.monotonic()
        self._brokers[-1].start()
        return self._until_spread() - started_s

    def kill(self) -> Kill:
        """Kill the last broker: when is all that it led served again?"""
        victim = self._brokers[-1]
        _say("a broker is killed")
        left = set(self._led()[victim.port])
        written = self.highest()
        where = self._lines.coordinators(self._ports[0], self._keys)
        keys = {key for key, port in where.items() if port == victim.port}
        numbers = {key: number for number, key in enumerate(sorted(keys))}
        killed_s = time.monotonic()
        victim.kill()
        served: dict[int, float] = {}
        coordinated: dict[int, float] = {}
        while len(served) < len(left) or len(coordinated) < len(keys):
            if time.monotonic() - killed_s > OUTAGE_TIMEOUT_S:
                raise RequestFailed(f"{len(left) - len(served)} partitions are not served")
            time.sleep(ASK_AGAIN_S)
            for port in self._ports:
                found = self._lines.fetched(port, left - served.keys())
                assert all(written[each] == found[each] for each in found), "records are missing"
                taken = self._lines.produced(port, found, self._one)
                served |= dict.fromkeys(taken, time.monotonic() - killed_s)
            begun = self._begun({each for each in keys if numbers[each] not in coordinated})
            now_s = time.monotonic() - killed_s
            coordinated |= {numbers[key]: now_s for key in begun}
        lease_s = self._size.lease_ms / 1000
        return Kill(lease_s, len(left), Times.of(served), len(keys), Times.of(coordinated))


class _Producer(threading.Thread):
    """One record after the other to a partition, each after the answer to the one before."""

    def __init__(self, port: int, partitions: list[int]) -> None:
        super().__init__(daemon=True)
        self.port = port
        self._partitions = partitions
        self._batch = batch(1, 10)
        self._answered: list[float] = []
        """When each of them was, the newest last."""
        self._is_over = False

    def run(self) -> None:
        """See ``threading.Thread``."""
        lines = Lines(TOPIC)
        while not self._is_over:
            if lines.produced(self.port, self._partitions, self._batch):
                self._answered.append(time.monotonic())
            else:
                time.sleep(ASK_AGAIN_S)
        lines.close()

    def first_after(self, moment_s: float) -> float:
        """Wait for the first answer after a moment, and return when it came."""
        wait_until(
            lambda: self._answered and self._answered[-1] > moment_s,
            "acknowledged",
            seconds=OUTAGE_TIMEOUT_S,
        )
        return next(each for each in self._answered if each > moment_s)

    def stop(self) -> None:
        """Stop sending."""
        self._is_over = True
        self.join()


class _Watch:
    """Asks again and again who serves partitions while they leave a broker."""

    def __init__(
        self,
        partitions: Sequence[int] | set[int],
        leaves: int,
        ask: Callable[[int, list[int]], dict[int, int] | set[int]],
    ) -> None:
        """``ask`` a port about partitions: it returns those that are served there."""
        self._leaves = leaves
        self._ask = ask
        self._where = dict.fromkeys(partitions, leaves)
        self._seen_s: dict[int, float] = {}
        self._gaps: dict[int, float] = {}
        self.cycles_s: list[float] = []
        self.is_over = False

    @property
    def has_moved_all(self) -> bool:
        """Whether all are served by others."""
        return len(self._gaps) == len(self._where)

    def gaps(self) -> Times:
        """Return the times without a leader."""
        return Times.of(self._gaps)

    def run(self, ports: list[int]) -> None:
        """Query the partitions until all are served again."""
        while not self.is_over:
            begun_s = time.monotonic()
            homeless: list[int] = []
            for port in ports:
                asked = [each for each, at in self._where.items() if at == port]
                if asked:
                    homeless += self._left(port, asked)
            for port in ports:
                if port != self._leaves and homeless:
                    homeless = self._left(port, homeless)
            self._where.update(dict.fromkeys(homeless, self._leaves))
            self.cycles_s.append(time.monotonic() - begun_s)
            time.sleep(ASK_AGAIN_S)

    def _left(self, port: int, asked: list[int]) -> list[int]:
        """Query partitions, and return those that are not served at a port."""
        served = self._ask(port, asked)
        now_s = time.monotonic()
        for each in served:
            if port != self._leaves and each not in self._gaps:
                self._gaps[each] = now_s - self._seen_s[each]
            self._where[each] = port
            self._seen_s[each] = now_s
        return [each for each in asked if each not in served]
