"""Requests caught on their way, for tests: refused, delayed, lost, counted.

An Interception replaces one route of a running broker, so a broker that intercepts nothing pays
nothing. What it does to a request:

| argument | what the client sees | what the broker has done |
|---|---|---|
| ``fail=ErrorCode...`` | that error | nothing |
| ``answer=function`` | what the function returns | nothing |
| ``drop=True`` | a lost connection | nothing |
| ``lose_answer=True`` | a lost connection | everything |
| ``delay_ms=...`` | its answer, later | everything, at once |
| none of them | its answer | everything: the requests are only noted |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.broker.api.dispatch import CloseConnection, Deferred, Parked, RequestContext, Route
from barnabas.broker.api.refusals import refusal
from barnabas.broker.runtime.clock import Clock
from barnabas.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Fault:
    """What is to happen to a request; see the table at the head of this module."""

    fail: ErrorCode | None = None
    answer: Callable[[RequestContext, Any], Any] | None = None
    drop: bool = False
    lose_answer: bool = False
    delay_ms: float = 0


class Interception:
    """Requests of one API, caught ``times`` times (always, if None)."""

    def __init__(self, route: Route, fault: Fault, times: int | None, clock: Clock) -> None:
        self.requests: list[Any] = []
        """Every request that was caught. The records of a Produce are not readable any more."""
        self._route = route
        self._fault = fault
        self._left = times
        self._clock = clock

    @property
    def count(self) -> int:
        """Return how many requests were caught."""
        return len(self.requests)

    def route(self) -> Route:
        """Return the route that catches what this one's handler would have got."""
        if self._route.is_coroutine:
            return self._route.copy(handler=self._handle_slowly, shortcut=None, long_handler=None)
        return self._route.copy(handler=self._handle, shortcut=None, long_handler=None)

    def _handle(self, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        if not self._catches(request):
            return self._route.handler(context, request)
        instead = self._instead(context, request)
        if instead is not None:
            return instead
        try:
            response = self._route.handler(context, request)
        except KafkaError as error:
            response = refusal(self._route, request, error)
        if self._fault.lose_answer and not isinstance(response, Deferred):
            raise CloseConnection("answer lost by interception")
        if self._fault.lose_answer or self._fault.delay_ms:
            return intercepted_answer(response, self._route, self._fault, self._clock)
        return response

    async def _handle_slowly(self, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        if not self._catches(request):
            return await self._route.handler(context, request)
        instead = self._instead(context, request)
        if instead is not None:
            return instead
        try:
            response = await self._route.handler(context, request)
        except KafkaError as error:
            response = refusal(self._route, request, error)
        if self._fault.lose_answer:
            raise CloseConnection("answer lost by interception")
        if self._fault.delay_ms:
            over = asyncio.Event()
            self._clock.call_later(self._fault.delay_ms, over.set)
            await over.wait()
        return response

    def _catches(self, request: Any) -> bool:  # noqa: ANN401
        if self._left is not None:
            if self._left == 0:
                return False
            self._left -= 1
        self.requests.append(request)
        return True

    def _instead(self, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        """Return what is answered without asking the handler, None to ask it."""
        fault = self._fault
        if fault.drop:
            raise CloseConnection("request dropped by interception")
        if fault.fail is not None:
            return refusal(self._route, request, KafkaError(fault.fail))
        return fault.answer(context, request) if fault.answer is not None else None


class AnswerRelay(Protocol):
    """What completes a late answer, and is told what its connection says meanwhile."""

    def abandoned(self) -> None:
        """Take note that the client has gone."""

    def complete_early(self) -> None:
        """Take note that the connection waits for the answer."""


class LateAnswer(Deferred[Any]):
    """An answer that a relay completes."""

    __slots__ = ("relay",)

    relay: AnswerRelay

    def abandoned(self) -> None:
        """Tell the relay that the client has gone."""
        self.relay.abandoned()


class LateParkedAnswer(Parked[Any]):
    """Likewise, where the connection waits meanwhile."""

    __slots__ = ("relay",)

    relay: AnswerRelay

    def complete_early(self) -> None:
        """Tell the relay that the connection waits."""
        self.relay.complete_early()

    def abandoned(self) -> None:
        """Tell the relay that the client has gone."""
        self.relay.abandoned()


def intercepted_answer(
    response: Any,  # noqa: ANN401
    route: Route,
    fault: Fault,
    clock: Clock,
) -> Deferred[Any]:
    """Return an answer in place of ``response``: one that comes later, or never."""
    parked = isinstance(response, Parked)
    answer = LateParkedAnswer() if parked else LateAnswer()
    relay = _Relay(answer, fault, clock)
    answer.relay = relay
    if isinstance(response, Deferred):
        relay.original = response
        if response.response is not None:
            relay.answered(response)
        else:
            response.route = route
            response.connection = relay
    else:
        relay.later(response)
    return answer


class _Relay:
    """Stands where the original answer expects its connection, and passes on what it gets."""

    def __init__(self, answer: Deferred[Any], fault: Fault, clock: Clock) -> None:
        self.original: Deferred[Any] | None = None
        self._answer = answer
        self._fault = fault
        self._clock = clock

    def answered(self, original: Deferred[Any]) -> None:
        """Do to a completed answer what the fault says."""
        if self._fault.lose_answer:
            # Not from inside the handler: its answer has no connection yet.
            self._clock.call_later(0, self._lose)
        elif original.response is None:
            self._clock.call_later(self._fault.delay_ms, self._answer.complete_unanswered)
        else:
            self.later(original.response)

    def bug(self, name: str, error: BaseException) -> None:
        """Pass a bug on."""
        if self._answer.connection is not None:
            self._answer.connection.bug(name, error)

    def close(self, reason: str) -> None:
        """Pass on that the client is to be hung up on."""
        if self._answer.connection is not None:
            self._answer.connection.close(reason)

    def later(self, response: Any) -> None:  # noqa: ANN401
        """Complete the answer after the delay."""
        self._clock.call_later(self._fault.delay_ms, self._answer.complete, response)

    def abandoned(self) -> None:
        """Tell the original that the client has gone."""
        if self.original is not None:
            self.original.connection = None
            self.original.abandoned()

    def complete_early(self) -> None:
        """Hurry the original; the delay stays."""
        if isinstance(self.original, Parked):
            self.original.complete_early()

    def _lose(self) -> None:
        self.close("answer lost by interception")
