"""Calls of handlers without a connection: the caller is a Task, and awaits the response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.dispatch import CloseConnection, Deferred
from barnabas.broker.api.driver import Run, response_of

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Route
    from barnabas.protocol.errors import KafkaError


async def response_to(outcome: Any, route: Route) -> Any:  # noqa: ANN401
    """Return the final response of a handler's return value.

    Raise what the handler raises: KafkaError, CloseConnection, an internal error. When the caller
    is cancelled, the handler learns that its client has gone.
    """
    caller = _Caller()
    answer: Deferred[Any] = Deferred()
    answer.route, answer.connection = route, caller
    run = Run(response_of(outcome))
    answer.run = run
    run.start(caller, answer, None, set())
    try:
        return await caller.future
    except asyncio.CancelledError:
        answer.abandoned()
        raise


class _Caller:
    """Receives the response of a direct call, in place of a connection."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answered(self, deferred: Deferred[Any]) -> None:
        """Take the response."""
        if not self.future.done():
            self.future.set_result(deferred.response)

    def refused(self, route: Route, request: Any, error: KafkaError) -> Any:  # noqa: ANN401, ARG002
        """Pass on an error of the whole request."""
        self._fail(error)

    def bug(self, name: str, error: BaseException) -> None:  # noqa: ARG002
        """Pass on an internal error."""
        self._fail(error)

    def close(self, reason: str) -> None:
        """Report that the connection of a client would be closed."""
        self._fail(CloseConnection(reason))

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)
