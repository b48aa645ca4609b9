"""Write one invoice for each order, exactly once, with aiokafka.

aiokafka sends no member of the group with its offsets. So a transactional ID belongs to a partition
of the orders: a new owner of the partition fences the previous one, and then reads the offset.
"""

import asyncio
import os

from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.structs import ConsumerRecord

SERVERS = os.environ["KAFKA_BOOTSTRAP_SERVERS"]


class Invoicing(ConsumerRebalanceListener):
    """A consumer of orders, and a producer for each partition that it has."""

    def __init__(self) -> None:
        self.producers: dict[TopicPartition, AIOKafkaProducer] = {}
        self.busy = asyncio.Lock()
        self.failed: BaseException | None = None
        self.orders = AIOKafkaConsumer(
            bootstrap_servers=SERVERS,
            group_id="invoicing",
            session_timeout_ms=6000,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )

    async def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
        """Stop the producers, between two transactions."""
        async with self.busy:  # no transaction is open
            producers, self.producers = self.producers, {}
            await asyncio.gather(*(each.stop() for each in producers.values()))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Start a producer for each partition."""
        try:
            async with self.busy:
                producers = {each: await self.fencing(each) for each in assigned}
                for each in assigned:  # the library has read the offsets already
                    await self.continue_at_offset(each)
                self.producers = producers
        except Exception as error:  # the library would only log it
            self.failed = error
            raise

    async def fencing(self, partition: TopicPartition) -> AIOKafkaProducer:
        """Return a producer, after aborting what the partition's previous owner left open."""
        producer = AIOKafkaProducer(
            bootstrap_servers=SERVERS,
            transactional_id=f"invoicing-{partition.partition}",
            transaction_timeout_ms=10_000,
        )
        await producer.start()
        return producer

    async def continue_at_offset(self, partition: TopicPartition) -> None:
        """Read a partition next from its committed offset."""
        committed = await self.orders.committed(partition)
        self.orders.seek(partition, committed or 0)

    async def invoice(
        self,
        producer: AIOKafkaProducer | None,
        partition: TopicPartition,
        batch: list[ConsumerRecord[bytes, bytes]],
    ) -> None:
        """Commit the invoices of a batch together with its offset."""
        if producer is None or producer is not self.producers.get(partition):
            if partition in self.orders.assignment():  # it came back
                await self.continue_at_offset(partition)
            return
        async with producer.transaction():
            sent = [
                await producer.send(
                    "invoices", order.value, key=order.key, headers=list(order.headers)
                )
                for order in batch
            ]
            await asyncio.gather(*sent)
            ends = {partition: batch[-1].offset + 1}
            await producer.send_offsets_to_transaction(ends, "invoicing")

    async def run(self) -> None:
        """Work until an error; a supervisor starts the program again."""
        self.orders.subscribe(["orders"], listener=self)
        await self.orders.start()
        while self.failed is None:
            producers = self.producers  # of before the poll: a later assignment is not theirs
            batches = await self.orders.getmany(timeout_ms=200, max_records=50)
            for partition, batch in batches.items():
                async with self.busy:
                    await self.invoice(producers.get(partition), partition, batch)
        raise self.failed


async def main() -> None:
    """Start within a loop, as the library demands."""
    await Invoicing().run()


if __name__ == "__main__":
    asyncio.run(main())
