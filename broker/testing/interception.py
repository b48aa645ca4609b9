"""Interception of requests in tests: refused, delayed, lost, counted.

An Interception replaces one route of a running broker, so a broker without interceptions keeps its
speed. Its effect on a request:

| argument | result for the client | work of the broker |
|---|---|---|
| ``fail=ErrorCode...`` | that error | none |
| ``answer=function`` | the function's result | none |
| ``drop=True`` | a lost connection | none |
| ``lose_answer=True`` | a lost connection | all |
| ``delay_ms=...`` | its response, later | all, at once |
| none of them | its response | all: the requests are only recorded |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.broker.api.dispatch import CloseConnection, RequestContext, Route
from barnabas.broker.api.driver import Run, response_of
from barnabas.broker.api.refusals import refusal
from barnabas.broker.api.waits import Until
from barnabas.broker.runtime.clock import Clock
from barnabas.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Fault:
    """Effect on a request; see the table at the head of this module."""

    fail: ErrorCode | None = None
    answer: Callable[[RequestContext, Any], Any] | None = None
    drop: bool = False
    lose_answer: bool = False
    delay_ms: float = 0


class Interception:
    """Requests of one API, caught ``times`` times (always, if None)."""

    def __init__(self, route: Route, fault: Fault, times: int | None, clock: Clock) -> None:
        self.requests: list[Any] = []
        """Requests that were caught. The records of a Produce are not readable any more."""
        self._route = route
        self._fault = fault
        self._left = times
        self._clock = clock

    @property
    def count(self) -> int:
        """Return the number of caught requests."""
        return len(self.requests)

    def route(self) -> Route:
        """Return a copy of the route that catches its requests."""
        return self._route.copy(handler=self._handle, is_coroutine=False, shortcut=None)

    def _handle(self, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        handler, fault = self._route.handler, self._fault
        if not self._catches(request):
            return self._run(handler(context, request))
        instead = self._instead(context, request)
        if instead is not None:
            return instead
        try:
            found = handler(context, request)
        except KafkaError as error:
            found = refusal(self._route, request, error)
        if fault.lose_answer or fault.delay_ms:
            is_parked = self._route.is_coroutine or (isinstance(found, Run) and found.is_parked)
            return Run(self._late(found, request), is_parked=is_parked)
        return self._run(found)

    async def _late(self, found: Any, request: Any) -> Any:  # noqa: ANN401
        """Return the response late, or lose it."""
        try:
            response = await response_of(found)
        except KafkaError as error:
            response = refusal(self._route, request, error)
        if self._fault.lose_answer:
            raise CloseConnection("the interception drops the response")
        await Until(self._clock, self._fault.delay_ms)
        return response

    def _run(self, found: Any) -> Any:  # noqa: ANN401
        return Run(found) if self._route.is_coroutine else found

    def _catches(self, request: Any) -> bool:  # noqa: ANN401
        if self._left is not None:
            if self._left == 0:
                return False
            self._left -= 1
        self.requests.append(request)
        return True

    def _instead(self, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        """Return the response without the handler, or None to call it."""
        fault = self._fault
        if fault.drop:
            raise CloseConnection("the interception drops the request")
        if fault.fail is not None:
            return refusal(self._route, request, KafkaError(fault.fail))
        return fault.answer(context, request) if fault.answer is not None else None
