"""Consume, transform, produce: every input takes effect once, in spite of kills at any time.

One application runs for each library, with two workers and later three over the same input, while
new records arrive. A worker is killed with -9 and restarted. Another is paused for longer than its
session and its transaction may last, so that it wakes up as a zombie. One more joins, and the
broker is killed with -9.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest

from tests.checkout import PYTHONPATH
from tests.groups.scenario import BROKER_SETTINGS
from tests.interop.administration import create
from tests.interop.transactional import COMMITTED, committed_offsets, read_with_confluent
from tests.interop.transform_worker import GIVE_UP, OUTPUT_PARTITIONS, WORKERS, transformed
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
SETTINGS = {
    **BROKER_SETTINGS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
INPUT = "input"
INPUT_PARTITIONS = 4
RECORDS_PER_S = 150
WAIT_S = 120
GAVE_UP = {GIVE_UP, -signal.SIGALRM}
"""Exit codes of a worker whose library lets it go no further, or hangs (transform_worker.py)."""


class Worker:
    """One worker as a process, and its replacement when it gives up."""

    def __init__(self, library: str, number: int, servers: str, directory: Path) -> None:
        name = f"{library}-{number}"
        self._errors = directory / f"{name}.stderr"
        self._settings = {
            "library": library,
            "name": name,
            "servers": servers,
            "group": f"app-{library}",
            "input": INPUT,
            "output": f"output-{library}",
        }
        self.gave_up = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.interop.transform_worker"]
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, json.dumps(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": PYTHONPATH},
            )

    def look_after(self) -> None:
        """Start it again when it gave up; any other end is an error."""
        code = self._process.poll()
        if code in GAVE_UP:
            self.gave_up += 1
            self.start()
        else:
            assert code is None, f"exit code {code}: {self.errors()}"

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(WAIT_S)

    def say_where(self) -> None:
        """Make it print the line it is at, among its errors."""
        self._process.send_signal(signal.SIGUSR1)

    def errors(self) -> str:
        return self._errors.read_text(errors="replace")[-3000:]


class Feeder(threading.Thread):
    """Numbers for the input until told to stop; the broker may be down meanwhile."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self._enough = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": WAIT_S * 1000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        while not self._enough.wait(1 / RECORDS_PER_S):
            self._producer.produce(
                INPUT, b"%d" % self.count, partition=self.count % INPUT_PARTITIONS
            )
            self._producer.poll(0)
            self.count += 1

    def finish(self) -> int:
        self._enough.set()
        self.join()
        assert self._producer.flush(WAIT_S) == 0
        return self.count


class Life:
    """The applications, the faults, and the results."""

    def __init__(self, broker, directory: Path) -> None:
        self.broker = broker
        self.servers = broker.bootstrap_servers
        self._directory = directory
        create(self.servers, INPUT, partitions=INPUT_PARTITIONS)
        for library in WORKERS:
            create(self.servers, f"output-{library}", partitions=OUTPUT_PARTITIONS)
        self.feeder = Feeder(self.servers)
        self.workers = {
            library: [self._worker(library, number) for number in range(2)] for library in WORKERS
        }

    def _worker(self, library: str, number: int) -> Worker:
        return Worker(library, number, self.servers, self._directory)

    def all_workers(self) -> list[Worker]:
        return [worker for workers in self.workers.values() for worker in workers]

    def run(self) -> int:
        """Run all steps; return the number of records of the input."""
        self.feeder.start()
        self.wait_for_progress()
        for first, _second in self.workers.values():
            first.kill()
            first.start()
        self.wait_for_progress()
        for _first, second in self.workers.values():
            second.pause()
        # The others take over all partitions: then the sessions and the transactions have ended.
        self.wait_for_progress(paused=True)
        for library, workers in self.workers.items():
            workers[1].resume()
            workers.append(self._worker(library, 2))
        self.wait_for_progress()
        self.broker.kill()
        self.broker.restart()
        self.wait_for_progress()
        count = self.feeder.finish()
        self._wait(lambda: all(self.taken(library) == count for library in WORKERS))
        return count

    def wait_for_progress(self, *, paused: bool = False) -> None:
        """Wait until every application has committed all that has been sent up to now."""
        count = self.feeder.count
        self._wait(lambda: all(self.taken(library) >= count for library in WORKERS), paused=paused)

    def taken(self, library: str) -> int:
        """Return the number of records that an application took, by its stable offsets."""
        group = f"app-{library}"
        offsets = committed_offsets(self.servers, group, INPUT, range(INPUT_PARTITIONS))
        return sum(max(offset, 0) for offset in offsets)

    def _wait(self, condition: Callable[[], bool], *, paused: bool = False) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, self.described()
            for worker in self.all_workers():
                worker.look_after()
            # Each look has a consumer of its own for each library.
            time.sleep(random.uniform(0.1, 0.3))

    def described(self) -> str:
        for worker in self.all_workers():
            worker.say_where()
        taken = {library: self.taken(library) for library in WORKERS}
        errors = [worker.errors() for worker in self.all_workers()]
        return "\n".join([f"{self.feeder.count} sent, taken: {taken}", *errors])

    def end(self) -> None:
        for worker in self.all_workers():
            worker.kill()


@pytest.fixture(scope="module")
def life(broker_class, tmp_path_factory):
    directory = tmp_path_factory.mktemp("transform")
    with broker_class(directory / "broker", **SETTINGS) as broker:
        life = Life(broker, directory)
        try:
            life.count = life.run()
            yield life
        finally:
            life.end()


@pytest.mark.parametrize("library", WORKERS)
def test_every_input_is_in_the_committed_output_once(life, library, say):
    values: Counter[bytes] = Counter()

    def are_all_there() -> bool:
        topic = f"output-{library}"
        output = read_with_confluent(life.servers, topic, OUTPUT_PARTITIONS, COMMITTED)
        values.clear()
        values.update(value for values in output.values() for value in values)
        return len(values) >= life.count

    # Offsets and outputs of one transaction become visible together, but not at one moment.
    wait_until(are_all_there, "all outputs")
    expected = {transformed(b"%d" % number) for number in range(life.count)}
    assert [value for value, times in values.items() if times > 1] == []
    assert values.keys() == expected
    gave_up = sum(worker.gave_up for worker in life.workers[library])
    say(f"{library}: {life.count} records once; {gave_up} workers gave up and were followed")


def test_workers_leave_when_asked(life):
    for worker in life.all_workers():
        worker.look_after()
    # One that was started this moment has no ear for the signal yet, and one may just give up.
    allowed = {0, -signal.SIGTERM} | GAVE_UP
    assert {worker.stop() for worker in life.all_workers()} <= allowed
