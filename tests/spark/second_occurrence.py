"""The processor of `transformWithState` in the crash tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class SecondOccurrence(StatefulProcessor):
    """Returns a number when it occurs for the second time."""

    def init(self, handle: Any) -> None:
        self._times = handle.getValueState("times", "times int")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        before = self._times.get()[0] if self._times.exists() else 0
        times = before + sum(1 for _ in rows)
        self._times.update((times,))
        if times == 2:
            yield Row(number=key[0])

    def close(self) -> None:
        pass
