"""Scenario B, an aggregation: totals by customer, whose state is in a changelog topic.

One transaction holds the new totals, the same totals in the changelog, and the position in the
input. A worker that starts reads its state from the changelog, as far as it is committed. The first
one is killed after it has written everything of a batch and before it commits.
"""

from __future__ import annotations

import sys

from examples.exactly_once import common

PAYMENTS = [("ann", 10), ("bob", 5), ("ann", 20), ("cat", 7), ("bob", 15), ("ann", 30), ("cat", 3)]
BATCH = 2


def restored(servers: str, name: str, isolation: str) -> dict[str, int]:
    """Read the state: the last total of each customer."""
    return {key: int(total) for key, total in common.read(servers, f"{name}-changelog", isolation)}


def worker(servers: str, name: str, crash_in_batch: int | None) -> None:
    """Add up the present payments, and stop at the end of the input."""
    # First the id: it ends the transaction of the worker before. Then what that one has committed.
    producer = common.transactional_producer(servers, name)
    totals = restored(servers, name, common.COMMITTED)
    consumer = common.input_of(servers, f"{name}-sums", f"{name}-payments")
    for number, batch in enumerate(common.batches_of(consumer, BATCH), 1):
        producer.begin_transaction()
        for message in batch:
            customer = common.text(message.key())
            totals[customer] = totals.get(customer, 0) + int(common.text(message.value()))
            for topic in (f"{name}-totals", f"{name}-changelog"):
                producer.produce(topic, str(totals[customer]), customer)
        common.add_offsets(producer, consumer)
        if number == crash_in_batch:
            producer.flush(common.TIMEOUT_S)
            common.crash()
        producer.commit_transaction(common.TIMEOUT_S)
    consumer.close()


def described(totals: dict[str, int]) -> list[str]:
    """Return totals for people."""
    return [f"{customer}={total}" for customer, total in sorted(totals.items())]


def main(servers: str) -> None:
    """Show a sum that counts each record once."""
    print("B. An aggregation with its state in a changelog, killed before it commits a batch")
    name = common.fresh_name("aggregation")
    common.create_topics(servers, f"{name}-payments", f"{name}-totals")
    common.create_topics(servers, f"{name}-changelog", cleanup_policy="compact")
    payments = [(customer, str(amount)) for customer, amount in PAYMENTS]
    common.send(servers, f"{name}-payments", payments)
    common.show("payments", (f"{customer}+{amount}" for customer, amount in payments))
    common.run_worker(worker, servers, name, 2)
    # What the next worker does first: the id, and with it the end of what was left open.
    common.transactional_producer(servers, name)
    for isolation in (common.UNCOMMITTED, common.COMMITTED):
        totals = restored(servers, name, isolation)
        common.show(f"state in the changelog, {isolation}", described(totals))
    common.run_worker(worker, servers, name, None)
    totals = restored(servers, name, common.COMMITTED)
    common.show("state at the end", described(totals))
    outputs = common.read(servers, f"{name}-totals")
    common.show("totals put out", (f"{customer}={total}" for customer, total in outputs))
    expected: dict[str, int] = {}
    for customer, amount in PAYMENTS:
        expected[customer] = expected.get(customer, 0) + amount
    right = totals == expected and len(outputs) == len(PAYMENTS)
    print(f"  Every payment was added once: {'yes' if right else 'NO'}")


if __name__ == "__main__":
    main(sys.argv[1])
