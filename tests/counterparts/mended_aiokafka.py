"""aiokafka without a fault of its own that any broker's death brings out.

aiokafka 0.14.0 ends a transactional producer for good ("Unexpected error during batch delivery")
where the broker dies that it has just asked who its coordinator is: of the errors of that question
`Sender._find_coordinator` tries again after three only, and a connection that was closed is not
among them. It asks a broker by chance, which may be the very one whose death makes it ask.
"""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import CoordinatorNotAvailableError, KafkaConnectionError


class PatientClient(AIOKafkaClient):
    """What a producer asks brokers by."""

    async def coordinator_lookup(self, coordinator_type: Any, coordinator_key: str) -> Any:
        """Say that a coordinator is not known yet where the connection was closed."""
        try:
            return await super().coordinator_lookup(coordinator_type, coordinator_key)
        except KafkaConnectionError as error:
            raise CoordinatorNotAvailableError from error


def patient(producer: AIOKafkaProducer) -> AIOKafkaProducer:
    """Return a producer that was not started yet, with what it asks brokers by mended."""
    producer.client.__class__ = PatientClient
    return producer
