"""Walks of requests through the files of the broker, counted call by call.

A walk is the list of files that a request enters, in order, on all threads of a broker. A return is
a change into a file that the walk left before. ``make walks`` prints the table. The walks run in a
world with a fixed seed, so that two runs enter the same functions.

Not counted: the kit of the tests (disk, network, threads), clocks, metrics, housekeeping.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import barnabas
from barnabas.broker.network import flow
from barnabas.protocol.messages.end_txn import END_TXN, EndTxnRequest
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.records import Record, encode_batch
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.two_phase import Decider, Participant
from barnabas.testing import Broker, World
from tests.broker.data_plane import Named, Wire, batch, fetch_request, produce_request

SOURCES: Final = str(Path(barnabas.__file__).parent) + "/"
SEED: Final = 20261129
KIT: Final = (
    "broker/testing/",
    "broker/metrics/",
    "broker/upkeep/housekeeping.py",
    "broker/runtime/clock.py",
    "broker/runtime/process.py",
    "storage/runtime/",
    "broker/testing/disk/simulated.py",
    "broker/testing/disk/unsynced.py",
)
CLIENT: Final = ("broker/client/", "spark_connector/")
COMPREHENSIONS: Final = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")
_QUIET_S: Final = 0.25
"""Simulated time after each request, in which the broker finishes what it does beside it."""


class Walk(NamedTuple):
    """Numbers of a walk."""

    calls: int
    functions: int
    files: int
    changes: int
    returns: int


class Recorder:
    """Record of the calls of product code on all threads, while it is armed."""

    def __init__(self) -> None:
        self._is_armed = False
        self._entered: list[tuple[str, str]] = []
        self._names: dict[CodeType, tuple[str, str] | None] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Observe each thread that starts in the block: those of a broker."""
        threading.setprofile(self._observe)
        try:
            yield
        finally:
            threading.setprofile(None)

    def _observe(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self._is_armed or event != "call":
            return
        code = frame.f_code
        if code not in self._names:
            self._names[code] = _name_of(code)
        name = self._names[code]
        if name is not None:
            self._entered.append(name)

    def at_broker(self, request: Callable[[], Any], rest: Callable[[], object]) -> Walk:
        """Return the walk of a request on the threads of the broker, up to the end of ``rest``."""
        self._entered.clear()
        self._is_armed = True
        try:
            request()
            rest()
        finally:
            self._is_armed = False
        return numbers_of(self._entered)

    def at_client(self, call: Callable[[], Any]) -> Walk:
        """Return the walk of a call through client code on this thread."""
        self._entered.clear()
        sys.setprofile(self._observe)
        self._is_armed = True
        try:
            call()
        finally:
            self._is_armed = False
            sys.setprofile(None)
        # Threads of the broker run meanwhile: in a world one at a time, and not in client code.
        return numbers_of([each for each in self._entered if each[0].startswith(CLIENT)])


def _name_of(code: CodeType) -> tuple[str, str] | None:
    """Return the file of a function below the sources, and its name; None if it is not counted."""
    path = code.co_filename
    if not path.startswith(SOURCES) or code.co_name in COMPREHENSIONS:
        return None
    path = path.removeprefix(SOURCES)
    return None if path.startswith(KIT) else (path, f"{code.co_firstlineno} {code.co_name}")


def numbers_of(entered: list[tuple[str, str]]) -> Walk:
    """Return the numbers of a walk, from the files and functions in order."""
    changes = returns = 0
    left: set[str] = set()
    before: str | None = None
    for path, _ in entered:
        if path == before:
            continue
        if before is not None:
            changes += 1
            left.add(before)
            returns += path in left
        before = path
    files = {path for path, _ in entered}
    return Walk(len(entered), len(set(entered)), len(files), changes, returns)


class _Requests:
    """Requests to one broker, each of them in a state that earlier ones have prepared."""

    def __init__(self, broker: Broker, world: World) -> None:
        self._topic = Named("walked")
        self._wire = Wire(broker.address)
        self._transactions = Wire(broker.address, "transactions")
        self._sequence = 0
        self._producer: tuple[int, int] = (-1, -1)
        self._now_ms = int(world.now_s * 1000) + 1_700_000_000_000

    def produce(self) -> None:
        """Write one record of an idempotent producer, by a version without the shortcut."""
        data = batch(
            b"x",
            times=[self._now_ms],
            producer_id=5,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._sequence += 1
        response = self._wire.ask(PRODUCE, produce_request(6, self._topic, (0, data)), 6)
        assert response.responses[0].partition_responses[0].error_code == 0

    def fetch(self) -> None:
        """Read the records of the partition, as a `read_committed` consumer."""
        response = self._wire.ask(FETCH, fetch_request(12, (self._topic, (0, 0)), isolation=1), 12)
        assert response.responses[0].partitions[0].records

    def begin(self, world: World) -> None:
        """Write one record in a transaction."""
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["walker"])
        world.run_until(
            lambda: (
                self._transactions.ask(FIND_COORDINATOR, request, 4).coordinators[0].error_code == 0
            )
        )
        made = self._transactions.ask(
            INIT_PRODUCER_ID, InitProducerIdRequest("walker", 60_000, -1, -1), 4
        )
        assert made.error_code == 0
        self._producer = (made.producer_id, made.producer_epoch)
        data = batch(
            b"x",
            times=[self._now_ms],
            producer_id=made.producer_id,
            producer_epoch=made.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        request = produce_request(12, self._topic, (0, data), transactional_id="walker")
        response = self._transactions.ask(PRODUCE, request, 12)
        assert response.responses[0].partition_responses[0].error_code == 0

    def end(self) -> None:
        """Commit the transaction."""
        request = EndTxnRequest("walker", *self._producer, committed=True)
        assert self._transactions.ask(END_TXN, request, 5).error_code == 0

    def close(self) -> None:
        """Close the connections."""
        self._wire.__exit__()
        self._transactions.__exit__()


def broker_walks(world: World, recorder: Recorder, broker: Broker) -> dict[str, Walk]:
    """Return the walks of Produce, Fetch and EndTxn through a broker."""
    requests = _Requests(broker, world)

    def walk(request: Callable[[], None]) -> Walk:
        return recorder.at_broker(request, lambda: world.sleep(_QUIET_S))

    found = {}
    for _ in range(2):
        requests.produce()
    world.sleep(_QUIET_S)
    found["Produce"] = walk(requests.produce)
    requests.fetch()
    found["Fetch"] = walk(requests.fetch)
    requests.begin(world)
    world.sleep(_QUIET_S)
    found["EndTxn"] = walk(requests.end)
    requests.close()
    return found


def spark_commit(recorder: Recorder, broker: Broker) -> Walk:
    """Return the walk of the second commit of a driver, which no connection is opened for."""
    options = SinkOptions.parse(
        {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "sinkId": "walked",
            "topic": "out",
            "sourceGroupId": "walkers",
        }
    )
    decider = Decider(options, "query", is_sole_recipient=True)
    decider.recover(0)
    walk = None
    for batch_id in (0, 1):
        names = f"fingerprint {batch_id}"
        decider.is_decided(batch_id, names, ["out"])
        participant = Participant(
            options,
            batch_id=batch_id,
            query_id="query",
            partition=0,
            task_attempt_id=batch_id,
            nonce=str(batch_id),
        )
        data = bytearray(encode_batch([Record(0, 1, b"k", b"v", ())]))
        participant.write([EncodedBatch("out", 0, 1, data)])
        prepared = participant.prepared()
        participant.close()
        ends = {("out", 0): batch_id + 1}
        walk = recorder.at_client(partial(decider.commit, batch_id, [prepared], names, ends))
    decider.close()
    assert walk is not None
    return walk


def walks() -> dict[str, Walk]:
    """Return all walks, by name."""
    recorder = Recorder()
    config = {"transaction.two.phase.commit.enable": "true"}
    # The computing time of a world is random: a turn of a connection is never a long one here.
    unnoticed = patch.object(flow, "NOTICED_NS", 1_000_000_000)
    with unnoticed, recorder.installed(), World(SEED) as world, Broker(config=config) as broker:
        broker.create_topic("walked", partitions=1)
        broker.create_topic("out", partitions=1)
        found = broker_walks(world, recorder, broker)
        found["Spark commit"] = spark_commit(recorder, broker)
    return found


class Bound(NamedTuple):
    """Largest numbers that a walk may have now, and those that are the goal."""

    files: int
    returns: int
    files_wanted: int
    returns_wanted: int


BOUNDS: Final = {
    "Produce": Bound(files=36, returns=105, files_wanted=24, returns_wanted=50),
    "Fetch": Bound(files=27, returns=47, files_wanted=18, returns_wanted=28),
    "EndTxn": Bound(files=55, returns=215, files_wanted=36, returns_wanted=111),
    "Spark commit": Bound(files=18, returns=178, files_wanted=14, returns_wanted=113),
}
"""Lower ``files`` and ``returns`` after a change that shortened a walk."""


def table(found: dict[str, Walk]) -> str:
    """Return the walks as text, beside their bounds and goals."""
    heads = [*Walk._fields, "files <=", "returns <=", "files wanted", "returns wanted"]
    rows = [(name, *walk, *BOUNDS[name]) for name, walk in found.items()]
    lines = [f"{'walk':13}" + "".join(f"{head:>15}" for head in heads)]
    lines += [f"{name:13}" + "".join(f"{number:>15}" for number in row) for name, *row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(walks()))
