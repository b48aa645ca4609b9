"""Work over all logs that are led here, repeated in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import next_turn
from barnabas.storage.errors import IndexClosed

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.store.log_store import LogStore

State = TypeVar("State")
Result = TypeVar("Result")

LOGS_PER_TURN: Final = 64
"""Maximum number of logs, or of segments, checked in one turn of the event loop."""


class Rounds:
    """Rounds of one kind of work, with a pause before each, and a thread for calls that block."""

    def __init__(
        self,
        host: Host,
        run_once: Callable[[], Awaitable[None]],
        name: str,
        pause_ms: int,
    ) -> None:
        """``run_once`` runs one round; IndexClosed from it ends all rounds."""
        self._host = host
        self._run_once = run_once
        self._name = name
        self._pause_ms = pause_ms
        self._thread = Pool(name, loop=host.loop)
        self._timer: Timer | None = None
        self._is_stopped = False

    def start(self, first_ms: int | None = None) -> None:
        """Start; the first round comes after a pause, or after ``first_ms``."""
        if not self._is_stopped:
            pause_ms = self._pause_ms if first_ms is None else first_ms
            self._timer = self._host.clock.call_later(pause_ms, self._begin)

    def stop(self) -> None:
        """Begin no other round, and no other call of the current round."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._thread.close()

    def aside(self, work: Callable[[], Result]) -> Awaitable[Result]:
        """Run ``work`` on the thread; raises IndexClosed after ``stop``."""
        if self._is_stopped:
            raise IndexClosed
        return self._thread.run(work)

    def _begin(self) -> None:
        self._host.spawn(self._run_and_pause(), self._name)

    async def _run_and_pause(self) -> None:
        try:
            await self._run_once()
        except IndexClosed:
            return
        self.start()


async def for_each_log(
    logs: LogStore,
    states: dict[PartitionLog, State],
    run: Callable[[PartitionLog], Awaitable[None]],
) -> None:
    """Run ``run`` with each log, in turns of the loop; drop the states of other logs."""
    for log in [log for log in states if not is_here(logs, log)]:
        del states[log]
    for number, log in enumerate([*logs.logs.values()], start=1):
        if number % LOGS_PER_TURN == 0:
            await next_turn()
        await run(log)


def is_here(logs: LogStore, log: PartitionLog) -> bool:
    """Whether this broker still leads the same log object."""
    return logs.logs.get(log.partition_id) is log
