"""Answers as bytes: length and header in front; and what a request header ends with."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, TypeAlias

from barnabas.broker.api.dispatch import API_VERSIONS_KEY, Route
from barnabas.protocol.errors import ErrorCode, Malformed
from barnabas.protocol.wire import skip_tags

Chunks: TypeAlias = list[Any]
"""Pieces of a response: bytes, bytearrays or memoryviews of bytes, and slices of files in a Fetch's
(``barnabas.storage.files.io.FileSlice``), which are sent from where they are."""

_pack_answer_header: Final = Struct(">ii").pack_into
_pack_range_answer: Final = Struct(">iihihhh").pack


def answers_flexibly(route: Route, version: int) -> bool:
    """Return whether the response header has tags.

    Never for ApiVersions: its client does not know yet which versions this broker supports.
    """
    return route.key != API_VERSIONS_KEY and version >= route.api.flexible_from


def encoded(
    encode: Any,  # noqa: ANN401
    response: Any,  # noqa: ANN401
    version: int,
    correlation_id: int,
    flexible: bool,  # noqa: FBT001
) -> tuple[Chunks, int]:
    """Return a response with length and header in front, and its size in bytes."""
    head = bytearray(9 if flexible else 8)  # a flexible header ends with "no tags", which is 0
    chunks = encode(response, version, head)
    size = len(head) if len(chunks) == 1 else sum(map(len, chunks))
    _pack_answer_header(head, 0, size - 4, correlation_id)
    return chunks, size


def skip_header_tags(frame: memoryview, position: int) -> int:
    """Return the position after the tagged fields of a request header, none of which this release
    knows.
    """
    try:
        low: int = frame[position]
        return position + 1 if not low else skip_tags(frame, position + 1, low)
    except IndexError as error:
        raise Malformed("the request header has no end") from error


def range_answer(route: Route, correlation_id: int) -> bytes:
    """Return the response to an ApiVersions request of a version that is not served.

    A v0 body with error 35 and the range of key 18 alone, as Apache Kafka writes it.
    """
    return _pack_range_answer(
        16,
        correlation_id,
        ErrorCode.UNSUPPORTED_VERSION,
        1,
        route.key,
        route.min_version,
        route.max_version,
    )
