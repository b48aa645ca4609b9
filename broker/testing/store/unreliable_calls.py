"""Calls of one broker to a store of the same process, which can be cut or lose results."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.storage.errors import IndexClosed
from barnabas.storage.runtime.threads import new_condition

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Link:
    """Link that all connections of one broker share; any thread can cut and restore it."""

    def __init__(self) -> None:
        """Start with a working link."""
        self.changed = new_condition()
        self.is_cut = False

    def cut(self) -> None:
        """Block calls until ``mend``."""
        with self.changed:
            self.is_cut = True
            self.changed.notify_all()

    def mend(self) -> None:
        """Unblock the calls."""
        with self.changed:
            self.is_cut = False
            self.changed.notify_all()


class Way:
    """Repeats each call until it gets a result, with faults that any thread can set.

    One caller at a time.
    """

    def __init__(self, link: Link | None = None) -> None:
        """``link`` is shared with other connections, or None for a link of its own."""
        self._link = Link() if link is None else link
        self.is_closed = False
        """Whether all calls are refused."""
        self._answers_to_lose = 0

    def cut(self) -> None:
        """Block calls until ``mend``."""
        self._link.cut()

    def mend(self) -> None:
        """Unblock the calls."""
        self._link.mend()

    def lose_answers(self, count: int) -> None:
        """Lose the results of the next ``count`` calls: the calls have an effect, and are
        repeated.
        """
        with self._link.changed:
            self._answers_to_lose = count

    def close(self) -> None:
        """End all calls, on any thread."""
        with self._link.changed:
            self.is_closed = True
            self._link.changed.notify_all()

    def _ask(
        self,
        question: Callable[Arguments, Answer],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Answer:
        while True:
            self._wait_until_reachable()
            answer = question(*arguments, **named)
            if self._answer_arrives():
                return answer

    def _wait_until_reachable(self) -> None:
        with self._link.changed:
            self._link.changed.wait_for(lambda: self.is_closed or not self._link.is_cut)
            if self.is_closed:
                raise IndexClosed

    def _answer_arrives(self) -> bool:
        """Whether the result reaches the caller."""
        with self._link.changed:
            if self._answers_to_lose:
                self._answers_to_lose -= 1
                return False
            return not self._link.is_cut
