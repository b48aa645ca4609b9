"""Two workers of Kafka Connect with the file connectors of Apache Kafka, through kills and pauses.

A worker that was paused for longer than its session returns as a zombie: another one has its tasks.
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
from tests.interop.connect.faults import (
    KILLS,
    PAUSE_WORKER,
    SESSION_MS,
    ConnectFaults,
    Rounds,
)
from tests.products import for_the_night
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.access import BROKER_SETTINGS

FILE = "org.apache.kafka.connect.file"
TOPIC = "lines"
LINES_AT_ONCE = 10


@pytest.fixture
def broker(tmp_path) -> Iterator[BarnabasProcess]:
    """A broker with the topic."""
    with BarnabasProcess(tmp_path / "broker", **BROKER_SETTINGS) as running:
        create(running.bootstrap_servers, TOPIC, partitions=1)
        yield running


@pytest.fixture
def workers(broker, tmp_path) -> Iterator[list[ConnectWorker]]:
    """Two workers of one group, with both connectors."""
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.touch()
    servers, session = broker.bootstrap_servers, {"session.timeout.ms": str(SESSION_MS)}
    with (
        ConnectWorker(tmp_path / "one", servers, settings=session) as one,
        ConnectWorker(tmp_path / "other", servers, settings=session) as other,
    ):
        reading = {"connector.class": f"{FILE}.FileStreamSourceConnector", "file": str(source)}
        one.configure("reading", {**reading, "topic": TOPIC, "exactly.once.support": "required"})
        writing = {"connector.class": f"{FILE}.FileStreamSinkConnector", "file": str(sink)}
        isolation = {"consumer.override.isolation.level": "read_committed"}
        one.configure("writing", {**writing, "topics": TOPIC, **isolation})
        wait_until(other.all_run, other.output)
        yield [one, other]


@for_the_night(
    beside="tests/interop/test_transactions.py::test_producer_commits_aborts_and_continues"
)
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_file_connectors_copy_each_line_through_kills_and_pauses(broker, workers, tmp_path, say):
    def append(numbers: Sequence[int]) -> list[str]:
        lines = [f"line.{number}" for number in numbers]
        with (tmp_path / "source.txt").open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return lines

    def said() -> str:
        return "\n".join(worker.output() for worker in workers)

    changes = Changes(TOPIC, append)
    faults = ConnectFaults([broker], workers, lambda: changes.add(LINES_AT_ONCE))
    rounds = Rounds(faults, SEED, (*KILLS, PAUSE_WORKER))
    rounds.run()
    changes.judge(broker, said)
    sunk = tmp_path / "sink.txt"
    wait_until(lambda: {*lines_of(sunk)} >= {*changes.values}, said, seconds=COPY_S)
    found = Counter(lines_of(sunk))
    assert found.keys() == {*changes.values}
    assert workers[0].failures() == []
    again = found.total() - len(found)
    say(f"{len(found)} lines, {dict(rounds.faults)}; a worker ended {faults.ended} times by itself")
    say(f"{again} lines written again by the sink")


def lines_of(path: Path) -> list[str]:
    """Return the lines of the sink's file."""
    return path.read_text().splitlines()
