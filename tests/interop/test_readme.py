"""The README's example does what the README says."""

import re
import subprocess
import sys
import time
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create

WAIT_S = 60
README = Path(__file__).parents[2] / "README.md"


def test_the_example_makes_one_invoice_of_every_order():
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert "localhost:9092" in example
    # The example ends when nothing comes for ten seconds; a new group is given its records at once.
    with BarnabasProcess(group_initial_rebalance_delay_ms="0") as broker:
        program = example.replace("localhost:9092", broker.bootstrap_servers)
        for topic in ("orders", "invoices"):
            create(broker.bootstrap_servers, topic, partitions=2)
        for number in range(2):  # The second life goes on where the first one has ended.
            orders = [b"order %d of %d" % (each, number) for each in range(50)]
            produce(broker.bootstrap_servers, orders)
            subprocess.run([sys.executable, "-c", program], timeout=300, check=True)
            expected = sorted(expected_before(number) + orders)
            found = committed_invoices(broker.bootstrap_servers, len(expected))
            assert sorted(found) == expected


def expected_before(number: int) -> list[bytes]:
    return [b"order %d of %d" % (each, life) for life in range(number) for each in range(50)]


def produce(servers: str, values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=servers)
    for value in values:
        producer.send("orders", value)
    producer.close()


def committed_invoices(servers: str, count: int) -> list[bytes]:
    """Wait for so many, then a little for one too many."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    consumer.assign([TopicPartition("invoices", index) for index in range(2)])
    found: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    has_all = False
    while not has_all and time.monotonic() < deadline:
        has_all = len(found) >= count
        for records in consumer.poll(1000).values():
            found += [record.value for record in records]
    consumer.close()
    return found
