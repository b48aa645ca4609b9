"""Scenario D, a zombie: an instance that was considered dead resumes and tries to commit."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer

from examples.exactly_once import common

TASKS = ["wash", "dry", "iron", "fold"]


class Instance:
    """One instance of the application; all of them have the same transactional id."""

    def __init__(self, servers: str, name: str, number: int) -> None:
        self._topic = f"{name}-done"
        self._number = number
        self.producer: Producer = common.transactional_producer(servers, name)
        self.consumer: Consumer = common.input_of(servers, f"{name}-tasks", f"{name}-tasks")

    def begin(self) -> list[Message]:
        """Take two tasks and write down what was done, up to the commit."""
        batch = next(common.batches_of(self.consumer, 2))
        self.producer.begin_transaction()
        for message in batch:
            done = f"{common.text(message.value())}-by-{self._number}"
            self.producer.produce(self._topic, done)
        self.producer.flush(common.TIMEOUT_S)
        common.add_offsets(self.producer, self.consumer)
        print(f"  Instance {self._number} has done: {_values(batch)}. It has not committed yet.")
        return batch

    def commit(self) -> None:
        """Commit, or say why that is not possible."""
        try:
            self.producer.commit_transaction(common.TIMEOUT_S)
        except KafkaException as refused:
            error = refused.args[0]
            print(f"  Instance {self._number} wants to commit and is refused: {error.name()}")
        else:
            print(f"  Instance {self._number} has committed.")


def _values(batch: list[Message]) -> str:
    return " ".join(common.text(message.value()) for message in batch)


def main(servers: str) -> None:
    """Show that a fenced instance cannot commit."""
    print("D. A zombie instance")
    name = common.fresh_name("zombie")
    common.create_topics(servers, f"{name}-tasks", f"{name}-done")
    common.send(servers, f"{name}-tasks", [("", task) for task in TASKS])
    common.show("tasks", TASKS)
    first = Instance(servers, name, 1)
    first.begin()
    print("  Instance 1 does not move any more. Instance 2 is started with the same id.")
    second = Instance(servers, name, 2)
    second.begin()
    print("  Instance 1 wakes up.")
    first.commit()
    second.commit()
    second.begin()
    second.commit()
    for isolation in (common.UNCOMMITTED, common.COMMITTED):
        done = [value for _key, value in common.read(servers, f"{name}-done", isolation)]
        common.show(f"done, {isolation}", done)
    committed = [value for _key, value in common.read(servers, f"{name}-done")]
    right = committed == [f"{task}-by-2" for task in TASKS]
    print(f"  Every task was done once: {'yes' if right else 'NO'}")
    first.consumer.close()
    second.consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
