"""Large requests: decoded and encoded on threads, handled in slices.

Rules of this file:

* **A large request** has more than ``Route.large_bytes`` and is no Produce. Its connection handles
  no other request until the response, so each connection has one large request at a time.
* **Decoding and encoding leave the loop.** The generated codecs are interpreted, so the thread
  releases the interpreter every switch interval. After its work the thread rests for the same time:
  half of the interpreter is left to the loop under any load. Very large frames have a thread of
  their own, so that smaller ones do not wait for them.
* **A handler processes a long request in slices** (``Route.in_slices``), or in parts if its
  elements are independent (``api/division.py``). Other requests may run between two slices, and
  the handler allows for that.
* **One slice in each turn of the loop**, for all connections together. After its slice a request
  waits for the slices of all others, so a client with a large request delays mainly itself.
* **Few requests are in progress at a time**, the others wait as bytes. A request that waits for
  other clients, and not for this broker's work, frees its place.
* **The size of a request** is limited by bytes and by elements of arrays; the limit is lower if the
  request cannot be divided. A request beyond it gets INVALID_REQUEST as a whole; if its API has no
  such error, the connection closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from barnabas.broker.api.dispatch import Deferred, RequestContext, Route
from barnabas.broker.api.division import count_elements, is_long
from barnabas.broker.api.driver import Encoded, Run, response_of
from barnabas.broker.api.refusals import refusal, refusal_unread
from barnabas.broker.api.waits import Aside, Turn
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.network.framing import answers_flexibly, encoded
from barnabas.broker.runtime.threads import Pool
from barnabas.protocol.errors import ErrorCode, KafkaError, TooManyElements
from barnabas.protocol.wire import elements_most
from barnabas.storage.runtime.clock import counter_seconds, processor_seconds, sleep

Result = TypeVar("Result")
Decode: TypeAlias = Callable[[memoryview, int, int], Any]

VERY_LARGE_BYTES: Final = 256 * 1024

SLOTS: Final = 16
SLOTS_FOR_VERY_LARGE: Final = 4
"""Maximum number of large requests that are decoded or handled at a time: their objects take
memory, and Python's collector traverses them."""

LONG_ELEMENTS: Final = 2000
"""Answers with more elements than this are encoded aside: below, it takes up to 5 ms."""

REST_SECONDS_MOST: Final = 0.05


_NOTHING: Final = memoryview(b"")


class Client(Protocol):
    """The connection that a large request came from."""

    def large_frame_is_decoded(self) -> None:
        """Stop counting the frame, whose memory is free again; called once or twice."""

    def charge(self, answer: Deferred[Any], response: Any) -> None:  # noqa: ANN401
        """Count the request's usage for the client's quotas, if the client has any."""


class _Place:
    """The place of a request among those in progress, and its frame.

    Both are in use while a thread decodes the frame, even if the client disconnects.
    """

    __slots__ = ("_client", "_has_ended", "_is_decoding", "frame", "slots")

    def __init__(self, client: Client, frame: memoryview) -> None:
        self._client = client
        self.frame = frame
        self.slots: asyncio.Semaphore | None = None
        """The semaphore that the place counts for, or ``None``."""
        self._is_decoding = False
        self._has_ended = False

    def leave(self) -> None:
        """Release the place for the next request."""
        slots, self.slots = self.slots, None
        if slots is not None:
            slots.release()

    def begin_decoding(self) -> None:
        """Record that a thread uses the frame."""
        self._is_decoding = True

    def decoded(self) -> None:
        """Free the frame after the thread has ended, or was cancelled before it started."""
        self._is_decoding = False
        self.frame = _NOTHING
        self._client.large_frame_is_decoded()
        if self._has_ended:
            self.leave()

    def end(self) -> None:
        """Free the place and the frame, or mark them to be freed once the thread has ended."""
        self._has_ended = True
        if not self._is_decoding:
            self.decoded()


class _Thread:
    """One thread that decodes and encodes, and pauses after long work."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str, elements: int, slots: int
    ) -> None:
        self.slots = asyncio.Semaphore(slots)
        self._pool = Pool(name, loop=loop, initializer=lambda: elements_most.set(elements))
        self._rest_until = 0.0

    def run(self, work: Callable[[], Result]) -> Aside[Result]:
        return Aside(lambda: self._pool.run(partial(self._run, work)))

    def decode(self, work: Callable[[], Result], place: _Place) -> Aside[Result]:
        def start() -> asyncio.Future[Result]:
            place.begin_decoding()
            return self._pool.run_counted(partial(self._run, work), place.decoded)

        return Aside(start)

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
        self._bytes_max = config.request_max_bytes
        self._elements_max = config.request_elements_max
        self._undivided_max = config.request_undivided_elements_max
        self._here = copy_context()
        self._here.run(elements_most.set, self._undivided_max)
        self._large = _Thread(loop, "large", self._elements_max, SLOTS)
        self._very_large = _Thread(loop, "very-large", self._elements_max, SLOTS_FOR_VERY_LARGE)

    def decode_here(self, decode: Decode, frame: memoryview, position: int, version: int) -> Any:  # noqa: ANN401
        """Decode a large Produce on the loop: its records are not copied, and its batches are few.

        Raises TooManyElements above the limit of an undivided request.
        """
        return self._here.run(decode, frame, position, version)

    def close(self) -> None:
        """End the threads and drop waiting work."""
        self._large.close()
        self._very_large.close()

    def run(
        self,
        client: Client,
        frame: memoryview,
        position: int,
        route: Route,
        context: RequestContext,
        answer: Deferred[Any],
    ) -> Run[Encoded]:
        """Return the run that does all there is to a large request."""
        place = _Place(client, frame)
        run = Run(self._serve(client, position, route, context, answer, place))
        run.on_idle = place.leave  # What it waits for may be long in coming.
        return run

    async def _serve(
        self,
        client: Client,
        position: int,
        route: Route,
        context: RequestContext,
        answer: Deferred[Any],
        place: _Place,
    ) -> Encoded:
        try:
            try:
                request = await self._decode(route, position, answer.version, place)
            except KafkaError as error:
                response = refusal_unread(route, answer.version, error)
            else:
                await Turn()
                response = await self._ask(route, context, request)
            client.charge(answer, response)
            return await self.encode(response, route, answer.version, answer.correlation_id)
        finally:
            place.end()

    async def _decode(self, route: Route, position: int, version: int, place: _Place) -> Any:  # noqa: ANN401
        """Decode a request on a thread; raises Malformed, and KafkaError above a limit.

        The request counts as one in memory until it leaves its place.
        """
        size = len(place.frame)
        if size > self._bytes_max:
            raise too_large(f"{size} bytes, barnabas.request.max.bytes are {self._bytes_max}")

        def work() -> tuple[Any, int]:
            request = route.api.decode_request(place.frame, position, version)
            return request, count_elements(request)

        thread = self._for(size)
        await thread.slots.acquire()
        place.slots = thread.slots
        try:
            request, elements = await thread.decode(work, place)
        except TooManyElements as error:
            raise too_large(f"{error} by barnabas.request.elements.max") from error
        if elements > self._elements_max:
            raise too_large(
                f"{elements} elements in arrays, {self._elements_max} are allowed "
                "by barnabas.request.elements.max"
            )
        if not route.in_slices and elements > self._undivided_max:
            raise too_large(
                f"{elements} elements in arrays, {self._undivided_max} are allowed "
                "by barnabas.request.undivided.elements.max"
            )
        return request

    async def encode(
        self,
        response: Any,  # noqa: ANN401
        route: Route,
        version: int,
        correlation_id: int,
    ) -> Encoded:
        """Encode a response on a thread.

        The connection waits for the result if it can. Otherwise one client could have a thousand
        responses encoded that it never reads, and other clients would wait for the thread.
        """
        flexible = answers_flexibly(route, version)
        encode = route.api.encode_response
        return await self._very_large.run(
            lambda: Encoded(encoded(encode, response, version, correlation_id, flexible)[0])
        )

    async def _ask(self, route: Route, context: RequestContext, request: Any) -> Any:  # noqa: ANN401
        """Call the handler and wait for its response, in any of its forms."""
        try:
            return await response_of(route.handler(context, request))
        except KafkaError as error:
            refused = error
        if not is_long(request, LONG_ELEMENTS):
            return refusal(route, request, refused)
        return await self._very_large.run(lambda: refusal(route, request, refused))

    def _for(self, size: int) -> _Thread:
        return self._large if size <= VERY_LARGE_BYTES else self._very_large


def too_large(reason: str) -> KafkaError:
    """Return the error for a request that exceeds a limit."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"too large: {reason}")
