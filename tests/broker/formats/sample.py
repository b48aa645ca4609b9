"""Sample data directories: what a release leaves behind, for all later ones to open.

`python -m tests.broker.formats.sample NAME` writes one of each kind with the release of this
checkout, as `NAME-stopped.tar.gz` and `NAME-killed.tar.gz` beside this file. Write a sample once,
before a release, and never again: the next release must open it as it is.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker
from tests.archives import extract
from tests.counterparts.offsets_client import CLASSIC, IMPLICIT, OffsetsClient
from tests.crash.transaction_client import Producer

SAMPLES = Path(__file__).parent
KINDS = ("stopped", "killed")
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "barnabas.journal.file.bytes": str(1 << 20),
    "barnabas.journal.max.bytes": str(8 << 20),
    "message.max.bytes": str(512 << 10),
}
ORDERS, PRICES = "orders", "prices"
PLACES = [(ORDERS, 0), (ORDERS, 1)]
COMMITTED = [b"committed-classic", b"committed-implicit"]
OPEN_AT_THE_END = b"open"
GROUP_OFFSETS = {(ORDERS, 0): 1, (ORDERS, 1): 2}


def fill(broker: Broker) -> None:
    """Do a little of everything that leaves something in a data directory."""
    broker.create_topic(ORDERS, 2, {"retention.ms": "-1"})
    broker.create_topic(PRICES, 1, {"cleanup.policy": "compact"})
    broker.port = broker.address[1]  # type: ignore[attr-defined]
    with OffsetsClient(broker) as client:
        client.find("any", 0)
        client.find("any", 1)
        for version, generation in ((CLASSIC, 0), (IMPLICIT, 2)):
            for commit in (True, False):
                key = f"id-{version}-{commit}"
                producer = Producer(client, key, generation)
                text = f"{'committed' if commit else 'aborted'}-"
                text += "implicit" if generation else "classic"
                _transaction(producer, text.encode(), commit=commit)
        left_open = Producer(client, "left-open", 2)
        assert left_open.init() == ErrorCode.NONE
        assert left_open.write(PLACES[0], OPEN_AT_THE_END)[0] == ErrorCode.NONE
        client.commit_plainly("readers", GROUP_OFFSETS)


def _transaction(producer: Producer, value: bytes, *, commit: bool) -> None:
    assert producer.init() == ErrorCode.NONE
    assert producer.add(*PLACES) == ErrorCode.NONE
    for place in PLACES:
        assert producer.write(place, value)[0] == ErrorCode.NONE
    assert producer.end(commit=commit) == ErrorCode.NONE


def make(name: str) -> None:
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as directory:
            with Broker(storage=directory, config=SETTINGS) as broker:
                fill(broker)
                if kind == "killed":
                    broker.crash()
                else:
                    broker.stop()
            path = SAMPLES / f"{name}-{kind}.tar.gz"
            with tarfile.open(path, "w:gz") as archive:
                archive.add(directory, ".")
            print(f"{path.name}: {path.stat().st_size:,} bytes")


def unpack(sample: Path, directory: Path) -> Any:
    extract(sample, directory)


if __name__ == "__main__":
    make(sys.argv[1])
