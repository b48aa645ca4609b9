"""The transaction example of the README, killed and fenced: each order has one invoice."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from barnabas.testing import Broker
from tests.checkout import ROOT
from tests.interop.test_documents import blocks_of
from tests.waiting import wait_until

ORDERS = 6_000
PARTS = 3
"""The orders are produced in parts, so that a program cannot have processed all of them before it
is killed or fenced."""
PARTITIONS = 2
LIMIT_S = 120


class Invoicing:
    """A broker with orders, and the example as a process."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.servers = broker.bootstrap_servers
        self._directory = directory
        self._reader = KafkaConsumer(
            bootstrap_servers=self.servers, isolation_level="read_committed"
        )
        self._partitions = [TopicPartition("invoices", index) for index in range(PARTITIONS)]
        self._produced = 0

    def produce_part(self) -> None:
        """Write the next part of the orders."""
        first, self._produced = self._produced, self._produced + ORDERS // PARTS
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(first, self._produced):
                producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
            producer.flush()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the program of the README; it waits for orders until it is killed."""
        block = next(
            each for each in blocks_of(ROOT / "README.md") if "send_offsets_to" in each.text
        )
        program = block.text.replace("localhost:9092", self.servers)
        assert "timeout_ms=10_000" in program
        program = program.replace("timeout_ms=10_000", f"timeout_ms={1000 * LIMIT_S}")
        with (self._directory / "errors").open("ab") as errors:
            return subprocess.Popen([sys.executable, "-c", program], stderr=errors)

    def committed(self) -> int:
        """Return the number of stable offsets, markers included."""
        return sum(self._reader.end_offsets(self._partitions).values())

    def wait_for_more(self) -> None:
        """Wait until the program has committed another transaction."""
        before = self.committed()
        wait_until(lambda: self.committed() > before, "another commit", seconds=LIMIT_S)

    def invoices(self) -> list[int]:
        """Return the committed invoices of all partitions, sorted."""
        self._reader.assign(self._partitions)
        self._reader.seek_to_beginning(*self._partitions)
        found: list[int] = []
        ends = self._reader.end_offsets(self._partitions)
        while any(self._reader.position(each) < ends[each] for each in self._partitions):
            for records in self._reader.poll(timeout_ms=1000).values():
                found += [int(each.value) for each in records]
        return sorted(found)

    def finish(self) -> None:
        """Run the program until it has processed all orders, and check that each exists once."""
        running = self.start()
        deadline = time.monotonic() + LIMIT_S
        while len(self.invoices()) < ORDERS:
            assert running.poll() is None, "the program ended early"
            assert time.monotonic() < deadline, "the program does not reach the end"
            time.sleep(0.5)
        running.kill()
        running.wait(LIMIT_S)
        assert self.invoices() == list(range(ORDERS))

    def close(self) -> None:
        self._reader.close()


@pytest.fixture
def invoicing(tmp_path: Path) -> Iterator[Invoicing]:
    with Broker() as broker:
        for topic in ("orders", "invoices"):
            broker.create_topic(topic, partitions=PARTITIONS)
        running = Invoicing(broker, tmp_path)
        yield running
        running.close()


@pytest.mark.timeout(600)
def test_a_program_that_is_killed_and_started_at_once_writes_each_invoice_once(
    invoicing: Invoicing,
) -> None:
    for _ in range(PARTS - 1):
        invoicing.produce_part()
        running = invoicing.start()
        invoicing.wait_for_more()
        running.kill()
        running.wait(LIMIT_S)
    invoicing.produce_part()
    invoicing.finish()


@pytest.mark.timeout(600)
def test_a_program_whose_transaction_is_fenced_ends_and_writes_each_invoice_once(
    invoicing: Invoicing,
) -> None:
    invoicing.produce_part()
    running = invoicing.start()
    invoicing.wait_for_more()
    other = KafkaProducer(bootstrap_servers=invoicing.servers, transactional_id="invoicing-1")
    other.init_transactions()
    other.close()
    for _ in range(PARTS - 1):
        invoicing.produce_part()
    assert running.wait(LIMIT_S) != 0, "the program did not notice that it was fenced"
    invoicing.finish()
