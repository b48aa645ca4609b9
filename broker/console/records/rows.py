"""Found records as rows of a response, in JSON; on a thread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.encoding import as_json, keys_of
from barnabas.broker.console.records.formats import (
    AUTO,
    GUESSED_FROM,
    INTERNAL,
    MARKER_FORMAT,
    SHOWN_CHARACTERS,
    guess,
    show,
    show_internal,
)
from barnabas.broker.console.records.shapes import (
    BlockingTransaction,
    RecordRow,
    Shown,
    ShownHeader,
)
from barnabas.broker.console.records.standing import MARKER
from barnabas.protocol.compression import NAMES
from barnabas.protocol.records import LOG_APPEND_TIME, NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.broker.console.records.examining import Content, FoundRecord
    from barnabas.broker.console.records.pace import ThreadPace

_JSON_PER_BYTE: Final = 12
"""Maximum number of characters of JSON for one byte of a record: two escapes of six each."""
_ROW_BYTES: Final = 4 * 1024
"""Memory of a row besides its contents."""
_TEXT_PIECE: Final = 32 * 1024
"""Characters that are written as JSON in one go."""

BlockingTransactions = Mapping[tuple[int, int], BlockingTransaction]
"""Blocking transactions by partition and producer id."""


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of keys and values."""

    key: str
    value: str

    def guessed(self, topic: str, some: Sequence[FoundRecord], pace: ThreadPace) -> Formats:
        """Return the formats, with open ones guessed from the first records."""
        first = [each for each in some if each.state != MARKER][:GUESSED_FROM]
        key, value = self.key, self.value
        if key == AUTO:
            key = guess(topic, [each.key for each in first], pace)
        if value == AUTO:
            value = guess(topic, [each.value for each in first], pace)
        return Formats(key, value)


def row_of(
    found: FoundRecord,
    formats: Formats,
    blocking: BlockingTransactions,
    pace: ThreadPace,
    characters: int = SHOWN_CHARACTERS,
) -> RecordRow:
    """Return a record as it is shown."""
    batch = found.batch
    has_producer = batch.producer_id != NO_PRODUCER_ID
    key, value = _key_and_value(found, formats, pace, characters)
    blocking_transaction = None
    if found.blocker is not None:
        blocking_transaction = blocking.get((found.partition, found.blocker.producer_id))
    return RecordRow(
        found.partition,
        found.offset,
        found.timestamp_ms,
        "append" if batch.timestamp_type == LOG_APPEND_TIME else "create",
        key,
        value,
        tuple(
            ShownHeader(name, _header(content, pace, min(characters, max(characters // 8, 1))))
            for name, content in found.headers
        ),
        found.header_count,
        found.state,
        blocking_transaction,
        batch.is_transactional,
        str(batch.producer_id) if has_producer else None,
        batch.producer_epoch if has_producer else None,
        found.sequence if batch.base_sequence >= 0 else None,
        batch.base_offset,
        NAMES[batch.compression],
        batch.partition_leader_epoch,
        found.size_bytes,
    )


def _key_and_value(
    found: FoundRecord, formats: Formats, pace: ThreadPace, characters: int
) -> tuple[Shown | None, Shown | None]:
    if found.state == MARKER:
        shown = show(found.value, "text", characters, pace)
        assert shown is not None
        return None, Shown(MARKER_FORMAT, shown.text, shown.size_bytes, shown.is_cut, None)
    key = value = None
    if INTERNAL.keys() & {formats.key, formats.value}:
        name = formats.key if formats.key in INTERNAL else formats.value
        key, value = show_internal(found.key, found.value, name, characters, pace)
    if formats.key not in INTERNAL:
        key = show(found.key, formats.key, characters, pace)
    if formats.value not in INTERNAL:
        value = show(found.value, formats.value, characters, pace)
    return key, value


def _header(content: Content | None, pace: ThreadPace, characters: int) -> Shown | None:
    """Return a header's value: as text where it is UTF-8."""
    shown = show(content, "text", characters, pace)
    if shown is None or shown.problem is None:
        return shown
    return Shown(shown.format, shown.text, shown.size_bytes, shown.is_cut, None)


def written_bytes(found: Iterable[FoundRecord], characters: int = SHOWN_CHARACTERS) -> int:
    """Return the maximum memory of records while they are written as JSON.

    A record's JSON is longer than the record: up to ``characters`` characters for each content.
    """
    return sum(_JSON_PER_BYTE * each.kept_bytes + 2 * characters + _ROW_BYTES for each in found)


def json_of(row: RecordRow, pace: ThreadPace) -> str:
    """Return a row as JSON; long texts piece by piece, with rests between."""
    text = _long(row.key) or _long(row.value)
    pace.step()
    if not text:
        return json.dumps(as_json(row), separators=(",", ":"))
    parts = []
    for key, name in keys_of(RecordRow):
        value = getattr(row, name)
        shown = _shown(value, pace) if isinstance(value, Shown) else _dumped(value)
        parts.append(f"{_dumped(key)}:{shown}")
    return "{" + ",".join(parts) + "}"


def _long(shown: Shown | None) -> bool:
    return shown is not None and len(shown.text) > _TEXT_PIECE


def _dumped(value: object) -> str:
    return json.dumps(as_json(value), separators=(",", ":"))


def _shown(shown: Shown, pace: ThreadPace) -> str:
    pieces = []
    for start in range(0, len(shown.text), _TEXT_PIECE):
        pace.rest()
        pieces.append(json.dumps(shown.text[start : start + _TEXT_PIECE])[1:-1])
    rest = _dumped(Shown(shown.format, "", shown.size_bytes, shown.is_cut, shown.problem))
    return rest.replace('"text":""', '"text":"' + "".join(pieces) + '"', 1)


def json_rows(
    found: Iterable[FoundRecord], formats: Formats, blocking: BlockingTransactions, pace: ThreadPace
) -> list[str]:
    """Return records as rows in JSON."""
    return [json_of(row_of(each, formats, blocking, pace), pace) for each in found]
