"""Scenario C, a crash between the output and the offset: without transactions, and with them."""

from __future__ import annotations

import sys

from examples.exactly_once import common

NUMBERS = ["1", "2", "3", "4", "5", "6"]
BATCH = 3


def plain_worker(servers: str, name: str, *, crashes: bool) -> None:
    """Output first, offset afterwards: at least once."""
    producer = common.plain_producer(servers)
    consumer = common.input_of(servers, f"{name}-squares", f"{name}-numbers")
    for batch in common.batches_of(consumer, BATCH):
        for message in batch:
            producer.produce(f"{name}-squares", str(int(common.text(message.value())) ** 2))
        producer.flush(common.TIMEOUT_S)
        if crashes:
            common.crash()
        consumer.commit(asynchronous=False)
    consumer.close()


def transactional_worker(servers: str, name: str, *, crashes: bool) -> None:
    """Output and offset in one transaction: exactly once."""
    producer = common.transactional_producer(servers, name)
    consumer = common.input_of(servers, f"{name}-squares", f"{name}-numbers")
    for batch in common.batches_of(consumer, BATCH):
        producer.begin_transaction()
        for message in batch:
            producer.produce(f"{name}-squares", str(int(common.text(message.value())) ** 2))
        producer.flush(common.TIMEOUT_S)
        if crashes:
            common.crash()
        common.add_offsets(producer, consumer)
        producer.commit_transaction(common.TIMEOUT_S)
    consumer.close()


WAYS = {"without a transaction": plain_worker, "in one transaction": transactional_worker}


def main(servers: str) -> None:
    """Show a crash between two transactions."""
    print("C. A crash between the output and the offset")
    common.show("numbers", NUMBERS)
    for way, worker in WAYS.items():
        name = common.fresh_name("crash")
        common.create_topics(servers, f"{name}-numbers", f"{name}-squares")
        common.send(servers, f"{name}-numbers", [("", number) for number in NUMBERS])
        print(f"  Output and offset {way}:")
        for crashes in (True, False):
            common.run_worker(worker, servers, name, crashes=crashes)
        squares = [value for _key, value in common.read(servers, f"{name}-squares")]
        common.show("squares", squares)
        expected = [str(int(number) ** 2) for number in NUMBERS]
        print(f"  Every number was squared once: {'yes' if squares == expected else 'NO'}")


if __name__ == "__main__":
    main(sys.argv[1])
