"""How one broker's calls reach what brokers of one process share: cut, or losing answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from barnabas.storage.replicated.log_index import IndexClosed
from barnabas.storage.runtime.threads import new_condition

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")


class Link:
    """What all ways of one broker go over. Any thread may cut and mend it."""

    def __init__(self) -> None:
        """It is whole."""
        self.changed = new_condition()
        self.is_cut = False

    def cut(self) -> None:
        """Let nothing through until ``mend``: calls wait, and are not answered."""
        with self.changed:
            self.is_cut = True
            self.changed.notify_all()

    def mend(self) -> None:
        """Let everything through again."""
        with self.changed:
            self.is_cut = False
            self.changed.notify_all()


class Way:
    """Makes each call again until its answer is heard. Any thread may tell it what becomes of them.

    One caller at a time.
    """

    def __init__(self, link: Link | None = None) -> None:
        """``link``: what it goes over, together with others; None: something of its own."""
        self._link = Link() if link is None else link
        self.is_closed = False
        """Whether it answers nobody any more."""
        self._answers_to_lose = 0

    def cut(self) -> None:
        """Let nothing through until ``mend``: calls wait, and are not answered."""
        self._link.cut()

    def mend(self) -> None:
        """Let everything through again."""
        self._link.mend()

    def lose_answers(self, count: int) -> None:
        """Lose the next ``count`` answers: what was done is done, and nobody hears of it."""
        with self._link.changed:
            self._answers_to_lose = count

    def close(self) -> None:
        """End whatever waits, on whichever thread."""
        with self._link.changed:
            self.is_closed = True
            self._link.changed.notify_all()

    def _ask(
        self,
        question: Callable[Asked, Answer],
        *arguments: Asked.args,
        **named: Asked.kwargs,
    ) -> Answer:
        while True:
            self._go_there()
            answer = question(*arguments, **named)
            if self._answer_arrives():
                return answer

    def _go_there(self) -> None:
        with self._link.changed:
            self._link.changed.wait_for(lambda: self.is_closed or not self._link.is_cut)
            if self.is_closed:
                raise IndexClosed

    def _answer_arrives(self) -> bool:
        """Whether the way is open back, too."""
        with self._link.changed:
            if self._answers_to_lose:
                self._answers_to_lose -= 1
                return False
            return not self._link.is_cut
