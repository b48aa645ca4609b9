"""Takes note of batches that a broker refuses for a moment, by ``topics/refused_batches.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.api.checks import TOPIC, WRITE
from barnabas.protocol.records import HEADER_BYTES, read_header

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.broker.topics.topic import Partition
    from barnabas.protocol.messages.produce import ProduceRequest

BATCHES_MAX: Final = 200
"""Of one request that are noted: what is refused is refused at once."""


def note_refused_produce(
    catalogue: Catalogue,
    now_s: Callable[[], float],
    context: RequestContext,
    request: ProduceRequest,
) -> None:
    """Take note of a request that is refused as a whole, where the client may write."""
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
    """Take note of one batch that will come again."""
    if records is not None and len(records) >= HEADER_BYTES:
        header = read_header(records)
        if header.producer_id >= 0:
            claim = header.producer_id, header.producer_epoch
            partition.note_refused(*claim, header.base_sequence, now_s)
