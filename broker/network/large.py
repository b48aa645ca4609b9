"""Requests that are more than a moment's work: decoded and encoded aside, handled in slices.

Rules of this file:

* **A request of more than ``LARGE_BYTES`` that is no Produce** comes here; its connection handles
  nothing else until it is answered, so each has one of them at a time.
* **Decoding and encoding leave the loop.** The generated codecs are interpreted, so the thread lets
  go of the interpreter every switch interval. After it has worked it rests as long: half of the
  interpreter is left to the loop, however much is asked. Large frames have a thread of their own,
  so that small ones do not wait behind them.
* **A request is handled in parts** where its API says how it divides (``api/division.py``):
  the handler is called for each part as if it were a request, the answers are joined. Between two
  parts anything may happen, as between two requests: what is divided is answered element by
  element. Where that is not enough there is a handler of its own for more than ``LONG_ELEMENTS``
  (``long_handler``), which takes care itself of what may happen between its slices.
* **One slice in each turn of the loop**, for all connections together: who has used up its slice
  waits behind the others that have work like this, so that who asks for much waits for it himself.
* **Few are worked on at a time**, the others wait as bytes.
* **How much may be asked at all** is limited by bytes and by elements of arrays, less where the
  request cannot be divided. Beyond that it is INVALID_REQUEST, for the request as a whole; where
  the API has no such error, the connection closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from barnabas.broker.api.dispatch import CloseConnection, Deferred, Parked, RequestContext, Route
from barnabas.broker.api.division import count_elements, is_long, join, parts
from barnabas.broker.api.refusals import refusal, refusal_unread
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.network.framing import Chunks, answers_flexibly, encoded
from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed, TooManyElements
from barnabas.protocol.wire import elements_most
from barnabas.storage.runtime.clock import counter_seconds, processor_seconds, sleep

Result = TypeVar("Result")
Decode: TypeAlias = Callable[[memoryview, int, int], Any]

LARGE_BYTES: Final = 8 * 1024
"""The cheapest element of a request has three bytes: 8 KB are 20 ms of work at the very most, and
usually one. A client that commits offsets of 200 partitions at a time is here already, for which a
hop to a thread and back (0.1 ms) is little."""

VERY_LARGE_BYTES: Final = 256 * 1024

SLOTS: Final = 16
SLOTS_FOR_VERY_LARGE: Final = 4
"""Large requests that are decoded or handled at a time: what they are made of is in memory, and is
what Python's collector looks through."""

LONG_ELEMENTS: Final = 2000
"""Answers with more elements than this are encoded aside: below, it takes up to 5 ms. Requests with
more go to the ``long_handler`` if there is one."""

REST_SECONDS_MOST: Final = 0.05


_NOTHING: Final = memoryview(b"")


class Client(Protocol):
    """The connection that a large request came from."""

    def large_frame_is_decoded(self) -> None:
        """Take note, once or twice, that the frame's memory is free again."""

    def answer_is_ready(self) -> None:
        """Send the answer in its turn."""

    def bug(self, name: str, error: BaseException) -> None:
        """Take note that there will be none, because of an error of ours."""

    def close(self, reason: str) -> None:
        """Hang up because of what the client did."""

    def charge(self, deferred: Deferred[Any]) -> None:
        """Count what the request has used, of a client with limits."""


class LargeAnswer(Parked[Any]):
    """The answer to a large request; what its handler returned to wait for is ``inner``."""

    __slots__ = ("gone", "inner", "is_early", "relay", "slot")

    large: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.inner: Deferred[Any] | None = None
        self.relay: _Relay | None = None
        self.slot: asyncio.Semaphore | None = None
        """Where this request counts as one that is being worked on."""
        self.gone = False
        self.is_early = False

    def leave_slot(self) -> None:
        """Let the next request be worked on."""
        slot, self.slot = self.slot, None
        if slot is not None:
            slot.release()

    def complete_early(self) -> None:
        """Answer at once with what there is, if it is a wait that can be cut short."""
        self.is_early = True
        if isinstance(self.inner, Parked):
            self.inner.complete_early()

    def abandoned(self) -> None:
        """Go no further than the part in hand."""
        self.gone = True
        if self.inner is not None:
            self.inner.connection = None
            self.inner.abandoned()
        if self.relay is not None:
            self.relay.close("the client has gone")


class _Aside:
    """One thread that decodes and encodes, and rests."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str, elements: int, slots: int
    ) -> None:
        self.slots = asyncio.Semaphore(slots)
        self._pool = Pool(name, loop=loop, initializer=lambda: elements_most.set(elements))
        self._rest_until = 0.0

    async def run(self, work: Callable[[], Result]) -> Result:
        return await self._pool.run(partial(self._run, work))

    def close(self) -> None:
        self._pool.close()

    def _run(self, work: Callable[[], Result]) -> Result:
        now = counter_seconds()
        if now < self._rest_until:
            sleep(self._rest_until - now)
        begun = processor_seconds()
        try:
            return work()
        finally:
            rest = min(processor_seconds() - begun, REST_SECONDS_MOST)
            self._rest_until = counter_seconds() + rest


class LargeRequests:
    """Serves the large requests of all connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, config: BrokerConfig) -> None:
        self._loop = loop
        self._bytes_max = config.request_max_bytes
        self._elements_max = config.request_elements_max
        self._undivided_max = config.request_undivided_elements_max
        self._here = copy_context()
        self._here.run(elements_most.set, self._undivided_max)
        self._large = _Aside(loop, "large", self._elements_max, SLOTS)
        self._very_large = _Aside(loop, "very-large", self._elements_max, SLOTS_FOR_VERY_LARGE)

    def decode_here(self, decode: Decode, frame: memoryview, position: int, version: int) -> Any:  # noqa: ANN401
        """Decode a large Produce on the loop: its records stay where they are, its batches are few.

        Raises TooManyElements beyond what any request may have that is not divided.
        """
        return self._here.run(decode, frame, position, version)

    def close(self) -> None:
        """Give the threads back; what waits is dropped."""
        self._large.close()
        self._very_large.close()

    async def serve(
        self,
        client: Client,
        frame: memoryview,
        position: int,
        route: Route,
        context: RequestContext,
        answer: LargeAnswer,
    ) -> None:
        """Do all that there is to a large request: the rest of ``Connection._handle``."""
        try:
            try:
                request = await self.decode(route, frame, position, answer)
                frame = _NOTHING
            except KafkaError as error:
                answer.response = refusal_unread(route, answer.version, error)
            else:
                client.large_frame_is_decoded()
                if not answer.gone:
                    answer.response = await self.answer(route, context, request, answer)
            if not answer.gone:
                client.charge(answer)
                await self.encode(client, answer)
        except (Malformed, CloseConnection) as error:
            client.close(f"api={route.name} version={answer.version} reason={error}")
        except Exception as error:  # noqa: BLE001  the request's top frame: a bug ends the connection
            client.bug(route.name, error)
        finally:
            answer.leave_slot()
            client.large_frame_is_decoded()

    async def decode(
        self, route: Route, frame: memoryview, position: int, answer: LargeAnswer
    ) -> Any:  # noqa: ANN401
        """Decode a request aside; raises Malformed, KafkaError where it asks for too much.

        From here until ``answer`` leaves its place, it is one of the few that are in memory.
        """
        version = answer.version
        size = len(frame)
        if size > self._bytes_max:
            raise too_large(f"{size} bytes, barnabas.request.max.bytes are {self._bytes_max}")

        def work() -> tuple[Any, int]:
            request = route.api.decode_request(frame, position, version)
            return request, count_elements(request)

        aside = self._for(size)
        await aside.slots.acquire()
        answer.slot = aside.slots
        try:
            request, elements = await aside.run(work)
        except TooManyElements as error:
            raise too_large(f"{error} by barnabas.request.elements.max") from error
        if elements > self._elements_max:
            raise too_large(
                f"{elements} elements in arrays, {self._elements_max} are allowed "
                "by barnabas.request.elements.max"
            )
        undivided = route.divide is None and route.long_handler is None and not route.sliced
        if undivided and elements > self._undivided_max:
            raise too_large(
                f"{elements} elements in arrays, {self._undivided_max} are allowed "
                "by barnabas.request.undivided.elements.max"
            )
        return request

    async def answer(
        self,
        route: Route,
        context: RequestContext,
        request: Any,  # noqa: ANN401
        answer: LargeAnswer,
    ) -> Any:  # noqa: ANN401
        """Return the response to a request, handled in parts where it can be."""
        await next_turn()
        if route.divide is None or route.divide.refuses(request):
            return await self._ask(route, context, request, answer)
        response: Any = None
        for part, continues in parts(request, route.divide):
            if answer.gone:
                break
            part_response = await self._ask(route, context, part, answer)
            if response is None:
                response = part_response
            else:
                join(response, part_response, continues=continues)
            await next_turn()
        return response

    async def encode(self, client: Client, deferred: Deferred[Any]) -> None:
        """Encode an answer aside and have it sent in its turn."""
        route, version = deferred.route, deferred.version
        assert route is not None
        response, correlation_id = deferred.response, deferred.correlation_id
        flexible = answers_flexibly(route, version)
        encode = route.api.encode_response

        def work() -> Chunks:
            if deferred.connection is None:  # The client has gone; others wait for this thread.
                return []
            return encoded(encode, response, version, correlation_id, flexible)[0]

        try:
            deferred.chunks = await self._very_large.run(work)
        except Exception as error:  # noqa: BLE001  a bug of ours ends this connection
            client.bug(route.name, error)
        else:
            client.answer_is_ready()

    async def _ask(
        self,
        route: Route,
        context: RequestContext,
        request: Any,  # noqa: ANN401
        answer: LargeAnswer,
    ) -> Any:  # noqa: ANN401
        """Call the handler and wait for its response, in any of its forms."""
        try:
            if route.long_handler is not None and is_long(request, LONG_ELEMENTS):
                response = await route.long_handler(context, request)
            else:
                response = route.handler(context, request)
                if route.is_coroutine:
                    response = await response
            if isinstance(response, Deferred):
                response = await self._completed(route, response, answer)
        except KafkaError as error:
            refused = error
        else:
            return response
        if not is_long(request, LONG_ELEMENTS):
            return refusal(route, request, refused)
        return await self._very_large.run(lambda: refusal(route, request, refused))

    async def _completed(self, route: Route, inner: Deferred[Any], answer: LargeAnswer) -> Any:  # noqa: ANN401
        if inner.response is not None:
            return inner.response
        relay = _Relay(self._loop)
        inner.route = route
        inner.connection = relay
        answer.inner, answer.relay = inner, relay
        if isinstance(inner, Parked) and not inner.is_work:
            answer.leave_slot()  # What it waits for may be long in coming.
        if answer.gone:
            answer.abandoned()
        elif answer.is_early:
            answer.complete_early()
        try:
            return await relay.response
        finally:
            answer.inner = answer.relay = None

    def _for(self, size: int) -> _Aside:
        return self._large if size <= VERY_LARGE_BYTES else self._very_large


class _Relay:
    """Stands where an answer expects its connection; the response comes out as a future."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.response: asyncio.Future[Any] = loop.create_future()

    def answered(self, deferred: Deferred[Any]) -> None:
        """Take the response."""
        if not self.response.done():
            self.response.set_result(deferred.response)

    def bug(self, name: str, error: BaseException) -> None:  # noqa: ARG002
        """Take the error of ours that came instead."""
        if not self.response.done():
            self.response.set_exception(error)

    def close(self, reason: str) -> None:
        """Take that the client is to be hung up on."""
        if not self.response.done():
            self.response.set_exception(CloseConnection(reason))


def too_large(reason: str) -> KafkaError:
    """Return what a request is refused with that asks for more than one may."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"too large: {reason}")
