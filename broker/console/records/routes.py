"""Routes of the console's API that read records."""

from __future__ import annotations

from typing import Final

from barnabas.broker.api.checks import READ, TOPIC
from barnabas.broker.console.parameters import Parameter
from barnabas.broker.console.records import export, pages, shapes
from barnabas.broker.console.records.formats import AUTO, FORMATS
from barnabas.broker.console.records.ranges import NEWEST, OLDEST
from barnabas.broker.console.records.reading import ALL_STATES
from barnabas.broker.console.records.scan import ROWS_MOST
from barnabas.broker.console.route import Route, required

_RECORDS: Final = "/api/v1/topics/{topic}/records"
_RECORD: Final = "/api/v1/topics/{topic}/partitions/{partition}/records/{offset}"
_CHECK: Final = required(TOPIC, READ)
_LIMIT_DEFAULT: Final = 50
_FORMATS: Final = (
    Parameter("key_format", "What keys are shown as.", str, AUTO, FORMATS),
    Parameter("value_format", "What values are shown as.", str, AUTO, FORMATS),
)
_SELECTION: Final = (
    Parameter("partition", "Numbers with commas between; all if there is none.", default=""),
    Parameter(
        "from",
        "The oldest that are wanted: `beginning`, `end`, `offset:N`, `time:MILLISECONDS` or "
        "`last:N`, so many offsets of each partition.",
        default="beginning",
    ),
    Parameter("until_ms", "Only records that are older than this time.", int),
    Parameter(
        "filter",
        "Words that all have to be there: `text`, `key:text`, `header.trace:text`, `/regex/`, "
        "`partition:3`, `value.order.id = 5`.",
        default="",
    ),
    Parameter(
        "view",
        "Those that readers of committed records are given now, or all.",
        str,
        "committed",
        ("committed", ALL_STATES),
    ),
    Parameter("order", "What comes first.", str, NEWEST, (NEWEST, OLDEST)),
    Parameter("limit", "Records at most.", int, _LIMIT_DEFAULT, least=1, most=ROWS_MOST),
    Parameter("after", "`next` of the answer before.", default=""),
)
_STREAM: Final = (
    Parameter(
        "follow",
        "As a stream: go on with what is written from now on, sampled, without an end.",
        bool,
        False,
    ),
    Parameter(
        "viewer",
        "As a stream: a name for who looks; an earlier search of the same name ends.",
        default="",
    ),
)

RECORD_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        _RECORDS,
        "Records of a topic, with the state of each",
        pages.list_records,
        shapes.RecordPage,
        _CHECK,
        (*_SELECTION, *_FORMATS, *_STREAM),
    ),
    Route(
        f"{_RECORDS}/export",
        "The same records as JSON lines for `barnabas produce --input json`; the header "
        f"`{export.NEXT}` is the start of the next part",
        export.export,
        bytes,
        _CHECK,
        _SELECTION,
    ),
    Route(
        _RECORD,
        "One record, complete",
        pages.describe_one,
        shapes.RecordDescription,
        _CHECK,
        _FORMATS,
    ),
    Route(
        f"{_RECORD}/raw",
        "The bytes of a key, a value or a header",
        pages.download,
        bytes,
        _CHECK,
        (Parameter("part", "`key`, `value` or `header:N`, counted from 0.", default="value"),),
    ),
)
