"""A wait for the end of a journal group, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.storage.journal.refusal import Refusal


class Settled:
    """Waits until a group of the journal is durable or refused: either way it is no more open."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def durable(self) -> None:
        """See ``Waiter``."""
        self._then()

    def refused(self, _refusal: Refusal) -> None:
        """See ``Waiter``."""
        self._then()
