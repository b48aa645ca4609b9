"""Everything that is asked of one peer for one purpose: over one connection at a time.

| state | there is | a question | becomes |
|---|---|---|---|
| IDLE | nothing | opens a connection | OPENING |
| OPENING | a task | waits | OPEN; else PAUSING, who waits is told UNREACHABLE or NOT_LET_IN |
| OPEN | a connection | is sent | when that ends PAUSING or IDLE, what was sent is told LOST |
| PAUSING | a timer | waits | OPENING if somebody waits when the timer is due, else IDLE |

Rules of this file:

* **What was given up is never sent again from here.** Whether to repeat is for the one who asked:
  it may know by then that somebody else is to be asked.
* **A connection ends with the first answer that is late.** Answers come in order, so nothing behind
  it would come either; and what is still on its way is ended by the hello of the next (R10).
* **The pause doubles** until a connection has brought an answer: a peer that takes connections and
  closes them is no better than one that refuses them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.cluster.peers.connection import Address, Opened, Refused
from barnabas.broker.cluster.peers.interface import Failure, Limits
from barnabas.broker.config.addresses import address_text

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers.question import Question
    from barnabas.broker.runtime.clock import Clock, Timer

logger = logging.getLogger("barnabas.broker.cluster.peers.link")

Open = Callable[[Address], Awaitable[Opened]]
"""Opens a connection with the next number in its hello; raises Refused."""
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Runs a coroutine and keeps the task until it is done."""

LOGIN_AGE: Final = 0.85
"""After what part of a login's time (KIP-368) its connection makes way for another one."""


class State(Enum):
    """What a link has; see the table at the head of this file."""

    IDLE = auto()
    OPENING = auto()
    OPEN = auto()
    PAUSING = auto()


class Link:
    """The questions to one peer for one purpose."""

    def __init__(
        self, name: str, open_to: Open, spawn: Spawn, clock: Clock, limits: Limits
    ) -> None:
        """``name`` says in the log who is asked, and for what."""
        self.state = State.IDLE
        self._name = name
        self._open_to = open_to
        self._spawn = spawn
        self._clock = clock
        self._limits = limits
        self._address: Address = ("", 0)
        self._waiting: deque[Question] = deque()
        self._sent: deque[Question] = deque()
        self._bytes = 0
        self._opening: asyncio.Task[None] | None = None
        self._opened: Opened | None = None
        self._renew_at: float | None = None
        self._pause_ms = 0.0
        self._pause: Timer | None = None
        self._idle: Timer | None = None

    @property
    def unanswered(self) -> int:
        """How many questions wait, here or at the peer."""
        return len(self._waiting) + len(self._sent)

    # -------------------------------------------------------------------------------- of its owner

    def ask(self, question: Question, address: Address, timeout_ms: float) -> None:
        """Send a question to a peer that listens at ``address``, as soon as that can be."""
        if self.unanswered >= self._limits.questions_max:
            question.fail(Failure.BUSY, f"{self.unanswered} questions wait for this broker")
            return
        if self._bytes + question.size_bytes > self._limits.question_bytes_max:
            question.fail(Failure.BUSY, f"{self._bytes} bytes of questions wait for this broker")
            return
        if address != self._address:
            self._move(address)
        self._bytes += question.size_bytes
        self._waiting.append(question)
        question.start(self._clock, timeout_ms, self._late)
        self._go_on()

    def close(self, failure: Failure, reason: str) -> None:
        """End everything; who waits is told why."""
        self._stop_timers()
        self.state = State.IDLE
        self._drop_connection()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
        self._fail(self._sent, failure, reason)
        self._fail(self._waiting, failure, reason)

    # -------------------------------------------------------------------------- of its connection

    def answered(self, answer: Any) -> None:  # noqa: ANN401  the question's
        """Hand the answer to the question that has waited for longest."""
        question = self._sent.popleft()
        self._bytes -= question.size_bytes
        self._pause_ms = 0.0
        question.tell(answer)
        self._go_on()

    def ended(self, reason: str) -> None:
        """Tell everyone whose question is on its way, and go on with those that wait."""
        self._opened = None
        logger.info("connection to %s has ended: %s", self._name, reason)
        self._fail(self._sent, Failure.LOST, reason)
        self._try_again()

    # ------------------------------------------------------------------------------- of its timers

    def _late(self, question: Question) -> None:
        """Give up what was not answered in time."""
        if not question.was_sent:
            self._waiting.remove(question)
            self._bytes -= question.size_bytes
            question.fail(Failure.LATE, f"no connection in time for {question.api.name}")
            return
        self._sent.remove(question)
        self._bytes -= question.size_bytes
        question.fail(Failure.LATE, f"no answer to {question.api.name} in time")
        self._drop_connection()
        self._fail(self._sent, Failure.LOST, "an earlier answer did not come in time")
        self._try_again()

    def _pause_is_over(self) -> None:
        self._pause = None
        self.state = State.IDLE
        self._go_on()

    def _is_idle(self) -> None:
        self._idle = None
        if self.state is State.OPEN and not self._sent:
            self._drop_connection()
            self.state = State.IDLE

    # ------------------------------------------------------------------------------------- private

    def _go_on(self) -> None:
        """Do what there is to do for those that wait."""
        if self.state is State.OPEN and self._is_worn() and self._waiting:
            if self._sent:
                return  # The answers first; the next connection ends this one.
            self._drop_connection()
            self.state = State.IDLE
        if self.state is State.OPEN:
            self._send()
        elif self.state is State.IDLE and self._waiting:
            self.state = State.OPENING
            self._opening = self._spawn(self._open(self._address))

    async def _open(self, address: Address) -> None:
        this = asyncio.current_task()
        assert this is not None
        limit = self._clock.call_later(self._limits.connect_timeout_ms, self._opening_is_late, this)
        failure, reason = Failure.UNREACHABLE, ""
        opened: Opened | None = None
        try:
            opened = await self._open_to(address)
        except Refused as refused:
            reason = str(refused)
            if refused.is_final:
                failure = Failure.NOT_LET_IN
        except Exception as error:  # the task's top frame: a bug, or an address that is none
            logger.exception(
                "connection to %s failed: address=%s", self._name, address_text(*address)
            )
            reason = repr(error)
        finally:
            limit.cancel()
        if self._opening is not this:  # It was given up, and had come to its end all the same.
            if opened is not None:
                opened.connection.abort()
        elif opened is not None:
            self._has_opened(opened)
        else:
            self._could_not_open(failure, reason)

    def _opening_is_late(self, opening: asyncio.Task[Any]) -> None:
        if self._opening is not opening:
            return  # After a pause of the process, the limit of a cancelled attempt can come due.
        opening.cancel()
        self._could_not_open(Failure.UNREACHABLE, "no connection in time")

    def _could_not_open(self, failure: Failure, reason: str) -> None:
        self._opening = None
        if not self._pause_ms:  # The first of its kind: others follow every second.
            logger.warning("no connection to %s: %s", self._name, reason)
        self._fail(self._waiting, failure, reason)
        self._try_again()

    def _has_opened(self, opened: Opened) -> None:
        self._opening = None
        if not opened.connection.is_open:
            self._could_not_open(Failure.UNREACHABLE, "the peer has closed the connection")
            return
        logger.info("connected to %s at %s", self._name, address_text(*self._address))
        self.state = State.OPEN
        self._opened = opened
        self._renew_at = None
        if opened.login_ms:
            self._renew_at = self._clock.monotonic() + opened.login_ms / 1000 * LOGIN_AGE
        opened.connection.belongs_to(self)
        self._go_on()

    def _send(self) -> None:
        """Send what waits; begin to count the time without a question where nothing does."""
        opened = self._opened
        assert opened is not None
        while self._waiting:
            question = self._waiting.popleft()
            if not opened.versions.offers(question.api, question.version):
                self._bytes -= question.size_bytes
                reason = f"{question.api.name} {question.version} is not spoken there"
                question.fail(Failure.UNSUPPORTED, reason)
                continue
            question.was_sent = True
            self._sent.append(question)
            opened.connection.send(question.api, question.version, question.body)
            question.body = []
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if not self._sent:
            self._idle = self._clock.call_later(self._limits.idle_ms, self._is_idle)

    def _is_worn(self) -> bool:
        """Whether the login of the connection nears its end."""
        return self._renew_at is not None and self._clock.monotonic() >= self._renew_at

    def _try_again(self) -> None:
        """Make the next attempt after a pause, which begins with none once an answer has come."""
        self._stop_timers()
        limits = self._limits
        wait_ms = self._pause_ms
        self._pause_ms = min(max(2 * wait_ms, limits.pause_first_ms), limits.pause_max_ms)
        if wait_ms:
            self.state = State.PAUSING
            self._pause = self._clock.call_later(wait_ms, self._pause_is_over)
        else:
            self.state = State.IDLE
            self._go_on()

    def _move(self, address: Address) -> None:
        """Ask at another address from now on: the peer, or who has its place, listens there."""
        self.close(Failure.LOST, "the broker listens at another address now")
        self._address = address
        self._pause_ms = 0.0

    def _drop_connection(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.connection.abort()

    def _stop_timers(self) -> None:
        for timer in (self._pause, self._idle):
            if timer is not None:
                timer.cancel()
        self._pause = self._idle = None

    def _fail(self, questions: deque[Question], failure: Failure, reason: str) -> None:
        while questions:
            question = questions.popleft()
            self._bytes -= question.size_bytes
            question.fail(failure, reason)
