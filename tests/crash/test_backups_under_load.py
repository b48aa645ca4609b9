"""`barnabas backup` at random moments under transactions of both generations.

Each backup is what a power cut at its moment would have left: a broker starts from it, the logs
contradict neither each other nor what the clients had received by then, and no transaction is torn.
A checkpoint every fifth of a second overtakes many a pass of a backup.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.crash.test_crash_table import SETTINGS
from tests.crash.test_kill_transactions import GROUP_PLACE, PLACES, TOPIC, WORKERS, Worker
from tests.crash.transaction_client import (
    Producer,
    committed_offset,
    create_topic,
    ends,
    history,
    persistent,
)
from tests.crash.transaction_load import Written, values_found
from tests.seeds import SEED
from tests.waiting import wait_until

NONE = ErrorCode.NONE


class SteadyWorker(Worker):
    """One that nobody disturbs, and that abandons nothing."""

    def _abandon(self, client: WireClient) -> None:
        del client

    def _transaction(self) -> None:
        super()._transaction()
        time.sleep(0.005)  # Thousands more would only take long to judge.


@dataclass
class Moment:
    """A backup, and what its clients had received before it was begun."""

    directory: Path
    told: dict[int, bool]
    """Which transactions had been answered, by the identity of what was written, and how."""
    committed: list[int]
    """The offset that the group of each worker had committed."""

    def expected(self, written: Written) -> Written:
        """What must hold of a transaction in this backup: later answers promise nothing."""
        told = self.told.get(id(written))
        if told is None and written.told is False:
            told = False
        return replace(written, told=told)


def barnabas(*arguments: object) -> str:
    command = [sys.executable, "-m", "barnabas", *map(str, arguments)]
    environment = BarnabasProcess.python_environment()
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


def take_backups(
    broker: BarnabasProcess, workers: list[SteadyWorker], directory: Path, count: int
) -> list[Moment]:
    moments = []
    random = Random(SEED)
    for number in range(count):
        time.sleep(random.uniform(0.05, 0.6))
        moment = Moment(
            directory / f"backup-{number}",
            {
                id(written): written.told
                for worker in workers
                for written in list(worker.written)
                if written.told is not None
            },
            [worker.committed for worker in workers],
        )
        print(barnabas("backup", moment.directory, "-d", broker.data_directory), end="")
        moments.append(moment)
    return moments


def judge(moment: Moment, workers: list[SteadyWorker], directory: Path) -> None:
    """Start from a backup; judge what is found, then what becomes of it."""
    print(barnabas("restore", moment.directory, directory / "data"), end="")
    with BarnabasProcess(directory, **SETTINGS) as broker, WireClient(broker) as client:
        history(client)
        for worker in workers:  # What was open is aborted, what was decided is completed.
            producer = Producer(client, worker.producer.key, worker.producer.generation)
            assert persistent(producer.init) == NONE
        for place in PLACES:
            wait_until(lambda each=place: len({*ends(client, each)}) == 1)
        ended = history(client)
        ended.check_complete()
        found = values_found(ended)
        for worker, committed in zip(workers, moment.committed, strict=True):
            for written in worker.written:
                moment.expected(written).check(found)
            offset = committed_offset(client, worker.producer.key, GROUP_PLACE)
            assert offset is not None
            assert committed <= offset <= worker.values


@pytest.mark.slow
@pytest.mark.timeout(900)
@amounts("backups", in_test=5, at_night=20)
def test_backups_under_transactions(tmp_path, backups):
    print(f"seed {SEED}")
    workers = [SteadyWorker(number, Random(SEED + number)) for number in range(WORKERS)]
    wrong: list[BaseException] = []

    def work(worker: SteadyWorker) -> None:
        try:
            worker.run(broker)
        except AssertionError as error:
            wrong.append(error)

    settings = SETTINGS | {"barnabas.checkpoint.interval.ms": "200"}
    with BarnabasProcess(tmp_path / "original", **settings) as broker:
        with WireClient(broker) as client:
            create_topic(client, TOPIC, len(PLACES))
            found = client.ask(FIND_COORDINATOR, FindCoordinatorRequest("worker-0"), 3)
            assert found.error_code == NONE
        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        wait_until(lambda: wrong or all(worker.answered for worker in workers))
        moments = take_backups(broker, workers, tmp_path, backups)
        broker.kill()
        for thread in threads:
            thread.join()
    assert wrong == []
    for number, moment in enumerate(moments):
        judge(moment, workers, tmp_path / f"restored-{number}")
    answered = sum(worker.answered for worker in workers)
    print(f"{backups} backups, {answered} transactions answered")
    assert answered > 10 * backups
