"""The README's example does what the README says."""

import re
import subprocess
import sys
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.counterparts.barnabas_process import BarnabasProcess
from tests.interop.administration import create

README = Path(__file__).parents[2] / "README.md"


def test_the_example_makes_one_invoice_of_every_order():
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert "localhost:9092" in example
    with BarnabasProcess() as broker:
        program = example.replace("localhost:9092", broker.bootstrap_servers)
        for topic in ("orders", "invoices"):
            create(broker.bootstrap_servers, topic, partitions=2)
        for number in range(2):  # The second life goes on where the first one has ended.
            orders = [b"order %d of %d" % (each, number) for each in range(50)]
            produce(broker.bootstrap_servers, orders)
            subprocess.run([sys.executable, "-c", program], timeout=120, check=True)
            expected = sorted(expected_before(number) + orders)
            assert sorted(committed_invoices(broker.bootstrap_servers)) == expected


def expected_before(number: int) -> list[bytes]:
    return [b"order %d of %d" % (each, life) for life in range(number) for each in range(50)]


def produce(servers: str, values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=servers)
    for value in values:
        producer.send("orders", value)
    producer.close()


def committed_invoices(servers: str) -> list[bytes]:
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
    )
    consumer.assign([TopicPartition("invoices", index) for index in range(2)])
    found = [record.value for record in consumer]
    consumer.close()
    return found
