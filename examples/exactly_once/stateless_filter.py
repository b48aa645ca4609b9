"""Scenario A, a stateless filter: orders of 50 and more pass, batch by batch.

One transaction holds the orders of a batch that pass and the position behind the batch. The worker
is killed in the middle of the second batch and started again.
"""

from __future__ import annotations

import sys

from examples.exactly_once import common

ORDERS = [10, 80, 55, 20, 90, 60, 30, 75, 50, 40, 99, 5]
BATCH = 4
LEAST = 50


def worker(servers: str, name: str, crash_in_batch: int | None) -> None:
    """Filter the present orders, and stop at the end of the input."""
    producer = common.transactional_producer(servers, name)
    consumer = common.input_of(servers, f"{name}-filter", f"{name}-orders")
    for number, batch in enumerate(common.batches_of(consumer, BATCH), 1):
        producer.begin_transaction()
        for message in batch:
            if int(common.text(message.value())) >= LEAST:
                producer.produce(f"{name}-large", message.value(), message.key())
        if number == crash_in_batch:
            # The orders are in the log, in an open transaction.
            producer.flush(common.TIMEOUT_S)
            common.crash()
        common.add_offsets(producer, consumer)
        producer.commit_transaction(common.TIMEOUT_S)
    consumer.close()


def main(servers: str) -> None:
    """Show a filter that copies each record once."""
    print("A. A stateless filter, killed in the middle of its second batch")
    name = common.fresh_name("filter")
    common.create_topics(servers, f"{name}-orders", f"{name}-large")
    common.send(servers, f"{name}-orders", [("order", str(amount)) for amount in ORDERS])
    common.show("orders", map(str, ORDERS))
    common.run_worker(worker, servers, name, 2)
    common.run_worker(worker, servers, name, None)
    for isolation in (common.UNCOMMITTED, common.COMMITTED):
        large = common.read(servers, f"{name}-large", isolation)
        common.show(f"of {LEAST} and more, {isolation}", (amount for _key, amount in large))
    passed = [amount for _key, amount in common.read(servers, f"{name}-large")]
    right = passed == [str(amount) for amount in ORDERS if amount >= LEAST]
    print(f"  Every order passed the filter once: {'yes' if right else 'NO'}")


if __name__ == "__main__":
    main(sys.argv[1])
