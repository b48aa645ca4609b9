"""Requests to one peer for one purpose, over one connection at a time.

| state | has | a request | next state |
|---|---|---|---|
| IDLE | nothing | opens a connection | OPENING |
| OPENING | a task | waits | OPEN; else PAUSING, waiting requests fail: UNREACHABLE or NOT_LET_IN |
| OPEN | a connection | is sent | PAUSING or IDLE when it ends, sent requests fail with LOST |
| PAUSING | a timer | waits | OPENING if a request waits when the timer is due, else IDLE |

Rules of this file:

* **A failed request is not sent again here.** The caller decides: by then it may know that another
  broker must get the request.
* **A connection ends with the first late response.** Responses arrive in order, so no later one
  could arrive either. The hello of the next connection ends what the peer still handles (R10).
* **The pause doubles** until a connection has brought a response: a peer that accepts connections
  and closes them is no better than one that refuses them.
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
"""Share of a login's lifetime (KIP-368) after which its connection is replaced."""


class State(Enum):
    """State of a link; see the table at the head of this file."""

    IDLE = auto()
    OPENING = auto()
    OPEN = auto()
    PAUSING = auto()


class Link:
    """Requests to one peer for one purpose."""

    def __init__(
        self, name: str, open_to: Open, spawn: Spawn, clock: Clock, limits: Limits
    ) -> None:
        """``name`` identifies the peer and the purpose in the log."""
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
        self._attempt = 0
        """Number of the latest attempt to open a connection: that of ``_opening``."""
        self._opened: Opened | None = None
        self._renew_at: float | None = None
        self._pause_ms = 0.0
        self._pause: Timer | None = None
        self._idle: Timer | None = None

    @property
    def unanswered(self) -> int:
        """Return the number of requests that wait, here or at the peer."""
        return len(self._waiting) + len(self._sent)

    # ----------------------------------------------------------------------------- for its owner

    def ask(self, question: Question, address: Address, timeout_ms: float) -> None:
        """Send a request to a peer that listens at ``address``, as soon as possible."""
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
        self._send_pending()

    def close(self, failure: Failure, reason: str) -> None:
        """Close the link and fail all pending requests with ``failure`` and ``reason``."""
        self._stop_timers()
        self.state = State.IDLE
        self._drop_connection()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
        self._fail(self._sent, failure, reason)
        self._fail(self._waiting, failure, reason)

    # ------------------------------------------------------------------------ for its connection

    def answered(self, answer: Any) -> None:  # noqa: ANN401  the question's
        """Pass the response to the oldest request that was sent."""
        question = self._sent.popleft()
        self._bytes -= question.size_bytes
        self._pause_ms = 0.0
        question.complete(answer)
        self._send_pending()

    def ended(self, reason: str) -> None:
        """Fail the requests that were sent, and continue with the waiting ones."""
        self._opened = None
        logger.info("connection to %s has ended: %s", self._name, reason)
        self._fail(self._sent, Failure.LOST, reason)
        self._try_again()

    # ----------------------------------------------------------------------------- for its timers

    def _late(self, question: Question) -> None:
        """Fail a request that has no response in time."""
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
        self._send_pending()

    def _is_idle(self) -> None:
        self._idle = None
        if self.state is State.OPEN and not self._sent:
            self._drop_connection()
            self.state = State.IDLE

    # ------------------------------------------------------------------------------------- private

    def _send_pending(self) -> None:
        """Send waiting requests, after opening or replacing the connection if needed."""
        if self.state is State.OPEN and self._is_worn() and self._waiting:
            if self._sent:
                return  # Await the responses; the next connection ends this one.
            self._drop_connection()
            self.state = State.IDLE
        if self.state is State.OPEN:
            self._send()
        elif self.state is State.IDLE and self._waiting:
            self.state = State.OPENING
            self._attempt += 1
            self._opening = self._spawn(self._open(self._address, self._attempt))

    async def _open(self, address: Address, attempt: int) -> None:
        # A cancelled task keeps the traceback: a variable for the task would be a cycle.
        limit = self._clock.call_later(self._limits.connect_timeout_ms, self._is_late, attempt)
        failure, reason = Failure.UNREACHABLE, ""
        opened: Opened | None = None
        try:
            opened = await self._open_to(address)
        except Refused as refused:
            reason = str(refused)
            if refused.is_final:
                failure = Failure.NOT_LET_IN
        except Exception as error:  # the task's top frame: a bug, or an invalid address
            logger.exception(
                "connection to %s failed: address=%s", self._name, address_text(*address)
            )
            reason = repr(error)
        finally:
            limit.cancel()
        if self._opening is None or self._attempt != attempt:  # Cancelled, but had finished.
            if opened is not None:
                opened.connection.abort()
        elif opened is not None:
            self._has_opened(opened)
        else:
            self._could_not_open(failure, reason)

    def _is_late(self, attempt: int) -> None:
        opening = self._opening
        if opening is None or self._attempt != attempt:
            return  # After a pause of the process, a cancelled attempt's timer can still fire.
        opening.cancel()
        self._could_not_open(Failure.UNREACHABLE, "no connection in time")

    def _could_not_open(self, failure: Failure, reason: str) -> None:
        self._opening = None
        if not self._pause_ms:  # Only the first failure: others follow every second.
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
        self._send_pending()

    def _send(self) -> None:
        """Send the waiting requests; start the idle timer if none is without a response."""
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
        """Whether the connection's login expires soon."""
        return self._renew_at is not None and self._clock.monotonic() >= self._renew_at

    def _try_again(self) -> None:
        """Start the next attempt after the current pause, and double the pause."""
        self._stop_timers()
        limits = self._limits
        wait_ms = self._pause_ms
        self._pause_ms = min(max(2 * wait_ms, limits.pause_first_ms), limits.pause_max_ms)
        if wait_ms:
            self.state = State.PAUSING
            self._pause = self._clock.call_later(wait_ms, self._pause_is_over)
        else:
            self.state = State.IDLE
            self._send_pending()

    def _move(self, address: Address) -> None:
        """Use another address for later connections: the peer, or its replacement, listens
        there.
        """
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
