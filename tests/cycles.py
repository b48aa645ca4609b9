"""Cycles of objects that the broker leaves, which only a collection frees."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from barnabas.testing import Broker, ClusterBroker
from tests.waiting import until

ROOMS: Final = (
    "barnabas.broker.",
    "barnabas.coordinator.",
    "barnabas.protocol.",
    "barnabas.storage.",
)
KITS: Final = ("barnabas.broker.client.", "barnabas.broker.testing.")


@contextmanager
def cycles() -> Iterator[Counter[str]]:
    """Count the objects of the broker that only a collection frees, by class or function."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(name for each in gc.garbage if (name := _name_of(each)).startswith(ROOMS))
        for name in [name for name in found if name.startswith(KITS)]:
            del found[name]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _name_of(found: object) -> str:
    """Return the module and name of an object's class, or of a function and what runs it."""
    if isinstance(found, FunctionType):
        return f"{found.__module__}.{found.__qualname__}"
    if isinstance(found, CoroutineType):
        return _name_of_code(found.cr_code)
    if isinstance(found, GeneratorType):
        return _name_of_code(found.gi_code)
    return f"{type(found).__module__}.{type(found).__qualname__}"


def _name_of_code(code: CodeType) -> str:
    _, _, path = code.co_filename.rpartition("/barnabas/")
    return f"barnabas.{path.removesuffix('.py').replace('/', '.')}.{code.co_qualname}"


async def come_and_go(broker: Broker | ClusterBroker, number: int) -> None:
    """Create a topic, write to it in a transaction, read it in a group, and delete it."""
    address, topic = broker.bootstrap_servers, f"topic-{number}"
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 3, 1)])
    producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id=topic)
    await producer.start()
    async with producer.transaction():
        await producer.send_and_wait(topic, b"value")
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=address, group_id=topic, auto_offset_reset="earliest"
    )
    await consumer.start()
    await consumer.getone()
    await consumer.stop()
    await producer.stop()
    await admin.delete_topics([topic])
    await admin.close()
    server = broker.server
    await until(lambda: topic not in server.catalogue.topics)
