"""The size of a read halves while the server is silent, and grows with its responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.storage.postgresql.postgresql_log_index import PostgreSqlLogIndex
from barnabas.storage.replicated.log_reading import BYTES_AT_ONCE

MOST = 1000


class Silent:
    """A Primary whose server is silent ``silences`` times, then responds."""

    patience_s = 10.0
    took_s = 0.01

    def __init__(self) -> None:
        self.silences = 0
        self.answered: list[tuple[int, int]] = []
        """The extents and bytes of each completed request."""

    def execute(
        self,
        _statement: str,
        arguments: Callable[[int], Sequence[object]],
        **_settings: bool,
    ) -> list[object]:
        for silences in range(self.silences + 1):
            *_named, most, most_bytes = arguments(silences)
        self.silences = 0
        self.answered.append((most, most_bytes))
        return []


def test_after_hours_of_silence_a_few_answers_bring_all_that_is_asked_for():
    primary = Silent()
    index = PostgreSqlLogIndex(primary, None)
    primary.silences = 5000

    def read() -> tuple[int, int]:
        index.extents(1, 0, most=MOST, most_bytes=BYTES_AT_ONCE)
        return primary.answered[-1]

    assert read() == (1, 1), "one extent, which comes by itself"
    while read() != (MOST, BYTES_AT_ONCE):
        assert len(primary.answered) < 10, primary.answered
