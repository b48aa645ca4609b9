"""The seven words that a handler can await; ``driver.py`` resumes it.

| word | waits for | result |
|---|---|---|
| ``Durable(group)`` | a commit group, from its construction on | None, or the store's Refusal |
| ``Watch`` (``waiting.py``) | bytes in logs, or the end of the time for them | whether they came |
| ``TransactionEnded(coordinator, key)`` | the end of a transaction, or of the time for it | None |
| ``Asked(coordinators, question, wait_ms)`` | the word of another broker | its response |
| ``Aside(start)`` | work on a thread | what it returns or raises |
| ``Until(clock, delay_ms)`` | a time | None |
| ``Turn()`` | the next slice of the loop's time | None |

A word is awaited once, a ``Watch`` also several times. A ``Deferred``, the response that comes by a
callback, can be awaited like a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from barnabas.broker.api.dispatch import CloseConnection
from barnabas.broker.runtime.turns import slice_of_loop, turns_of_loop

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Deferred
    from barnabas.broker.api.driver import Run
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.journal.journal import CommitGroup
    from barnabas.storage.journal.refusal import Refusal

GiveUp: TypeAlias = Callable[[], object]
"""Ends a wait that no run waits for any more."""

NESTED_MOST: Final = 50
"""Runs that are resumed inside each other; each takes several frames of the stack."""

Result = TypeVar("Result")
Question = TypeVar("Question")
Question_contra = TypeVar("Question_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Asking = TypeVar("Asking")


class Ticket:
    """One wait of a run: takes one result, and resumes the run with it."""

    __slots__ = ("_run", "error", "is_used", "value")

    nested: ClassVar[int] = 0
    """Number of runs that are resumed inside each other."""

    def __init__(self, run: Run[Any]) -> None:
        self._run: Run[Any] | None = run
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_used = False

    def settle(self, value: Any = None) -> None:  # noqa: ANN401
        """Resume the run with a value, unless the wait was given up."""
        run, self._run = self._run, None
        if run is not None:
            self.value = value
            self.is_used = True
            run.resume(self)

    def fail(self, error: BaseException) -> None:
        """Resume the run with an exception, unless the wait was given up."""
        self.error = error
        self.settle()

    def drop(self) -> None:
        """Abandon the wait."""
        self._run = None

    def take(self, future: asyncio.Future[Any]) -> None:
        """Resume the run with the outcome of a future."""
        if future.cancelled():
            self.fail(asyncio.CancelledError())
            return
        error = future.exception()
        if error is not None:
            self.fail(error)
        else:
            self.settle(future.result())

    # To a Deferred that a run awaits this is the connection.

    def answered(self, deferred: Deferred[Any]) -> None:
        """Receive the response, or None without one.

        It may be the response of a run that itself awaited a Deferred. A long chain of such runs
        continues in the next turn of the loop, before the stack is full.
        """
        if Ticket.nested >= NESTED_MOST:
            asyncio.get_running_loop().call_soon(self.settle, deferred.response)
            return
        Ticket.nested += 1
        try:
            self.settle(deferred.response)
        finally:
            Ticket.nested -= 1

    def bug(self, name: str, error: BaseException) -> None:  # noqa: ARG002
        """Receive an internal error."""
        self.fail(error)

    def close(self, reason: str) -> None:
        """Receive the order to close the connection."""
        self.fail(CloseConnection(reason))


class Word(Protocol):
    """A thing to wait for."""

    ends_early: ClassVar[bool]
    """Whether the wait ends, with False, when the connection needs its response soon."""
    is_work: ClassVar[bool]
    """Whether this broker computes during the wait, in place of waiting for others."""

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """Start to wait; ``ticket`` gets the result, at once or later, on the loop.

        Return a function that ends the wait early, or None if none is needed.
        """


class Durable:
    """The wait for a commit group to be durable or refused.

    Construct it in the turn that placed the batches: a group may be refused in the next turn. The
    run continues when the group is about to be durable, and prepares a response that is sent once
    it is.
    """

    __slots__ = ("_refusal", "_settled", "_ticket")

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = False

    def __init__(self, group: CommitGroup) -> None:
        self._settled = False
        self._refusal: Refusal | None = None
        self._ticket: Ticket | None = None
        group.add_answer(self)

    def __await__(self) -> Generator[Any, Any, Refusal | None]:
        result: Refusal | None = yield self
        return result

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        if self._settled:
            ticket.settle(self._refusal)
        else:
            self._ticket = ticket
        return None

    def prepare(self) -> None:
        """Resume the run: the commit group is durable before the next responses are sent."""
        self._settle(None)

    def refused(self, refusal: Refusal) -> None:
        """Resume the run with the refusal."""
        self._settle(refusal)

    def _settle(self, refusal: Refusal | None) -> None:
        self._settled, self._refusal = True, refusal
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            ticket.settle(refusal)


class Coordinator(Protocol):
    """A coordinator of transactions."""

    def when_decided(self, key: str, then: Callable[[], None]) -> None:
        """Call ``then`` when the transition in flight has ended."""


class TransactionEnded:
    """The wait for the end of a producer's transaction, at most as long as the coordinator
    allows.
    """

    __slots__ = ("_coordinator", "_key")

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = False

    def __init__(self, coordinator: Coordinator, key: str) -> None:
        """``key`` is the transactional id."""
        self._coordinator = coordinator
        self._key = key

    def __await__(self) -> Generator[Any, Any, None]:
        yield self

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``; an abandoned wait stays in the coordinator's list until it ends."""
        self._coordinator.when_decided(self._key, ticket.settle)
        return None


class Coordinators(Protocol[Question_contra, Answer_co, Asking]):
    """Coordinators on other brokers."""

    def ask(
        self, question: Question_contra, on_answer: Callable[[Answer_co], None], *, wait_ms: float
    ) -> Asking:
        """Send a request to its coordinator; ``on_answer`` is called after this returned."""

    def give_up(self, asking: Asking) -> None:
        """Stop waiting for the response."""


class Asked(Generic[Question, Answer, Asking]):
    """The wait for the response of another broker, or for the error that replaces it."""

    __slots__ = ("_coordinators", "_question", "_wait_ms")

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = False

    def __init__(
        self,
        coordinators: Coordinators[Question, Answer, Asking],
        question: Question,
        wait_ms: float,
    ) -> None:
        self._coordinators = coordinators
        self._question = question
        self._wait_ms = wait_ms

    def __await__(self) -> Generator[Any, Any, Answer]:
        result: Answer = yield self
        return result

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        asking = self._coordinators.ask(self._question, ticket.settle, wait_ms=self._wait_ms)
        return partial(self._coordinators.give_up, asking)


class Aside(Generic[Result]):
    """The wait for work on a thread, which ``start`` begins; cancelled when the client leaves."""

    __slots__ = ("_start",)

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = True

    def __init__(self, start: Callable[[], asyncio.Future[Result]]) -> None:
        self._start = start

    def __await__(self) -> Generator[Any, Any, Result]:
        result: Result = yield self
        return result

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        future = self._start()
        future.add_done_callback(ticket.take)
        return future.cancel


class Until:
    """The wait for a time, which nothing cuts short."""

    __slots__ = ("_clock", "_delay_ms")

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = False

    def __init__(self, clock: Clock, delay_ms: float) -> None:
        self._clock = clock
        self._delay_ms = delay_ms

    def __await__(self) -> Generator[Any, Any, None]:
        yield self

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        return self._clock.call_later(self._delay_ms, ticket.settle).cancel


class Turn:
    """The wait for the next slice of the loop's time, which takes no time during a slice.

    It is for work that ends with its client; ``broker/runtime/turns.py`` lists the other kinds.
    """

    __slots__ = ()

    ends_early: ClassVar[bool] = False
    is_work: ClassVar[bool] = True

    def __await__(self) -> Generator[Any, Any, None]:
        if not turns_of_loop().is_left:
            yield self

    def begin(self, ticket: Ticket) -> GiveUp | None:
        """See ``Word``."""
        turn = slice_of_loop()
        turn.add_done_callback(ticket.take)
        return turn.cancel


async def later(clock: Clock, delay_ms: float, result: Result) -> Result:
    """Return ``result`` after a delay."""
    await Until(clock, delay_ms)
    return result
