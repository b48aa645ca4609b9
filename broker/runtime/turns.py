"""Time slices of the event loop: one slice in each turn of the loop, for all long work together.

Long work waits here for its next slice, after all other work that waits. So a large request delays
only itself, and a hundred such pieces of work delay the others no longer than one does.

| work | how it is divided |
|---|---|
| of a client, which changes nothing | ``await Turn()`` of ``api/waits.py``: ends with the client |
| that changes something | ``await next_turn()``: continues without the client |
| the same, counted, with less than a slice between two turns | ``await turn_over()`` |
| of no client: upkeep, sweeps | ``run_in_turns``: starts at once, in slices of a millisecond |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from barnabas.storage.runtime.clock import counter_seconds

SLICE_SECONDS: Final = 0.005
UPKEEP_SECONDS: Final = 0.001
"""Length of a slice for work of no client."""


class Turns:
    """One slice in each turn of a loop, for the task that has waited longest."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False
        self._slice_ends = 0.0

    @property
    def is_left(self) -> bool:
        """Whether work in slices may continue at once."""
        return counter_seconds() < self._slice_ends

    def has(self, future: object) -> bool:
        """Return whether a future is a turn that has not come."""
        return future in self._waiting

    def next_slice(self) -> asyncio.Future[None]:
        """Return a future that is done when the caller's next slice starts."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        self._schedule()
        return turn

    def _schedule(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # Not cancelled meanwhile.
                self._slice_ends = counter_seconds() + SLICE_SECONDS
                turn.set_result(None)
                break
        self._schedule()


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


async def next_turn() -> None:
    """Yield to the event loop, if the current slice is used up."""
    turns = turns_of_loop()
    if not turns.is_left:
        await turns.next_slice()


async def turn_over() -> None:
    """Yield to the event loop, even if most of the slice is left.

    It is for tasks that count their work between two turns, with a smaller limit than a slice.
    """
    await turns_of_loop().next_slice()


def run_in_turns(loop: asyncio.AbstractEventLoop, steps: Iterator[None]) -> None:
    """Take steps now, for ``UPKEEP_SECONDS``, and the others in later slices of the loop.

    Each step is short. Steps that must not follow the end of the broker end themselves.
    """
    ends = counter_seconds() + UPKEEP_SECONDS
    for _ in steps:
        if counter_seconds() >= ends:
            turn = _turns_of(loop).next_slice()
            turn.add_done_callback(lambda _turn: run_in_turns(loop, steps))
            return


def is_turn(future: object) -> bool:
    """Return whether a future is a turn of the running loop that has not come."""
    return turns_of_loop().has(future)


def slice_of_loop() -> asyncio.Future[None]:
    """Return a future that is done when the caller's next slice of the running loop starts."""
    return turns_of_loop().next_slice()


def turns_of_loop() -> Turns:
    """Return the turns of the running loop."""
    return _turns_of(asyncio.get_running_loop())


def _turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = Turns(loop)
    return turns
