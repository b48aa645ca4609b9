"""Appends of several small batches to one log in a row, at the cost of little more than one.

The rules of partition_log.py hold: each batch is checked before anything changes, and the batches
share one entry of the journal.
"""

from collections.abc import Sequence

from barnabas.protocol.records import (
    NO_PRODUCER_ID,
    NOT_COMPUTED,
    TRANSACTIONAL_BIT,
    placed,
)
from barnabas.storage.batches.batch_contents import TooMuchToLookHere
from barnabas.storage.errors import Rejected
from barnabas.storage.journal.journal import CommitGroup, StoredBatches
from barnabas.storage.journal.journal_format import KIND_BATCHES
from barnabas.storage.log.config import LOG_APPEND_TIME
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.producers import ACCEPTED


def append_run(
    log: PartitionLog,
    batches: Sequence[bytes],
    transactional_producer_id: int = NO_PRODUCER_ID,
    plain_producer_id: int | None = None,
) -> tuple[list[int], CommitGroup | None]:
    """Append small client batches, from the first on, up to one that needs ``log.append``.

    Returns the base offset of each appended batch, and the commit group of all of them. Stops
    without an error before a batch that is refused, repeated, stamped, corrected, or meets the end
    of a segment. Batches of a transaction are appended if it is an open one of the producer
    ``transactional_producer_id``; others are appended from any producer, or only from
    ``plain_producer_id`` and from clients without a producer ID.
    """
    offsets: list[int] = []
    epoch = log.leader_epoch
    stamped = log.config.timestamp_type == LOG_APPEND_TIME
    if stamped or not log.leader_epochs or log.leader_epochs[-1][0] != epoch:
        return offsets, None
    whole_size = sum(map(len, batches))
    group = log.journal.group_for(whole_size)
    chunk = group.growing_chunk(whole_size)
    start = end = len(chunk)
    segment = log.active
    position = segment.size_bytes
    producers = log.producers
    next_offset = log.next_offset
    for batch in batches:
        try:
            header = log.check_client_batch(batch)
        except (Rejected, TooMuchToLookHere):
            break
        has_producer = header[9] >= 0
        is_special = has_producer and producers.check(header) is not ACCEPTED
        if is_special or header[4] == NOT_COMPUTED:
            break
        if header[5] & TRANSACTIONAL_BIT:
            if not (
                header[9] == transactional_producer_id
                and producers.is_in_transaction(header[9], header[10])
            ):
                break
        elif plain_producer_id is not None and has_producer and header[9] != plain_producer_id:
            break
        last_offset = next_offset + header[6]
        if segment.reserve_at_once(last_offset, header[8], len(batch)) < 0:
            break
        chunk += placed(batch, header, next_offset, epoch)
        if has_producer:
            producers.placed(header, next_offset, header[8], log.now_ms())
        end += len(batch)
        offsets.append(next_offset)
        next_offset = last_offset + 1
    if not offsets:
        return offsets, None
    first, count = offsets[0], len(offsets)
    group.add_entry(KIND_BATCHES, epoch, log.partition_id, first, next_offset, end - start, count)
    stored = StoredBatches(first, next_offset, chunk, start, end, segment, position)
    log.queue(group, stored, batches=count)
    return offsets, group
