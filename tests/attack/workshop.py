"""A directory with a broker's data, for attacks that stop the broker, spoil files and start it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from barnabas.protocol.messages.produce import PRODUCE
from tests.attack.neighbour import create_topic, read_partition, value_of
from tests.attack.peer import Wire
from tests.attack.process import AttackedBroker
from tests.broker.data_plane import Named, batch, produce_request
from tests.counterparts.broker_process import HOST

VERSION = 9

Acknowledged = dict[int, bytes]
"""Values by offset."""


class Workshop:
    """Brokers on copies of one directory, records that they acknowledged, and what was wrong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.violations: list[str] = []
        self._copies = 0

    def broker(
        self, directory: Path | None = None, variables: dict[str, str] | None = None, **more: str
    ) -> AttackedBroker:
        """A broker that is not started yet, its data in ``directory``/data."""
        return AttackedBroker(directory or self.directory / "broker", variables, **more)

    def copy(self, source: Path) -> Path:
        """Copy a broker's directory, to be spoilt; the broker must not run."""
        self._copies += 1
        target = self.directory / f"copy-{self._copies}"
        shutil.copytree(source, target)
        (target / "output.log").unlink(missing_ok=True)
        return target

    def discard(self, copy: Path) -> None:
        """Remove a copy that showed nothing; while something is wrong all of them stay."""
        if not self.violations:
            shutil.rmtree(copy)

    def expect(self, condition: object, text: str) -> None:
        """Note what was wrong."""
        if not condition:
            self.violations.append(text)

    def fill(
        self, broker: AttackedBroker, topic: str, sizes: list[int], *, create: bool = True
    ) -> Acknowledged:
        """Produce one record of each size, one after the other; returns what was acknowledged."""
        return asyncio.run(_fill(broker.port, topic, sizes, create=create))

    def values(self, broker: AttackedBroker, topic: str) -> Acknowledged:
        """Read a topic's only partition whole; raises ConnectionError when a Fetch is refused."""
        return asyncio.run(_values(broker.port, topic))


async def _fill(port: int, topic: str, sizes: list[int], *, create: bool) -> Acknowledged:
    if create:
        await create_topic(port, topic, 1)
    known: Acknowledged = {}
    async with await Wire.connect(HOST, port) as wire:
        for number, size in enumerate(sizes):
            value = value_of(number, size)
            request = produce_request(VERSION, Named(topic), (0, batch(value)))
            response = await wire.ask(PRODUCE, request, VERSION)
            answer = response.responses[0].partition_responses[0]
            if answer.error_code:
                raise ConnectionError(f"Produce was refused: error {answer.error_code}")
            known[answer.base_offset] = value
    return known


async def _values(port: int, topic: str) -> Acknowledged:
    async with await Wire.connect(HOST, port) as wire:
        return {offset: value async for offset, value in read_partition(wire, topic, 0)}
