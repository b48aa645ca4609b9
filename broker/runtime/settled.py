"""Wait for the end of a commit group, durable or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.storage.journal.refusal import Refusal


class Settled:
    """Waiter for the end of a commit group: durable or refused."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def durable(self) -> None:
        """Call the callback; see ``Waiter``."""
        self._then()

    def refused(self, _refusal: Refusal) -> None:
        """Call the callback; see ``Waiter``."""
        self._then()
