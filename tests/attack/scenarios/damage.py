"""Files of a killed broker's directory, damaged one at a time: served in full or refused by name.

The records are those of the active segments; only a scrub reads sealed ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from tests.attack.process import AttackedBroker
from tests.attack.scenario import DirectoryScenario, Sent
from tests.attack.workshop import Acknowledged, Workshop
from tests.counterparts.broker_process import BrokerDied
from tests.counterparts.wire_client import WireClient

SETTINGS = {
    "barnabas_journal_file_bytes": "1052672",
    "message_max_bytes": "1000000",
    "log_retention_ms": "-1",
    "barnabas_checkpoint_interval_ms": "3600000",
}
TOPICS = ("one", "two", "three")
SIZES = [100] * 20 + [30_000, 200_000] * 8 + [100] * 20
PAGE_BYTES = 4096
CELLS_EACH_S = 6
"""Damages that are tried at least for each second of the duration."""
CELLS_LEAST = 6
DERIVED = {"barnabas-lock", "log-start-offset-checkpoint", "cleaner-offset-checkpoint"}
"""Files that a start does not need."""


class Cell(NamedTuple):
    """One damage of one file; ``place`` is a share of what the file uses."""

    path: str
    damage: str
    place: float


class Left(NamedTuple):
    """The records and the producer id that a killed broker acknowledged."""

    records: dict[str, Acknowledged]
    producer_id: int


def cells(directory: Path, rng: random.Random) -> Iterator[Cell]:
    """The loss of each file that all depends on, then everything in any order, again and again."""
    paths = [
        str(path.relative_to(directory))
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in DERIVED
    ]
    top = [path for path in paths if "/" not in path]
    for path in top:
        yield Cell(path, "missing", 0)
    damages = ("missing", "empty", "half", "zeros", "page", "bit", "bit", "longer")
    while True:
        for path in rng.sample(paths, len(paths)):
            yield Cell(path, rng.choice(damages), rng.random())


def spoil(path: Path, cell: Cell) -> None:
    """Do it."""
    data = bytearray(path.read_bytes())
    used = max(len(data.rstrip(b"\0")), 1)
    at = min(int(used * cell.place), max(len(data) - 1, 0))
    match cell.damage:
        case "missing":
            path.unlink()
            return
        case "empty":
            data.clear()
        case "half":
            del data[used // 2 :]
        case "zeros":
            data[:] = bytes(len(data))
        case "page":
            page = at // PAGE_BYTES * PAGE_BYTES
            data[page : page + PAGE_BYTES] = bytes(len(data[page : page + PAGE_BYTES]))
        case "bit" if data:
            data[at] ^= 1 << (at % 8)
        case "longer":
            data += b"\x55" * PAGE_BYTES
    path.write_bytes(data)


class Damaging:
    """One killed broker, whose directory is copied and spoilt again and again."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._original = workshop.directory / "original"
        self.sent = Sent()

    def run(self, seed: int, duration_s: float) -> Sent:
        until_s = time.monotonic() + duration_s
        left = self._fill()
        rng = random.Random(seed)
        least = max(CELLS_LEAST, CELLS_EACH_S * duration_s)
        for count, cell in enumerate(cells(self._original / "data", rng), start=1):
            self._try(cell, left)
            if count >= least and time.monotonic() > until_s:
                break
        return self.sent

    def _fill(self) -> Left:
        """Run a broker twice, so that both checkpoints exist, and kill it."""
        workshop = self._workshop
        records: dict[str, Acknowledged] = {}
        with workshop.broker(self._original, **SETTINGS) as broker:
            for topic in TOPICS[:2]:
                records[topic] = workshop.fill(broker, topic, SIZES[:10])
            broker.terminate()
            broker.restart()
            records[TOPICS[2]] = workshop.fill(broker, TOPICS[2], SIZES)
            for topic in TOPICS[:2]:
                records[topic] |= workshop.fill(broker, topic, SIZES, create=False)
            producer_id = _producer_id(broker)
            broker.kill()
        return Left(records, producer_id)

    def _try(self, cell: Cell, left: Left) -> None:
        self.sent["damages"] += 1
        copy = self._workshop.copy(self._original)
        spoil(copy / "data" / cell.path, cell)
        broker = self._workshop.broker(copy, **SETTINGS)
        try:
            with broker:
                problem = self._compare(broker, left)
                self._workshop.expect(not problem, f"{cell}: {problem}, in silence")
                self.sent["served in full"] += not problem
        except BrokerDied as error:
            self.sent["refused"] += 1
            said = [line for line in str(error).splitlines() if "barnabas: " in line]
            named = bool(said) and str(copy / "data") in said[-1]
            self._workshop.expect(named, f"{cell}: refused without a name: {error}")
        output = broker.output(limit=1 << 20)
        self._workshop.expect("Traceback" not in output, f"{cell}: a traceback: {output[-2000:]}")
        self._workshop.discard(copy)

    def _compare(self, broker: AttackedBroker, left: Left) -> str:
        """Return the lost records or topics in words, or an empty text."""
        with WireClient(broker) as client:
            topics = {topic.name for topic in client.ask(METADATA, MetadataRequest(None), 9).topics}
        if missing := set(left.records) - topics:
            return f"the topics {missing} are gone"
        for topic, records in left.records.items():
            try:
                found = self._workshop.values(broker, topic)
            except ConnectionError as error:
                self.sent["read errors"] += 1
                return "" if "refused" in str(error) else repr(error)
            if lost := [offset for offset, value in records.items() if found.get(offset) != value]:
                return f"{len(lost)} records of {topic} are gone"
        again = _producer_id(broker)
        return "" if again > left.producer_id else f"producer id {again} is given out twice"


def _producer_id(broker: AttackedBroker) -> int:
    """A new producer id; the broker may have to look a while for the next ones."""
    with WireClient(broker) as client:
        answer = client.ask(INIT_PRODUCER_ID, InitProducerIdRequest(None), 4)
    assert not answer.error_code, answer
    return int(answer.producer_id)


def damage(workshop: Workshop, seed: int, duration_s: float) -> Sent:
    """Damage one copy after the other for ``duration_s``, and each essential file at least once."""
    return Damaging(workshop).run(seed, duration_s)


SCENARIOS = (DirectoryScenario("damaged-files", damage, weight=2),)
