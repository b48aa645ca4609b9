"""Kafka Connect with the file connectors of Apache Kafka, through kills.

The source has exactly-once support: each line of a file is in the topic once. The sink is at least
once: it writes each record of the topic into the other file, and some records several times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.connect import ConnectWorker
from tests.interop.administration import create
from tests.interop.connect.changes import COPY_S, Changes
from tests.interop.connect.faults import ConnectFaults, kills
from tests.products import for_the_night
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.access import BROKER_SETTINGS

FILE = "org.apache.kafka.connect.file"
TOPIC = "lines"
LINES_AT_ONCE = 10
ROUND_S = 20.0


@pytest.fixture
def broker(tmp_path) -> Iterator[BarnabasProcess]:
    """A broker with the topic."""
    with BarnabasProcess(tmp_path / "broker", **BROKER_SETTINGS) as running:
        create(running.bootstrap_servers, TOPIC, partitions=1)
        yield running


@pytest.fixture
def worker(broker, tmp_path) -> Iterator[ConnectWorker]:
    """A worker with both connectors."""
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.touch()
    with ConnectWorker(tmp_path / "connect", broker.bootstrap_servers) as running:
        reading = {"connector.class": f"{FILE}.FileStreamSourceConnector", "file": str(source)}
        running.configure(
            "reading", {**reading, "topic": TOPIC, "exactly.once.support": "required"}
        )
        writing = {"connector.class": f"{FILE}.FileStreamSinkConnector", "file": str(sink)}
        isolation = {"consumer.override.isolation.level": "read_committed"}
        running.configure("writing", {**writing, "topics": TOPIC, **isolation})
        wait_until(running.all_run, running.output)
        yield running


@for_the_night(
    beside="tests/interop/test_transactions.py::test_producer_commits_aborts_and_continues"
)
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_file_connectors_copy_each_line_through_kills(broker, worker, tmp_path, say):
    def append(numbers: Sequence[int]) -> list[str]:
        lines = [f"line.{number}" for number in numbers]
        with (tmp_path / "source.txt").open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return lines

    changes = Changes(TOPIC, append)
    faults = ConnectFaults([broker], worker, lambda: changes.add(LINES_AT_ONCE))
    fate = kills(faults, SEED)
    fate.run(ROUND_S)
    changes.judge(broker, worker.output)
    sunk = tmp_path / "sink.txt"
    wait_until(lambda: {*lines_of(sunk)} >= {*changes.values}, worker.output, seconds=COPY_S)
    found = Counter(lines_of(sunk))
    assert found.keys() == {*changes.values}
    assert worker.failures() == []
    again = found.total() - len(found)
    say(
        f"{len(found)} lines, {dict(fate.faults)}; the worker ended {faults.ended} times by itself;"
    )
    say(f"{again} lines written again by the sink")


def lines_of(path: Path) -> list[str]:
    """Return the lines of the sink's file."""
    return path.read_text().splitlines()
