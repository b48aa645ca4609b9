"""Pages of records, one record, and what is in it as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.encoding import as_json, fields_of, text_of
from barnabas.broker.console.pages.topics import topic_of
from barnabas.broker.console.records.examining import (
    EXPANDED_BYTES_MAX,
    Examined,
    FoundRecord,
    Wanted,
    examine,
    records_of,
)
from barnabas.broker.console.records.filters import Filter
from barnabas.broker.console.records.formats import KEPT_BYTES_INTERNAL
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.ranges import FOR_EVER_MS
from barnabas.broker.console.records.reading import begin, blocking_of, check_shown
from barnabas.broker.console.records.rows import (
    BlockingTransactions,
    Formats,
    json_of,
    json_rows,
    row_of,
    written_bytes,
)
from barnabas.broker.console.records.search import search
from barnabas.broker.console.records.shapes import RecordPage
from barnabas.broker.console.records.tail import follow
from barnabas.broker.http.messages.answer import JSON, Answer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import InvalidBatch, Record

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.console.records.pieces import Piece, RecordReaders
    from barnabas.broker.metadata.topic import Partition

WHOLE_BYTES: Final = 1024 * 1024
"""Maximum number of bytes of a single key and value; the download has the rest."""
WHOLE_CHARACTERS: Final = 4 * 1024 * 1024
_SENT_BYTES: Final = 64 * 1024
"""Number of bytes written in one turn of the loop."""
_PART: Final = re.compile(r"(key|value)|header:([0-9]{1,6})")


async def list_records(question: Question) -> Answer:
    """Return a page of records, or a stream of events if requested."""
    check_shown(question)
    if question.accepts_events:
        return await (follow(question) if question.values["follow"] else search(question))
    if question.values["follow"]:
        words = "follow: needs Accept: text/event-stream"
        raise KafkaError(ErrorCode.INVALID_REQUEST, words)
    with question.places.take(question.access) as place:
        readers, pace = place.readers, place.pace
        reading = await begin(question, place, pace)
        found = [each async for each in reading.scan.records() if each is not None]
        blocking = await blocking_of(question, reading.topic, found)
        name = reading.topic.name
        formats = await readers.run(partial(reading.formats.guessed, name, found, pace))
        work = partial(json_rows, found, formats, blocking, pace)
        rows = await readers.run_within(written_bytes(found), work)
        place.hold(sum(map(len, rows)))
        page = RecordPage(
            question.now_ms,
            reading.scan.left(),
            name,
            formats.key,
            formats.value,
            reading.scan.summary(),
            (),
        )
        return place.answered(Answer(200, JSON, _body(page, rows)))


def _body(page: RecordPage, rows: list[str]) -> Iterator[str]:
    """Yield a page with encoded rows in pieces; free each row after it."""
    head = [
        f'"{name}":{text_of(getattr(page, name))}'
        for name in fields_of(RecordPage)
        if name != "items"
    ]
    parts, size = ["{" + ",".join(head) + ',"items":['], 0
    for number in range(len(rows)):
        row, rows[number] = rows[number], ""
        parts.append(row if not number else "," + row)
        size += len(row)
        if size >= _SENT_BYTES:
            yield "".join(parts)
            parts, size = [], 0
    yield "".join(parts) + "]}\n"


# ------------------------------------------------------------------------------------ one record


async def describe_one(question: Question) -> Answer:
    """Return one whole record."""
    check_shown(question)
    with question.places.take(question.access) as place:
        readers, pace = place.readers, place.pace
        partition, offset = _place(question)
        piece = await _piece_at(partition, offset, readers, pace)
        found = await readers.expand(
            piece.batches,
            partial(_examined, piece, partition.index, offset, WHOLE_BYTES, pace),
            EXPANDED_BYTES_MAX,
        )
        blocking = await blocking_of(question, partition.topic, [found])
        asked = Formats(question.text("key_format"), question.text("value_format"))
        work = partial(_written, found, asked, blocking, partition.topic.name, pace)
        text = await readers.run_within(written_bytes([found], WHOLE_CHARACTERS), work)
        place.hold(len(text))
        head = _head_of_one(question, partition, offset)
        return place.answered(Answer(200, JSON, _in_pieces(head, text)))


def _head_of_one(question: Question, partition: Partition, offset: int) -> str:
    """Return the fields that precede the record in a response of one."""
    log = partition.log_here()
    previous = offset - 1 if offset > log.log_start_offset else None
    following = offset + 1 if offset + 1 < log.high_watermark else None
    head = {
        "as_of": as_json(question.now_ms),
        "topic": partition.topic.name,
        "previous_offset": previous,
        "next_offset": following,
    }
    return f'{text_of(head)[:-1]},"record":'


def _in_pieces(head: str, text: str) -> Iterator[str]:
    yield head
    for start in range(0, len(text), _SENT_BYTES):
        yield text[start : start + _SENT_BYTES]
    yield "}\n"


def _written(
    found: FoundRecord,
    chosen: Formats,
    blocking: BlockingTransactions,
    topic: str,
    pace: ThreadPace,
) -> str:
    formats = chosen.guessed(topic, [found], pace)
    row = row_of(found, formats, blocking, pace, WHOLE_CHARACTERS)
    return json_of(row, pace)


def _place(question: Question) -> tuple[Partition, int]:
    topic, names = topic_of(question), question.names
    number, offset = _number(names["partition"]), _number(names["offset"])
    if number >= len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
    return topic.partitions[number], offset


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"not a number: {text[:80]}")
    return int(text)


async def _piece_at(
    partition: Partition, offset: int, readers: RecordReaders, pace: ThreadPace
) -> Piece:
    """Read the batch with an offset; raises KafkaError if no batch has it."""
    log = partition.log_here()
    if not log.log_start_offset <= offset < log.high_watermark:
        words = f"offset {offset} is outside {log.log_start_offset}..{log.high_watermark}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, words)
    return await readers.after(log, offset, offset + 1, 1, pace)


def _examined(
    piece: Piece, partition: int, offset: int, kept_bytes: int, pace: ThreadPace
) -> FoundRecord:
    wanted = Wanted(
        partition,
        offset,
        offset + 1,
        -FOR_EVER_MS,
        FOR_EVER_MS,
        all_states=True,
        filter=Filter(),
        rows=1,
        kept_bytes=max(kept_bytes, KEPT_BYTES_INTERNAL),
        newest_first=False,
    )
    found: Examined = examine(piece, wanted, pace)
    if found.rows:
        return found.rows[0]
    if found.unread:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, found.unread[0].reason)
    words = f"no record at offset {offset}: compaction removed it, or the offset had none"
    raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, words)


# -------------------------------------------------------------------------------------- download


async def download(question: Question) -> Answer:
    """Return the bytes of a key, a value or a header."""
    check_shown(question)
    part = question.text("part")
    asked = _PART.fullmatch(part)
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "part: key, value or header:N")
    with question.places.take(question.access) as place:
        pace = place.pace
        partition, offset = _place(question)
        piece = await _piece_at(partition, offset, place.readers, pace)
        work = partial(_bytes_of, piece, offset, part, pace)
        data = await place.readers.expand(piece.batches, work, EXPANDED_BYTES_MAX)
        if data is None:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"the record has no {part}")
        place.hold(len(data))
        name = f"{partition.topic.name}-{partition.index}-{offset}-{part.replace(':', '-')}.bin"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        body = _bytes_in_pieces(data)
        return place.answered(Answer(200, "application/octet-stream", body, headers))


def _bytes_of(piece: Piece, offset: int, part: str, pace: ThreadPace) -> bytes | None:
    """Return a part of a record; raises KafkaError for a missing record."""
    _examined(piece, 0, offset, 0, pace)  # It may be below the log's start by now.
    record = _record(piece, offset, pace)
    kind, _, number = part.partition(":")
    if kind == "header":
        at = int(number)
        return record.headers[at][1] if at < len(record.headers) else None
    return record.key if kind == "key" else record.value


def _record(piece: Piece, offset: int, pace: ThreadPace) -> Record:
    for batch in piece.batches:
        try:
            for record in records_of(batch):
                pace.step()
                if record.offset == offset:
                    return record
        except InvalidBatch as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
    raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the record does not exist")


def _bytes_in_pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _SENT_BYTES):
        yield data[start : start + _SENT_BYTES]
