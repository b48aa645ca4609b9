"""`python -m examples.spark_data payments --count 100000`: input for the Spark examples.

The records are the same in every run, so the input determines the correct output. Missing topics of
an example are created.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60.0
ACCOUNTS, USERS, CUSTOMERS, PAGES = 1000, 200, 500, 40
COUNTRIES = ("AT", "CH", "DE", "FR", "IT")
MINUTE_S = 60
FIRST_CLICK_S = 1_790_000_000


class Record(NamedTuple):
    """Record to send."""

    topic: str
    key: str
    value: dict[str, object]


def payments(count: int) -> Iterator[Record]:
    """Transfers between accounts."""
    for number in range(count):
        payer = number * 7919 % ACCOUNTS
        payee = (payer + 1 + number % (ACCOUNTS - 1)) % ACCOUNTS
        value = {"id": number, "from": payer, "to": payee, "cents": 1 + number * 31 % 99_999}
        yield Record("payments", str(payer), value)


def clicks(count: int) -> Iterator[Record]:
    """Clicks in the order of their time; a visit is twenty clicks, a minute apart, of one user.

    The last click, days later, ends all sessions: without it they would stay open.
    """
    for number in range(count):
        hour, place = divmod(number, 20 * 4)
        user = (hour * 4 + place % 4) * 37 % USERS
        second = FIRST_CLICK_S + hour * 60 * MINUTE_S + place // 4 * MINUTE_S
        yield Record("clicks", f"user-{user}", _click(f"user-{user}", number % PAGES, second))
    yield Record("clicks", "nobody", _click("nobody", 0, FIRST_CLICK_S + (count + 600) * MINUTE_S))


def _click(user: str, page: int, second: int) -> dict[str, object]:
    return {"user": user, "page": f"/page-{page}", "second": second}


def orders(count: int) -> Iterator[Record]:
    """Customers, and orders of theirs."""
    for customer in range(CUSTOMERS):
        value = {"customer": customer, "country": COUNTRIES[customer % len(COUNTRIES)]}
        yield Record("customers", str(customer), value)
    for number in range(count):
        customer = number * 271 % CUSTOMERS
        value = {"order": number, "customer": customer, "cents": 100 + number % 900}
        yield Record("orders", str(number), value)


GENERATORS = {"payments": payments, "clicks": clicks, "orders": orders}
TOPICS = {
    "payments": ["payments", "movements"],
    "clicks": ["clicks", "sessions"],
    "orders": ["customers", "orders", "orders-by-country"],
}


def create_topics(servers: str, topics: list[str], partitions: int) -> None:
    """Create the missing ones of the topics."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 4})
    new = [NewTopic(topic, num_partitions=partitions) for topic in topics]
    for future in admin.create_topics(new).values():
        try:
            future.result(TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def send(servers: str, records: Iterator[Record]) -> int:
    """Write the records; return how many there were."""
    settings = {"enable.idempotence": True, "linger.ms": 20, "compression.type": "lz4"}
    producer = Producer({"bootstrap.servers": servers, **settings})
    sent = 0
    for sent, record in enumerate(records, 1):  # noqa: B007 - the count is the result
        value = json.dumps(record.value)
        while True:
            try:
                producer.produce(record.topic, value, record.key)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise TimeoutError(f"not everything could be written to {servers}")
    return sent


def main() -> None:
    """Create the topics of an example and fill its input."""
    parser = argparse.ArgumentParser(prog="python -m examples.spark_data", description=__doc__)
    parser.add_argument("data", choices=sorted(GENERATORS))
    parser.add_argument("--count", type=int, default=100_000, help="records (%(default)s)")
    parser.add_argument("--partitions", type=int, default=4, help="of each topic (%(default)s)")
    default = os.environ.get("BARNABAS_SERVERS", "localhost:9092")
    parser.add_argument("--servers", default=default, help="(%(default)s)")
    arguments = parser.parse_args()
    create_topics(arguments.servers, TOPICS[arguments.data], arguments.partitions)
    sent = send(arguments.servers, GENERATORS[arguments.data](arguments.count))
    print(f"{sent:,} records for {', '.join(TOPICS[arguments.data][:-1])}")


if __name__ == "__main__":
    main()
