"""Records of batches that a broker refuses temporarily, for ``metadata/pending_retries.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import TOPIC, WRITE
from barnabas.protocol.records import HEADER_BYTES, BatchHeader, read_header

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.topic import Partition
    from barnabas.protocol.messages.produce import ProduceRequest
    from barnabas.storage.log.partition_log import PartitionLog

BATCHES_MAX: Final = 200
"""Maximum number of batches recorded for one request, since a refusal must be quick."""


def note_refused_produce(
    catalogue: Catalogue,
    now_s: Callable[[], float],
    context: RequestContext,
    request: ProduceRequest,
) -> None:
    """Record the batches of a Produce that is refused as a whole, if the client may write."""
    left = BATCHES_MAX
    for topic_data in request.topic_data:
        topic = catalogue.topic(topic_data.name) or catalogue.topic_by_id(topic_data.topic_id)
        if topic is None or topic.is_internal:
            continue
        if not context.access.may_see(TOPIC, topic.name, WRITE):
            continue
        for data in topic_data.partition_data:
            left -= 1
            if left < 0:
                return
            if 0 <= data.index < len(topic.partitions):
                note_batch(topic.partitions[data.index], data.records, now_s())


def note_batch(partition: Partition, records: memoryview | None, now_s: float) -> None:
    """Record one batch that the producer will retry."""
    header = _header_of_producer(records)
    if header is not None:
        claim = header.producer_id, header.producer_epoch
        partition.note_refused(*claim, header.base_sequence, now_s)


def is_held_back(
    partition: Partition, log: PartitionLog, records: memoryview | None, now_s: float
) -> bool:
    """Whether a batch was sent after one that was refused just now (S12)."""
    refused = partition.refused
    if refused is None:
        return False
    refused.forget_old(now_s)
    if not refused:
        partition.refused = None
        return False
    header = _header_of_producer(records)
    return header is not None and refused.holds_back(log.producers, header)


def _header_of_producer(records: memoryview | None) -> BatchHeader | None:
    """Return the header of a producer's batch, or None without a producer or if malformed."""
    if records is None or len(records) < HEADER_BYTES:
        return None
    header = read_header(records)
    return header if header.producer_id >= 0 else None
