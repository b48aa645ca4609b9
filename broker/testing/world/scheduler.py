"""Scheduler of simulated threads and simulated time.

Each simulated thread is a real thread. One thread at a time holds the baton and runs, until it
waits. Then the seed chooses the next thread among the ready threads. If no thread is ready, time
moves to the next event. If no event is due either, the simulation is deadlocked: the test's thread
gets ``Stuck``, with a list of the waiting threads.

Only the running thread calls the scheduler, so the scheduler needs no lock.

A running thread that waits for something outside of the simulation, such as a ``threading.Event``,
stops all threads. The waiting threads notice that (``Stuck``), and say where it waits.
"""

from __future__ import annotations

import heapq
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
from random import Random
from typing import Final

from barnabas.storage.runtime.machine import SimulatedMachine, claim

_LOOK_NS: Final = 100
"""Simulated time that a read of the clock takes. It ends loops that only read the clock."""

LAGS_ONE_IN: Final = 8
LAG_NS_MOST: Final = 1_000_000
"""One in ``LAGS_ONE_IN`` ready threads runs up to ``LAG_NS_MOST`` late, as on a busy machine."""

STOPPED_MOST: Final = 1000
"""Number of rounds in which all threads must end when the simulation ends."""

BLOCKED_S: Final = 30.0
"""Real time after which a running thread is blocked, if the process has computed nothing."""
STACK_MOST: Final = 8
"""Number of frames of a blocked thread that are shown."""


class Stuck(AssertionError):
    """Deadlock of all threads, or timeout of a condition of the test."""


class Ended(BaseException):
    """End of the simulation; raised in waiting simulated threads."""


class SimulatedThread:
    """Thread of the simulation, and the state of its wait."""

    __slots__ = (
        "baton",
        "goes_on",
        "identifier",
        "is_ready",
        "name",
        "raises",
        "wait",
        "waits_for",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.baton = threading.Lock()
        self.baton.acquire()
        self.waits_for = ""
        self.wait = 0
        """Number of the wait. A timeout of an earlier wait has no effect."""
        self.goes_on = False
        """Whether ``wake`` ended the wait, not a timeout."""
        self.is_ready = False
        self.raises: BaseException | None = None
        self.identifier = 0
        """Identifier of the real thread."""


class Scheduler:
    """Threads and due events of one simulation."""

    def __init__(self, seed: int, machine: SimulatedMachine) -> None:
        self.chance = Random(f"{seed} scheduler")  # noqa: S311  Repeatable.
        self.now_ns = 0
        self.events = 0
        """Number of times that the scheduler has chosen a thread or moved the time."""
        self._machine = machine
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = 0
        self._ready: list[SimulatedThread] = []
        self._threads: dict[SimulatedThread, None] = {}
        """All that have not ended, in the order of their start."""
        self._main = self._new_thread("the test")
        self._main.identifier = threading.get_ident()
        self._running = self._main
        self._is_ending = False
        self._blocked: Stuck | None = None
        """Error of all waits after a thread was found that waits outside of the simulation."""
        self.on_start: Callable[[str], object] = lambda _name: None

    # --------------------------------------------------------------------------------- threads

    @property
    def running(self) -> SimulatedThread:
        """Return the running thread."""
        return self._running

    @property
    def is_ending(self) -> bool:
        """Return whether the simulation is ending its threads."""
        return self._is_ending

    def read_ns(self) -> int:
        """Return the time. The read itself takes ``_LOOK_NS``."""
        return self.compute(_LOOK_NS)

    def compute(self, took_ns: int) -> int:
        """Advance the time by ``took_ns`` of computing; return the time."""
        self.now_ns += took_ns
        return self.now_ns

    def start(self, name: str, work: Callable[[], object]) -> SimulatedThread:
        """Start a thread that runs ``work`` once the scheduler chooses it."""
        thread = self._new_thread(name)
        self.on_start(name)
        threading.Thread(
            target=self._live, args=(thread, work), name=f"{name} (simulated)", daemon=True
        ).start()
        self._make_ready(thread)
        return thread

    def wait(self, waits_for: str, seconds: float | None = None) -> bool:
        """Run other threads until this thread is woken; return False after ``seconds``."""
        thread = self._running
        if self._blocked is not None:
            raise self._blocked if threading.get_ident() == self._main.identifier else Ended
        if threading.get_ident() != thread.identifier:
            raise RuntimeError(
                f"a thread outside of the simulation waits for {waits_for};"
                " use objects of a World only on threads of that World"
            )
        if self._is_ending and thread is not self._main:
            raise Ended
        thread.waits_for = waits_for
        thread.goes_on = False
        thread.wait += 1
        if seconds is not None:
            wait = thread.wait
            delay_ns = max(0, math.ceil(seconds * 1e9)) if seconds < 1e9 else 10**18
            self.at(self.now_ns + delay_ns, lambda: self._is_late(thread, wait))
        self._pass_baton()
        thread.waits_for = ""
        if thread.raises is not None:
            error, thread.raises = thread.raises, None
            raise error
        return thread.goes_on

    def wait_until(
        self,
        holds: Callable[[], object],
        wait: Callable[[float | None], object],
        seconds: float | None,
    ) -> bool:
        """Call ``wait`` with the seconds left until ``holds``; return False after ``seconds``."""
        due = None if seconds is None else self.now_ns / 1e9 + seconds
        while not holds():
            left = None if due is None else due - self.now_ns / 1e9
            if left is not None and left <= 0:
                return False
            wait(left)
        return True

    def wake(self, thread: SimulatedThread) -> None:
        """Wake a waiting thread; do nothing if it does not wait."""
        if thread.waits_for:
            thread.goes_on = True
            self._make_ready(thread)

    def at(self, due_ns: int, event: Callable[[], object]) -> None:
        """Call ``event`` at the simulated time ``due_ns``; it must not wait."""
        self._numbers += 1
        heapq.heappush(self._due, (due_ns, self._numbers, event))

    def end(self) -> None:
        """Raise ``Ended`` in all other threads, and wait until they have ended.

        After a wait outside of the simulation, the other threads are left as they are.
        """
        self._is_ending = True
        if self._blocked is not None:
            return
        self._due.clear()
        self._ready = [each for each in self._threads if each is not self._main]
        for thread in self._ready:
            thread.is_ready = True
            thread.raises = Ended()
        rounds = 0
        while len(self._threads) > 1:
            rounds += 1
            if rounds > STOPPED_MOST:
                raise Stuck(f"threads did not end with the simulation:\n{self.report()}")
            self._main.waits_for = "the end of the other threads"
            self._pass_baton()
        self._main.waits_for = ""

    def report(self) -> str:
        """Return a line for each thread, with its name and the reason of its wait."""
        return "\n".join(
            f"  {thread.name}: {thread.waits_for or 'running'}" for thread in self._threads
        )

    # --------------------------------------------------------------------------------- private

    def _new_thread(self, name: str) -> SimulatedThread:
        thread = SimulatedThread(name)
        self._threads[thread] = None
        return thread

    def _make_ready(self, thread: SimulatedThread) -> None:
        if thread.is_ready:
            return
        thread.is_ready = True
        thread.wait += 1
        if self._is_ending or thread is self._main or self.chance.randrange(LAGS_ONE_IN):
            self._ready.append(thread)
        else:
            lag_ns = self.chance.randrange(LAG_NS_MOST)
            self.at(self.now_ns + lag_ns, lambda: self._ready.append(thread))

    def _live(self, thread: SimulatedThread, work: Callable[[], object]) -> None:
        """Run ``work`` of a simulated thread on its real thread."""
        with claim(self._machine):
            try:
                self._take_baton(thread)
                thread.identifier = threading.get_ident()
                if not self._is_ending:
                    work()
            except BaseException:
                # Errors of a thread that is being ended are ignored.
                if not self._is_ending and self._blocked is None:
                    raise
            finally:
                del self._threads[thread]
                self._hand_on()

    def _is_late(self, thread: SimulatedThread, wait: int) -> None:
        if thread.wait == wait:
            self._make_ready(thread)

    def _pass_baton(self) -> None:
        """Wait until the scheduler chooses this thread."""
        thread = self._running
        chosen = self._choose()
        if chosen is not thread:
            self._running = chosen
            chosen.baton.release()
            self._take_baton(thread)

    def _take_baton(self, thread: SimulatedThread) -> None:
        """Wait until another thread passes the baton; raises Stuck if that thread is blocked."""
        events, computed_s = -1, 0.0
        while not thread.baton.acquire(timeout=BLOCKED_S):
            idle = events == self.events and time.process_time() - computed_s < BLOCKED_S / 100
            events, computed_s = self.events, time.process_time()
            if idle and self._blocked is None and thread is self._watcher():
                self._blocked = _blocked(self._running)
                sys.stderr.write(f"{self._blocked}\n")
            if self._blocked is not None:
                raise self._blocked if thread is self._main else Ended

    def _watcher(self) -> SimulatedThread:
        """Return the waiting thread that reports a blocked thread: the test's, if it waits."""
        return next(each for each in [*self._threads] if each is not self._running)

    def _hand_on(self) -> None:
        """Give the baton of a thread that has ended to the next thread."""
        if self._blocked is not None:
            return
        chosen = self._running = self._choose()
        chosen.baton.release()

    def _happen(self, event: Callable[[], object]) -> None:
        """Call an event; raise its error in the test's thread."""
        try:
            event()
        except Exception as error:  # noqa: BLE001  Not an error of this thread.
            self._main.raises = error
            self._make_ready(self._main)

    def _choose(self) -> SimulatedThread:
        """Remove the next thread from the ready threads and return it."""
        while True:
            self.events += 1
            while self._due and self._due[0][0] <= self.now_ns:
                self._happen(heapq.heappop(self._due)[2])
            if self._ready:
                index = self.chance.randrange(len(self._ready)) if len(self._ready) > 1 else 0
                chosen = self._ready.pop(index)
                chosen.is_ready = False
                return chosen
            if self._is_ending:
                return self._main
            if not self._due:
                self._main.raises = Stuck(f"all threads wait and no event is due:\n{self.report()}")
                self._main.wait += 1
                return self._main
            self.now_ns = self._due[0][0]


def _blocked(thread: SimulatedThread) -> Stuck:
    """Return the error that shows where a thread waits outside of the simulation."""
    # The only way to the stack of another thread.
    frame = sys._current_frames().get(thread.identifier)  # noqa: SLF001
    stack = "".join(traceback.format_stack(frame)[-STACK_MOST:]) if frame else ""
    return Stuck(
        f"{thread.name} waits outside of the World, so that no other thread can run; use"
        f" barnabas.storage.runtime.threads instead of threading, queue and socket:\n{stack}"
    )
