"""The good neighbour: a well-behaved client beside an attack, in a process of its own.

It produces records of a few bytes and of 540 KB with acks=all, reads each of the small ones back,
and asks ``/livez``; every latency is kept. At the end it reads everything that was acknowledged.
`python -m tests.attack.neighbour PORT HTTP_PORT` prints a line when the first rounds are through.
For each line that comes in it stops working, reads everything and prints its report in JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.fetch import FETCH
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import iterate_batches
from tests.attack.peer import Peer, Wire
from tests.broker.data_plane import Named, batch, fetch_request, produce_request

HOST = "127.0.0.1"
TOPIC = "neighbour-of-the-attacked"
SMALL, LARGE = 0, 1
"""Partitions, each with its own writer."""
RECORD_BYTES = {SMALL: 100, LARGE: 540_000}
PAUSE_S = {SMALL: 0.05, LARGE: 0.25}
LIVEZ_PAUSE_S = 0.075
ANSWER_TIMEOUT_S = 120.0
"""An answer that takes longer never comes."""
WARM_ROUNDS = 4
PRODUCE_VERSION, FETCH_VERSION, CREATE_VERSION = 9, 11, 5
FETCH_BYTES = 8 << 20
PROBLEMS_MOST = 20
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@dataclass
class Latencies:
    """The latencies of one kind of request."""

    count: int = 0
    worst_s: float = 0.0
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds
        self.worst_s = max(self.worst_s, seconds)


@dataclass
class Report:
    """The observations of the neighbour."""

    small: Latencies = field(default_factory=Latencies)
    large: Latencies = field(default_factory=Latencies)
    fetch: Latencies = field(default_factory=Latencies)
    livez: Latencies = field(default_factory=Latencies)
    acknowledged: int = 0
    verified: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    """The errors, and the count of each."""

    def problem(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MOST or text in self.problems:
            self.problems[text] = self.problems.get(text, 0) + 1

    @classmethod
    def from_json(cls, text: str) -> Report:
        fields = json.loads(text)
        for name in ("small", "large", "fetch", "livez"):
            fields[name] = Latencies(**fields[name])
        return cls(**fields)


def value_of(number: int, size: int) -> bytes:
    """The value of a record: what it has to be follows from its number."""
    return (number.to_bytes(8, "big") * (size // 8 + 1))[:size]


class Neighbour:
    """A client that works until it is stopped."""

    def __init__(self, port: int, http_port: int) -> None:
        self.report = Report()
        self._port = port
        self._http_port = http_port
        self._stopping = asyncio.Event()
        self._acknowledged: dict[int, dict[int, int]] = {SMALL: {}, LARGE: {}}
        """By partition: offset of each record and its number."""

    async def work(self, is_warm: asyncio.Event) -> None:
        """Work until ``stop``."""
        writers = (self._write(SMALL), self._write(LARGE))
        tasks = [asyncio.create_task(each) for each in (*writers, self._probe())]
        while min(len(each) for each in self._acknowledged.values()) < WARM_ROUNDS:
            if any(task.done() for task in tasks):
                break
            await asyncio.sleep(0.01)
        self._forget_latencies()
        is_warm.set()
        await asyncio.gather(*tasks)

    def stop(self) -> None:
        self._stopping.set()

    def _forget_latencies(self) -> None:
        """The first requests open files and map code: not what an attack does."""
        report = self.report
        report.small, report.large = Latencies(), Latencies()
        report.fetch, report.livez = Latencies(), Latencies()

    async def _until_stopped(self, action: Callable[[], Awaitable[None]], pause_s: float) -> None:
        while not self._stopping.is_set():
            await action()
            await asyncio.sleep(pause_s)

    async def _write(self, partition: int) -> None:
        what = "a small writer" if partition == SMALL else "a large writer"
        try:
            async with await Wire.connect(HOST, self._port, client_id="neighbour") as wire:
                await self._until_stopped(
                    lambda: self._write_one(wire, partition), PAUSE_S[partition]
                )
        except (OSError, TimeoutError) as error:
            self.report.problem(f"{what}: {error!r}")

    async def _write_one(self, wire: Wire, partition: int) -> None:
        report, known = self.report, self._acknowledged[partition]
        number = len(known)
        value = value_of(number, RECORD_BYTES[partition])
        request = produce_request(PRODUCE_VERSION, Named(TOPIC), (partition, batch(value)))
        latencies = report.small if partition == SMALL else report.large
        response = await _timed(latencies, wire.ask(PRODUCE, request, PRODUCE_VERSION))
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            report.problem(f"Produce was refused: error {answer.error_code}")
            return
        if answer.base_offset in known:
            report.problem(f"offset {answer.base_offset} of {partition} was given twice")
        known[answer.base_offset] = number
        report.acknowledged += 1
        if partition == SMALL:
            found = await _timed(report.fetch, read(wire, TOPIC, partition, answer.base_offset))
            if found.get(answer.base_offset) != value:
                report.problem(f"record {answer.base_offset} was not read back")

    async def _probe(self) -> None:
        await self._until_stopped(self._probe_once, LIVEZ_PAUSE_S)

    async def _probe_once(self) -> None:
        """Send one request; a probe has no patience with a broken connection."""

        async def ask() -> bytes:
            async with await Peer.connect(HOST, self._http_port) as peer:
                await peer.send(LIVEZ)
                answer = b""
                while piece := await peer.receive():
                    answer += piece
                return answer

        try:
            answer = await _timed(self.report.livez, ask())
        except (OSError, TimeoutError) as error:
            self.report.problem(f"/livez: {error!r}")
        else:
            if not answer.startswith(b"HTTP/1.1 200 "):
                self.report.problem(f"/livez: {answer[:100]!r}")

    async def verify(self) -> None:
        """Read every record that was acknowledged, from the beginning of each partition."""
        self.report.verified = 0
        for partition, known in self._acknowledged.items():
            left = dict(known)
            async with await Wire.connect(HOST, self._port) as wire:
                async for offset, value in read_partition(wire, TOPIC, partition):
                    self._verify_one(partition, offset, value, left.pop(offset, None))
            if left:
                self.report.problem(f"{len(left)} acknowledged records of {partition} are gone")

    def _verify_one(self, partition: int, offset: int, value: bytes, number: int | None) -> None:
        # A record without an acknowledgement is allowed: the neighbour did not wait for the
        # response.
        if number is not None:
            if value == value_of(number, RECORD_BYTES[partition]):
                self.report.verified += 1
            else:
                self.report.problem(f"record {offset} of {partition} is not what was sent")


async def _timed(latencies: Latencies, answer: Awaitable[Any]) -> Any:
    """Wait for an answer; what never comes took until it was given up."""
    started_s = time.monotonic()
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await answer
    finally:
        latencies.add(time.monotonic() - started_s)


async def read(wire: Wire, topic: str, partition: int, offset: int) -> dict[int, bytes]:
    """One Fetch: the values of the records that came, by offset; ConnectionError on an error."""
    request = fetch_request(
        FETCH_VERSION,
        (Named(topic), (partition, offset)),
        max_bytes=FETCH_BYTES,
        partition_max_bytes=FETCH_BYTES,
    )
    response = await wire.ask(FETCH, request, FETCH_VERSION)
    (answer,) = response.responses[0].partitions
    if answer.error_code:
        raise ConnectionError(f"Fetch was refused: error {answer.error_code}")
    found = {}
    data = memoryview(answer.records or b"")
    for position, header in iterate_batches(data):
        one = data[position : position + header.size]
        for record in iterate_records(one, limit_bytes=FETCH_BYTES):
            if record.offset >= offset:
                found[record.offset] = bytes(record.value or b"")
    return found


async def read_partition(
    wire: Wire, topic: str, partition: int
) -> AsyncIterator[tuple[int, bytes]]:
    """Every record of a partition, from offset 0 on: offset and value."""
    position = 0
    while found := await read(wire, topic, partition, position):
        for each in found.items():
            yield each
        position = max(found) + 1


async def create_topic(
    port: int, name: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic; raises ConnectionError when it is refused."""
    settings = [CreatableTopicConfig(*each) for each in (configs or {}).items()]
    topic = CreatableTopic(name, partitions, 1, configs=settings)
    request = CreateTopicsRequest([topic], 30_000)
    async with await Wire.connect(HOST, port) as wire:
        response = await wire.ask(CREATE_TOPICS, request, CREATE_VERSION)
    if response.topics[0].error_code:
        raise ConnectionError(f"{name} was not created: {response.topics[0]}")


async def main() -> None:
    port, http_port = map(int, sys.argv[1:3])
    # Its records are years old, and an attack may outlast the pause between two clean-ups.
    await create_topic(port, TOPIC, 2, {"retention.ms": "-1"})
    neighbour = Neighbour(port, http_port)
    is_warm = asyncio.Event()
    work = asyncio.create_task(neighbour.work(is_warm))
    await is_warm.wait()
    print("warm", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        neighbour.stop()
        await work
        await neighbour.verify()
        print(json.dumps(asdict(neighbour.report)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
