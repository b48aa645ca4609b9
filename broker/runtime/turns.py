"""The loop's time for work in slices: one slice in each turn of the loop, over all who have some.

A handler that loops over much awaits ``next_turn`` every few milliseconds' work. It goes on at once
while the slice lasts, else behind all others that wait: who asks for much waits for it himself, and
a hundred tasks that do so hold the others no longer than one does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

from barnabas.storage.runtime.clock import counter_seconds

SLICE_SECONDS: Final = 0.005


class Turns:
    """One slice per turn of one loop, the longest wait first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False
        self._slice_ends = 0.0

    @property
    def is_left(self) -> bool:
        """Whether the slice lasts."""
        return counter_seconds() < self._slice_ends

    def has(self, future: object) -> bool:
        """Return whether a future is a turn that has not come."""
        return future in self._waiting

    def next_slice(self) -> asyncio.Future[None]:
        """Return what is done when it is the caller's turn again, with a whole slice before it."""
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
    """Let the running loop do what else there is, if this slice of its time is used up."""
    turns = _of_this_loop()
    if not turns.is_left:
        await turns.next_slice()


async def turn_over() -> None:
    """Let the running loop do what else there is, however little of the slice is used up.

    For work that counts what it does between two turns, and has a smaller measure than a slice.
    """
    await _of_this_loop().next_slice()


def slice_is_left() -> bool:
    """Whether work in slices may go on at once on the running loop."""
    return _of_this_loop().is_left


def is_turn(future: object) -> bool:
    """Return whether a future is a turn of the running loop that has not come."""
    return _of_this_loop().has(future)


def slice_of_loop() -> asyncio.Future[None]:
    """Return what is done when the caller has the next slice of the running loop's time."""
    return _of_this_loop().next_slice()


def _of_this_loop() -> Turns:
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = Turns(loop)
    return turns
