"""What is listed as JSON lines, whole: the form that ``barnabas produce --input json`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.console.records.examining import EXPANDED_BYTES_MAX
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.reading import begin, check_shown
from barnabas.broker.console.records.standing import MARKER
from barnabas.broker.http.answer import Answer
from barnabas.protocol.internal_records import bytes_as_json

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.console.records.examining import Content, FoundRecord

NEXT: Final = "Barnabas-Next"
"""Says in a header of the answer where to go on."""


async def export(question: Question) -> Answer:
    """Answer records as lines to be kept."""
    check_shown(question)
    pace = ThreadPace()
    try:
        with question.places as readers:
            reading = await begin(question, readers, pace, EXPANDED_BYTES_MAX)
            found = [
                each
                async for each in reading.scan.records()
                if each is not None and each.state != MARKER
            ]
            name = reading.topic.name
            lines = await readers.run(partial(_lines, name, found, pace))
    finally:
        pace.end()
    headers = {"Content-Disposition": f'attachment; filename="{name}.jsonl"'}
    following = reading.scan.left()
    if following is not None:
        headers[NEXT] = following
    return Answer(200, "application/octet-stream", iter(lines), headers)


def _lines(topic: str, found: Iterable[FoundRecord], pace: ThreadPace) -> list[bytes]:
    lines = []
    for each in found:
        pace.rest()
        line = {
            "topic": topic,
            "partition": each.partition,
            "offset": each.offset,
            "timestamp": each.timestamp_ms,
            "key": _whole(each.key),
            "value": _whole(each.value),
            "headers": [{"key": name, "value": _whole(value)} for name, value in each.headers],
        }
        lines.append(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return lines


def _whole(content: Content | None) -> str | dict[str, str] | None:
    return None if content is None else bytes_as_json(content.data)
