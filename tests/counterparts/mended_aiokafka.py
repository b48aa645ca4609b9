"""aiokafka without a fault that the death of any broker brings out.

aiokafka 0.14.0 ends a transactional producer permanently ("Unexpected error during batch delivery")
if a broker dies after the producer has sent it FindCoordinator. `Sender._find_coordinator` retries
after three errors only, and a closed connection is not among them. It chooses a broker at random,
so it may choose the dying broker that caused the request.
"""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import CoordinatorNotAvailableError, KafkaConnectionError


class PatientClient(AIOKafkaClient):
    """The client of a producer, which retries FindCoordinator after a closed connection."""

    async def coordinator_lookup(self, coordinator_type: Any, coordinator_key: str) -> Any:
        """Raise CoordinatorNotAvailableError instead of an error of the connection."""
        try:
            return await super().coordinator_lookup(coordinator_type, coordinator_key)
        except KafkaConnectionError as error:
            raise CoordinatorNotAvailableError from error


def patient(producer: AIOKafkaProducer) -> AIOKafkaProducer:
    """Return a producer that was not started yet, with what it asks brokers by mended."""
    producer.client.__class__ = PatientClient
    return producer
