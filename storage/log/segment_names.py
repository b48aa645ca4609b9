"""Names of the files of a segment, and the limits of their formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
CLEANED_SUFFIX: Final = ".cleaned"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

GROWN: Final = (
    "another program, such as Apache Kafka, has written to it since this broker stopped: a start"
    " would cut that off"
)

OFFSET_DELTA_MAX: Final = 2**31 - 1
"""Index entries hold offsets relative to the base in 31 bits."""


def file_stem(offset: int) -> str:
    """Return Kafka's file name for an offset, without suffix: twenty digits."""
    return f"{offset:020d}"


def cleaned_name(file_name: str, generation: int) -> str:
    """Return the temporary name of a cleaned segment's file before it replaces ``file_name``."""
    return f"{file_name}.{generation}{CLEANED_SUFFIX}"


class WallClock(Protocol):
    """A clock that has the time of day."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """The time in milliseconds since 1970."""
