"""Markers that are not written for a while: their transactions are decided, and not over."""

from __future__ import annotations

from typing import Any

from barnabas.broker.coordination.markers import MarkerWriter
from barnabas.protocol.errors import ErrorCode


class Markers:
    """``markers.stop()``: no marker can be written until ``markers.go_on()``."""

    def __init__(self, monkeypatch: Any) -> None:
        self._patch = monkeypatch
        self._write = MarkerWriter.write
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        self._patch.setattr(MarkerWriter, "write", lambda *given: self._written(*given))  # noqa: PLW0108 - a function, to be bound

    def go_on(self) -> None:
        self._stopped = False

    def _written(self, writer: Any, topic: str, index: int, marker: Any) -> ErrorCode:
        if self._stopped:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return self._write(writer, topic, index, marker)
