"""The longest text of every field that a request to the API can bring, in one table.

Parameters (``parameters.py``) and fields of actions (``actions/fields.py``) take their limits from
it by their names: a text without a row fails at the import. Names in paths have rows, too. The
limit is checked before anything else reads the text, and `GET /api/openapi.json` shows it as
``maxLength``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.http.messages.request import BODY_BYTES_MAX
from barnabas.protocol.errors import ErrorCode, KafkaError

NAME_MOST: Final = 32_767
"""Longest string of Kafka's protocol: groups, transactional ids, principals."""
TOPIC_MOST: Final = 249
FILTER_MOST: Final = 1024
CURSOR_MOST: Final = 64 * 1024
"""Maximum length of a cursor, which contains names of groups in Base64."""
PARTITIONS_NAMED_MOST: Final = 100
"""Partitions that one text may name: as many as are put in one order at a time."""
RANGES_MOST: Final = 1000
"""Ranges of offsets that one text may name."""
_WORD_MOST: Final = 64
_NUMBER_MOST: Final = 20

LENGTHS: Final[Mapping[str, int]] = {
    "address": 256,
    "after": CURSOR_MOST,
    "based_on": 4096,
    "client_id": NAME_MOST,
    "confirm": NAME_MOST,
    "filter": FILTER_MOST,
    "from": _WORD_MOST,
    "group": NAME_MOST,
    "host": 256,
    "ip": 256,
    "key": BODY_BYTES_MAX,
    "kind": _WORD_MOST,
    "name": NAME_MOST,
    "name_filter": NAME_MOST,
    "offset": _NUMBER_MOST,
    "offsets": RANGES_MOST * 50,
    "once": _WORD_MOST,
    "part": _WORD_MOST,
    "partition": PARTITIONS_NAMED_MOST * 11,
    "password": 4096,
    "principal": NAME_MOST,
    "series": 4096,
    "target": TOPIC_MOST,
    "to": _WORD_MOST,
    "topic": TOPIC_MOST,
    "transactional_id": NAME_MOST,
    "user": NAME_MOST,
    "value": BODY_BYTES_MAX,
    "viewer": _WORD_MOST,
    "watch": CURSOR_MOST,
}
"""Characters, by the name of the field. One with choices is no longer than the longest of them."""

ENTRIES_MOST: Final = 10_000
"""Entries of a field that is a map or headers."""
ENTRY_NAME_MOST: Final = NAME_MOST
ENTRY_VALUE_MOST: Final = BODY_BYTES_MAX


def check_length(name: str, text: str, most: int) -> None:
    """Raise KafkaError for a text above its field's limit."""
    if len(text) > most:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}: at most {most} characters")


def check_names(names: Mapping[str, str]) -> None:
    """Raise KafkaError for a name in a path above its limit."""
    for name, text in names.items():
        check_length(name, text, LENGTHS[name])
