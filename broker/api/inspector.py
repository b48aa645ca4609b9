"""Inspection of batches beside the event loop: large ones, and those that expand greatly.

Rules of this file:

1. One thread inspects all requests round-robin, a few milliseconds each: only one piece of one
   batch is expanded at a time.
2. The thread releases the interpreter: a piece is expanded without the lock and inspected in well
   under a millisecond; other threads run between two pieces.
3. Waiting requests hold at most ``limit_bytes`` together; one request is always admitted.
4. Requests whose batches change their codec run one after the other, from the first batch to the
   callback, since encoders and their output take memory.
5. Callbacks run on the loop, and never after ``close``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from barnabas.broker.runtime.threads import Pool
from barnabas.storage.runtime.clock import counter_seconds

Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)

SLICE_SECONDS: Final = 0.002
"""Time for one request before the next one's turn."""


class Task(Protocol[Found_co]):
    """Work on one batch, in steps."""

    @property
    def encoding(self) -> object:
        """Codec to which the batch is converted, or None if it keeps its own."""

    def step(self) -> Found_co | None:
        """Work for a few milliseconds at most; return the result, or None before the end."""


class Inspected(Generic[Found]):
    """Batches of one request to inspect, as few or as many as one step allows."""

    __slots__ = (
        "_on_done",
        "_on_failed",
        "_tasks",
        "contents",
        "dropped",
        "encodes",
        "error",
        "size_bytes",
    )

    def __init__(
        self,
        tasks: Iterable[Task[Found]],
        on_done: Callable[[list[Found]], None],
        on_failed: Callable[[BaseException], None],
        size_bytes: int,
    ) -> None:
        """``on_done`` gets the content of each batch, in order; ``on_failed`` gets an internal
        error. ``size_bytes`` is the memory that the waiting request occupies.
        """
        self._tasks = deque(tasks)
        self._on_done = on_done
        self._on_failed = on_failed
        self.encodes = any(each.encoding is not None for each in self._tasks)
        """Whether any batch is brought into another codec."""
        self.contents: list[Found] = []
        self.size_bytes = size_bytes
        self.dropped = False
        """Set when the result is not needed any more."""
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether the inspection is complete."""
        return self.dropped or not self._tasks

    def run_for(self, seconds: float) -> None:
        """Inspect for at most ``seconds``, or to the end."""
        until = counter_seconds() + seconds
        try:
            while not self.is_done and counter_seconds() < until:
                found = self._tasks[0].step()
                if found is not None:
                    self._tasks.popleft()
                    self.contents.append(found)
        except Exception as error:  # noqa: BLE001  a bug, or no memory: others wait for the thread
            self.error = error
            self._tasks.clear()

    def deliver(self) -> None:
        """Report the results to the callback."""
        self._tasks.clear()
        if self.dropped:
            return
        if self.error is not None:
            self._on_failed(self.error)
        else:
            self._on_done(self.contents)


class Inspector:
    """Thread that inspects batches, and the queue of requests that wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: Callable[[], int]) -> None:
        """Create an inspector; a ``limit_bytes()`` below 0 means no limit."""
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._waiting: deque[Inspected[Any]] = deque()
        self._encoding: Inspected[Any] | None = None
        self._to_encode: deque[Inspected[Any]] = deque()
        self._threads = Pool("inspector", loop=loop)
        self._is_working = False
        self._closed = False
        self.held_bytes = 0
        """Bytes of the requests that wait."""

    def has_room(self, size_bytes: int) -> bool:
        """Return whether a request of this many bytes may wait."""
        limit_bytes = self._limit_bytes()
        return limit_bytes < 0 or not self.held_bytes or self.held_bytes + size_bytes <= limit_bytes

    def inspect(self, request: Inspected[Any]) -> None:
        """Inspect a request on the thread; its callback receives the findings."""
        self.held_bytes += request.size_bytes
        if not request.encodes:
            self._waiting.append(request)
        elif self._encoding is None:
            self._encoding = request
            self._waiting.append(request)
        else:
            self._to_encode.append(request)
        self._start()

    def inspect_all(
        self, tasks: Iterable[Task[Found]], size_bytes: int
    ) -> asyncio.Future[list[Found]]:
        """Inspect batches; the future has the findings, and cancelling it drops the request."""
        found: asyncio.Future[list[Found]] = self._loop.create_future()

        def on_done(contents: list[Found]) -> None:
            if not found.done():
                found.set_result(contents)

        def on_failed(error: BaseException) -> None:
            if not found.done():
                found.set_exception(error)

        request = Inspected(tasks, on_done, on_failed, size_bytes)

        def ended(future: asyncio.Future[list[Found]]) -> None:
            request.dropped = future.cancelled()

        found.add_done_callback(ended)
        self.inspect(request)
        return found

    def close(self) -> None:
        """Stop; callbacks of waiting requests are not called."""
        self._closed = True
        self._threads.close()

    def _start(self) -> None:
        if self._waiting and not self._is_working:
            self._is_working = True
            self._threads.run(self._work).add_done_callback(self._stopped)

    def _work(self) -> None:
        """Inspect waiting requests round-robin until none is left; on the thread."""
        while self._waiting and not self._closed:
            request = self._waiting.popleft()
            request.run_for(SLICE_SECONDS)
            if request.is_done:
                self._loop.call_soon_threadsafe(self._done, request)
            else:
                self._waiting.append(request)

    def _done(self, request: Inspected[Any]) -> None:
        self.held_bytes -= request.size_bytes
        if self._closed:
            return
        request.deliver()
        if request is self._encoding:
            self._loop.call_soon(self._encode_next)  # Behind what ``tell`` may have scheduled.

    def _encode_next(self) -> None:
        if not self._closed:
            self._encoding = self._to_encode.popleft() if self._to_encode else None
            if self._encoding is not None:
                self._waiting.append(self._encoding)
                self._start()

    def _stopped(self, work: asyncio.Future[None]) -> None:
        self._is_working = False
        if work.cancelled() or self._closed:
            return
        work.result()  # An internal error: asyncio reports it.
        self._start()
