"""kill -9 in a loop under transactions of both generations (KAFKA-20734).

Apache Kafka 4.3.0 on one node tears and hangs transactions here: while its partitions come up, its
coordinator takes them for deleted and completes transactions without their markers. After each
restart the logs must contradict neither each other nor what the clients were told; in the end, when
the time of those that were abandoned is over, nothing is open anywhere.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.wire_client import WireClient
from tests.crash.amounts import amounts
from tests.crash.test_crash_table import SETTINGS
from tests.crash.test_kill_under_load import kill_during_recovery
from tests.crash.transaction_client import (
    Producer,
    committed_offset,
    create_topic,
    ends,
    history,
    persistent,
)
from tests.crash.transaction_history import TransactionHistory
from tests.crash.transaction_load import Written, values_found
from tests.waiting import wait_until

TOPIC = "transactions"
PLACES = [(TOPIC, index) for index in range(4)]
GROUP_PLACE = (TOPIC, 0)
WORKERS = 4
ABANDONED_MS = 10_000
"""Longer than a machine that is busy takes for what makes a transaction worth abandoning."""
NONE = ErrorCode.NONE


@dataclass
class Worker:
    """One transactional id, used by one client after the other."""

    number: int
    random: Random
    producer: Producer = field(init=False)
    written: list[Written] = field(default_factory=list)
    committed: int = -1
    """The offset that the worker's group has committed, as far as it was told."""
    unanswered: tuple[Written, bool] | None = None
    """The decision that was asked for when the broker died."""
    sent: int | None = None
    """The offset of the present transaction."""
    answered: int = 0
    values: int = 0

    def __post_init__(self) -> None:
        self.producer = Producer(None, f"worker-{self.number}", 2 * (self.number % 2))

    def run(self, broker: BarnabasProcess) -> None:
        try:
            with WireClient(broker) as client:
                self.producer.client = client
                self._finish()
                assert persistent(self.producer.init) == NONE
                self.sent = None
                self._abandon(client)
                while True:
                    self._transaction()
        except OSError:
            return

    def _finish(self) -> None:
        """Ask once more for the decision whose answer was lost: it is the same (C8)."""
        if self.unanswered is None:
            return
        written, commit = self.unanswered
        code = persistent(lambda: self.producer.end(commit=commit))
        assert code == NONE, (self.producer, ErrorCode(code))
        self._decided(written, commit=commit)

    def _decided(self, written: Written, *, commit: bool) -> None:
        written.told = commit
        if commit and self.sent is not None:
            self.committed = self.sent
        self.unanswered = self.sent = None

    def _abandon(self, client: WireClient) -> None:
        """Somebody opens a transaction and is never heard of again."""
        self.values += 1
        key = f"abandoned-{self.number}-{self.values}"
        lost = Producer(client, key, self.producer.generation, timeout_ms=ABANDONED_MS)
        written = Written()
        self.written.append(written)
        assert persistent(lost.init) == NONE
        assert persistent(lambda: lost.add(PLACES[0])) == NONE
        self._write(lost, written, PLACES[0])

    def _transaction(self) -> None:
        producer, random = self.producer, self.random
        written = Written()
        self.written.append(written)
        places = random.sample(PLACES, random.choice((1, 2, len(PLACES))))
        assert persistent(lambda: producer.add(*places)) == NONE
        for place in places:
            self._write(producer, written, place)
        offset = self.values
        if random.random() < 0.3:
            send = partial(producer.send_offsets, producer.key, GROUP_PLACE, offset)
            assert persistent(send) == NONE
            self.sent = offset
        commit = random.random() < 0.7
        written.may_commit = commit
        self.unanswered = written, commit
        assert persistent(lambda: producer.end(commit=commit)) == NONE
        self._decided(written, commit=commit)
        self.answered += 1

    def _write(self, producer: Producer, written: Written, place: tuple[str, int]) -> None:
        self.values += 1
        value = b"#%d%04d#" % (self.number + 1, self.values)
        written.unsure.append(value)
        code = persistent(lambda: producer.write(place, value)[0])
        assert code == NONE, (producer, ErrorCode(code))
        written.unsure.remove(value)
        written.values[place].append(value)

    def check(self, found: TransactionHistory) -> None:
        values = values_found(found)
        for written in self.written:
            written.check(values)


def run_until_killed(broker: BarnabasProcess, workers: list[Worker], seconds: float) -> None:
    """Let all work for a while, kill the broker, raise what somebody found wrong."""
    wrong: list[BaseException] = []

    def work(worker: Worker) -> None:
        try:
            worker.run(broker)
        except AssertionError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    before = sum(worker.answered for worker in workers)
    time.sleep(seconds)
    # A busy machine gets the time for something to happen.
    wait_until(lambda: wrong or sum(worker.answered for worker in workers) > before + 2)
    broker.kill()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


@pytest.mark.timeout(900)
@amounts("kills_wanted", in_test=4, at_night=8)
def test_transactions_survive_kills(kills_wanted):
    seed = 5
    print(f"seed {seed}")
    random = Random(seed)
    workers = [Worker(number, Random(seed + number)) for number in range(WORKERS)]
    with BarnabasProcess(**SETTINGS, barnabas_checkpoint_interval_ms="300") as broker:
        with WireClient(broker) as client:
            create_topic(client, TOPIC, len(PLACES))
            found = client.ask(FIND_COORDINATOR, FindCoordinatorRequest("worker-0"), 3)
            assert found.error_code == NONE
        for _ in range(kills_wanted):
            run_until_killed(broker, workers, random.uniform(0.2, 0.8))
            if random.random() < 0.3:
                kill_during_recovery(broker, random)
            broker.restart()
            with WireClient(broker) as client:
                history(client)
        with WireClient(broker) as client:
            for worker in workers:
                worker.producer.client = client
                worker._finish()
                assert persistent(worker.producer.init) == NONE
            for place in PLACES:  # By and by the abandoned ones are over.
                wait_until(lambda place=place: len({*ends(client, place)}) == 1)
            ended = history(client)
            for worker in workers:
                key = worker.producer.key
                assert committed_offset(client, key, GROUP_PLACE) == worker.committed
        ended.check_complete()
        for worker in workers:
            worker.check(ended)
    answered = sum(worker.answered for worker in workers)
    print(f"{kills_wanted} kills, {answered} transactions answered")
    assert answered > 2 * kills_wanted, "the kills came before anything happened"
