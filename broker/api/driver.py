"""The driver of handlers that wait: it resumes them, and it alone knows what can happen meanwhile.

A handler that waits is a coroutine. It awaits a word of ``waits.py``, or an asyncio future, and a
``Run`` steps it by ``send``, without a Task. Coroutines rather than generators: ``await`` has a
type for each word where ``yield`` has none, helpers nest, and both cost the same: 0.5 us for one
wait, compiled or not, where a callback costs 0.02 us. Compiled, too, ``close`` runs ``finally``,
and ``throw`` reaches the innermost ``await``. But a compiled coroutine that is only forgotten runs
no ``finally``, so each run ends with its last step or with ``close``.

Rules of this file:

* **A run starts at once**, inside the call that started it, and is resumed inside the callback that
  it waits for. So a handler that need not wait is a plain function, and returns a ``Run`` where it
  must: the code before the first ``await`` precedes the next request of the connection.
* **A client that has gone** ends a run at the word that it waits for: the wait is given up, and
  ``close`` runs the handler's ``finally``. At a future it is left alone, since that is work under
  way, which other state depends on (a topic that is being created): it ends at its next word, or
  with its last step. The broker cancels it when it stops. A run that ends cancelled closes its
  connection, which would handle nothing else.
* **An early end** (a request of another kind came in behind, the broker stops) reaches words that
  say so (``ends_early``), now or whenever the run comes to one.
* **A bug** in one run is logged and closes its connection, and spares the code that resumed the
  run. A KafkaError becomes the refusal of the route, CloseConnection closes with its reason.
* **To asyncio a run is the current task** while it steps, as its documentation has it for other
  implementations of tasks: ``asyncio.timeout`` works in a handler, and cancels the run. A waiting
  Fetch does without.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from barnabas.broker.api.dispatch import CloseConnection, Deferred, Route
from barnabas.broker.api.waits import Ticket
from barnabas.broker.runtime.turns import is_turn
from barnabas.protocol.errors import KafkaError, Malformed

if TYPE_CHECKING:
    from barnabas.broker.api.waits import GiveUp, Word

Response = TypeVar("Response")

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """The connection that a run belongs to."""

    def refused(self, route: Route, request: Any, error: KafkaError) -> Any:  # noqa: ANN401
        """Return the response for an error of the whole request."""

    def close(self, reason: str) -> None:
        """Close the connection after a request that breaks the protocol."""

    def bug(self, name: str, error: BaseException) -> None:
        """Close the connection because of an internal error."""


class Encoded:
    """An encoded response, which a run returns in place of a response object."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks


class Run(Generic[Response]):
    """A coroutine that comes to the response of one request."""

    __slots__ = (
        "_answer",
        "_at_work",
        "_cancels",
        "_give_up",
        "_has_left",
        "_is_cancelled",
        "_is_early",
        "_is_stepping",
        "_is_task",
        "_owner",
        "_request",
        "_ticket",
        "_word",
        "coroutine",
        "future",
        "is_large",
        "is_last",
        "is_parked",
        "on_idle",
    )

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Response],
        *,
        is_parked: bool = True,
        is_large: bool = False,
        is_last: bool = False,
        is_task: bool = True,
    ) -> None:
        """``is_parked``: the connection handles nothing else meanwhile.

        ``is_large``: the response may be long although its route is ``short``. ``is_last``: the
        connection closes behind it. ``is_task``: False if it awaits words only, on a hot path.
        """
        self.coroutine: Coroutine[Any, Any, Response] | None = coroutine
        self.is_parked = is_parked
        self.is_large = is_large
        self.is_last = is_last
        self._is_task = is_task
        self.on_idle: Any = None
        """Called whenever the run begins to wait for others, and not for a turn; or None."""
        self.future: asyncio.Future[Any] | None = None
        """The future that the run waits for, or None if it waits for something else."""
        self._answer: Deferred[Any] | None = None
        self._owner: Owner | None = None
        self._request: Any = None
        self._at_work: set[Any] | None = None
        self._word: Word | None = None
        self._give_up: GiveUp | None = None
        self._ticket: Ticket | None = None
        self._cancels = 0
        self._is_cancelled = False
        self._is_early = False
        self._has_left = False
        self._is_stepping = False

    def start(
        self,
        owner: Owner,
        answer: Deferred[Any],
        request: Any,  # noqa: ANN401
        at_work: set[Any],
    ) -> None:
        """Take the first steps; ``answer`` is completed with the response, now or later.

        While it waits for a future, the run is in ``at_work``.
        """
        self._owner = owner
        self._answer = answer
        self._request = request
        self._at_work = at_work
        self._step(None, None)

    def complete_early(self) -> None:
        """Ignore the request for an early end."""
        self._is_early = True
        word = self._word
        if word is not None and word.ends_early:
            self._stop_waiting()
            self._step(False, None)

    def abandon(self) -> None:
        """End now or at the next wait, since the client has disconnected."""
        self._has_left = True
        if self._word is not None:
            self._stop_waiting()
            self._close()

    def resume(self, ticket: Ticket) -> None:
        """Continue with the result of a wait."""
        if ticket is self._ticket and not self._is_stepping:
            self._word = self._ticket = self._give_up = None
            self._step(ticket.value, ticket.error)

    # ------------------------------------------------------------------------ as a task of asyncio

    def cancel(self, msg: object = None) -> bool:
        """Raise CancelledError where the coroutine waits; return whether it will be raised."""
        if self.coroutine is None:
            return False
        self._cancels += 1
        future = self.future
        if future is not None:
            if not future.cancel(msg):
                self._is_cancelled = True
        elif self._word is not None:
            self._stop_waiting()
            asyncio.get_running_loop().call_soon(self._step, None, asyncio.CancelledError())
        else:
            self._is_cancelled = True
        return True

    def cancelling(self) -> int:
        """Return the number of cancellations that are not taken back."""
        return self._cancels

    def uncancel(self) -> int:
        """Withdraw one cancellation; return the number of the remaining ones."""
        self._cancels = max(0, self._cancels - 1)
        return self._cancels

    # ------------------------------------------------------------------------------------- private

    def _step(self, value: Any, error: BaseException | None) -> None:  # noqa: ANN401
        """Run the coroutine until it waits for a pending result."""
        coroutine = self.coroutine
        if coroutine is None:
            return
        if not self._is_task:
            self._steps(coroutine, value, error)
            return
        loop = asyncio.get_running_loop()
        outer = asyncio.current_task(loop)
        if outer is not None:
            _leave_task(loop, outer)
        _enter_task(loop, self)
        try:
            self._steps(coroutine, value, error)
        finally:
            _leave_task(loop, self)
            if outer is not None:
                _enter_task(loop, outer)

    def _steps(
        self,
        coroutine: Coroutine[Any, Any, Response],
        value: Any,  # noqa: ANN401
        error: BaseException | None,
    ) -> None:
        self._is_stepping = True
        try:
            while True:
                waited = coroutine.send(value) if error is None else coroutine.throw(error)
                ticket = self._wait_for(waited)
                if ticket is None:
                    break
                value, error = ticket.value, ticket.error
        except StopIteration as stop:
            self._is_stepping = False
            self._end(stop.value)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001  others called this
            self._failed(failure)
            failure.__traceback__ = None  # It has frames that refer to the exception: a cycle.
        self._is_stepping = False

    def _wait_for(self, waited: Any) -> Ticket | None:  # noqa: ANN401
        """Start to wait; return a ticket with a result, or None."""
        ticket = Ticket(self)
        if self._is_cancelled:
            self._is_cancelled = False
            ticket.fail(asyncio.CancelledError())
            return ticket
        if isinstance(waited, Future):
            if self.on_idle is not None and not is_turn(waited):
                self.on_idle()
            self.future = waited
            waited.add_done_callback(self._future_is_done)
            if self._at_work is not None:
                self._at_work.add(self)
            return None
        if waited is None:  # asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(self._step, None, None)
            return None
        word = cast("Word", waited)
        if self._has_left:
            self._close()
            return None
        if self._is_early and word.ends_early:
            ticket.settle(False)
            return ticket
        if self.on_idle is not None and not word.is_work:
            self.on_idle()
        self._word, self._ticket = word, ticket
        give_up: GiveUp | None = None
        try:
            give_up = word.begin(ticket)
        except Exception as error:  # noqa: BLE001  raised where the handler awaits the word
            ticket.fail(error)
        if ticket.is_used:
            self._word = self._ticket = self._give_up = None
            return ticket
        if ticket is self._ticket:
            self._give_up = give_up
        elif give_up is not None:  # The wait ended inside ``begin``: the client left.
            give_up()
        return None

    def _future_is_done(self, future: asyncio.Future[Any]) -> None:
        del future  # The traceback of its exception will have this frame.
        self.future = None
        if self._at_work is not None:
            self._at_work.discard(self)
        error = asyncio.CancelledError() if self._is_cancelled else None
        self._is_cancelled = False
        self._step(None, error)  # The coroutine itself takes the future's result or exception.

    def _stop_waiting(self) -> None:
        ticket, give_up = self._ticket, self._give_up
        self._word = self._ticket = self._give_up = None
        if ticket is not None:
            ticket.drop()
        if give_up is not None:
            give_up()

    def _close(self) -> None:
        """Close the coroutine, which runs its ``finally``."""
        coroutine = self.coroutine
        answer = self._answer
        self._release()
        if coroutine is None:
            return
        try:
            coroutine.close()
        except Exception:
            route = None if answer is None else answer.route
            name = "a request" if route is None else route.name
            logger.exception("cleanup after a disconnected client failed: api=%s", name)

    def _release(self) -> tuple[Deferred[Any] | None, Owner | None, Any]:
        """Drop all references to the request and its response, and return them."""
        held = self._answer, self._owner, self._request
        self.coroutine = self._answer = self._owner = self._request = self.on_idle = None
        return held

    def _end(self, response: Any) -> None:  # noqa: ANN401
        answer, owner, _ = self._release()
        assert answer is not None
        try:
            _complete(answer, response)
        except Exception as error:  # noqa: BLE001  the resumer continues
            _report(owner, answer, error)

    def _failed(self, error: BaseException) -> None:
        """Report an exception by the rules of this file."""
        answer, owner, request = self._release()
        if answer is None or owner is None:
            return
        try:
            if isinstance(error, KafkaError):
                assert answer.route is not None
                _complete(answer, owner.refused(answer.route, request, error))
                return
        except Exception as other:  # noqa: BLE001
            error = other
        _report(owner, answer, error)


async def response_of(outcome: Any) -> Any:  # noqa: ANN401
    """Return the response of a handler's return value, which may have any form."""
    if isinstance(outcome, Run):
        outcome = outcome.coroutine
    if isinstance(outcome, Deferred | Coroutine):
        return await outcome
    return outcome


def _complete(answer: Deferred[Any], response: Any) -> None:  # noqa: ANN401
    if response is None:
        answer.complete_unanswered()
    elif isinstance(response, Encoded):
        answer.complete_encoded(response.chunks)
    else:
        answer.complete(response)


def _report(owner: Owner | None, answer: Deferred[Any], error: BaseException) -> None:
    """Close the connection: there will be no response."""
    route = answer.route
    name = "" if route is None else route.name
    if owner is None:
        return
    if isinstance(error, asyncio.CancelledError):
        owner.close(f"api={name} version={answer.version} reason=the request was cancelled")
    elif isinstance(error, Malformed | CloseConnection):
        owner.close(f"api={name} version={answer.version} reason={error}")
    else:
        owner.bug(name, error)


# The documentation of asyncio names both, for other implementations of tasks.
_enter_task: Final[Any] = asyncio._enter_task  # noqa: SLF001
_leave_task: Final[Any] = asyncio._leave_task  # noqa: SLF001
