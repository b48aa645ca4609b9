"""A request for records: its permissions, its range, and the transactions that block records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.pages.topics import topic_of
from barnabas.broker.console.pages.transactions import open_on
from barnabas.broker.console.records.filters import read_filter
from barnabas.broker.console.records.formats import INTERNAL, KEPT_BYTES, KEPT_BYTES_INTERNAL
from barnabas.broker.console.records.ranges import (
    FOR_EVER_MS,
    chosen,
    ranges_from,
    ranges_of,
    read_partitions,
    read_start,
)
from barnabas.broker.console.records.rows import BlockingTransactions, Formats
from barnabas.broker.console.records.scan import Scan, Terms
from barnabas.broker.console.records.shapes import BlockingTransaction
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.admin.observed import ObservedBroker
    from barnabas.broker.console.questions import Question
    from barnabas.broker.console.records.examining import FoundRecord
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.console.records.places import Place
    from barnabas.broker.metadata.topic import Partition, Topic
    from barnabas.broker.security.acls.access import Access

ALL_STATES: Final = "all"


@dataclass(frozen=True, slots=True)
class Reading:
    """A parsed and checked request for records."""

    question: Question
    topic: Topic
    formats: Formats
    scan: Scan
    pace: ThreadPace
    readers: RecordReaders


def check_shown(question: Question) -> None:
    """Check the topic in the path as ``check_readable`` does."""
    check_readable(question.broker, question.access, question.names["topic"])


def check_readable(broker: ObservedBroker, access: Access, topic: str) -> None:
    """Raise KafkaError if records are hidden; else write the access to the audit log."""
    if not broker.config.console_records:
        words = "records are hidden: barnabas.console.records is false"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, words)
    broker.audit.read_records(access.principal, access.host, topic)


async def begin(
    question: Question, place: Place, pace: ThreadPace, kept_bytes: int = KEPT_BYTES
) -> Reading:
    """Parse a request; ``kept_bytes`` of each key and value are kept. Raises KafkaError."""
    topic, readers = topic_of(question), place.readers
    wanted = read_filter(question.text("filter"))
    order = question.text("order")
    all_states = question.text("view") == ALL_STATES
    start = read_start(question.text("from"))
    until_ms = int(question.values.get("until_ms", FOR_EVER_MS))
    partitions = chosen(topic, read_partitions(question.text("partition")), wanted.partitions)
    after = question.text("after")
    if after:
        ranges = ranges_from(after, order, partitions)
    else:
        ranges = await ranges_of(partitions, start, until_ms, readers, committed=not all_states)
    formats = Formats(question.text("key_format"), question.text("value_format"))
    internal = {formats.key, formats.value} & INTERNAL.keys() or topic.name in INTERNAL.values()
    terms = Terms(
        order,
        int(question.values["limit"]),
        all_states,
        wanted,
        start.number if start.kind == "time" else -FOR_EVER_MS,
        until_ms,
        max(kept_bytes, KEPT_BYTES_INTERNAL) if internal else kept_bytes,
    )
    parts = {each.index: each for each in partitions}
    scan = Scan(readers, pace, parts, ranges, terms, place.hold, question.broker.clock)
    return Reading(question, topic, formats, scan, pace, readers)


async def blocking_of(
    question: Question, topic: Topic, found: Iterable[FoundRecord]
) -> BlockingTransactions:
    """Return the open transactions that block records."""
    blockers = {(each.partition, each.blocker) for each in found if each.blocker is not None}
    if not blockers:
        return {}
    blocking = {}
    for number, blocker in blockers:
        assert blocker is not None
        partition = _partition(topic, number)
        first = None
        if partition is not None:
            await question.pace.spend()
            first = next(open_on(question, partition, question.now_ms), None)
        name = None
        if first is not None and first.producer_id == str(blocker.producer_id):
            name = None if first.transaction is None else first.transaction.transactional_id
        blocking[number, blocker.producer_id] = BlockingTransaction(
            name, str(blocker.producer_id), blocker.producer_epoch, blocker.start_offset
        )
    return blocking


def _partition(topic: Topic, number: int) -> Partition | None:
    return topic.partitions[number] if number < len(topic.partitions) else None
