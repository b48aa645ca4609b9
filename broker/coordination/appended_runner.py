"""Runs decisions that apply when they are appended: decide, append and apply in one go.

Rules of this file:

* **The state moves when a record is appended to the journal, and what is answered waits until that
  is durable.** The journal is one total order of which a crash leaves a prefix, so a decision can
  never be durable without what it was decided upon. Therefore no command waits for another one.
* A record that is refused has changed nothing; a journal that fails ends the process (D9), and so
  does a mistake in taking in what is appended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic

from barnabas.broker.coordination.shard import MachineT, Shard
from barnabas.broker.coordination.timers import Timers
from barnabas.coordinator.decision import Cancel, Decision, Effect, Schedule, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import CoordinatorLog
    from barnabas.broker.runtime.host import Host

_OF_TIMERS: Final = (Schedule, Cancel)


class AppendedRunner(Generic[MachineT]):
    """The decisions and timers of one coordinator."""

    def __init__(
        self,
        log: CoordinatorLog[MachineT],
        host: Host,
        timer_command: Callable[[Timer], Any],
        *,
        on_appended: Callable[[MachineT, Decision, Any], None],
        take_effect: Callable[[Effect], None],
    ) -> None:
        """``timer_command`` makes the command that a timer comes back as.

        ``on_appended`` is shown the machine before it takes in a decision that has records, and the
        command; ``take_effect`` does what is more than timers.
        """
        self._log = log
        self._host = host
        self._timer_command = timer_command
        self._on_appended = on_appended
        self._take_effect = take_effect
        self._timers = Timers(host.clock, self._timer_expired)

    def run(self, key: str, command: Any) -> Decision:  # noqa: ANN401
        """Decide, append and apply; raises KafkaError, and then nothing has changed."""
        shard = self._log.shard_here(key)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        decision, appended = self._log.decide(shard, key, command)
        try:
            if appended is None:
                shard.apply(decision, 0)
            else:
                self._on_appended(shard.machine, decision, command)
                shard.apply(decision, appended.base_offset)
            self.take_effects(shard, decision.effects)
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise
        return decision

    def take_effects(self, shard: Shard[MachineT], effects: tuple[Effect, ...]) -> None:
        """Set and cancel timers, and let the rest be done."""
        for effect in effects:
            if isinstance(effect, _OF_TIMERS):
                self._timers.take(shard, effect)
            else:
                self._take_effect(effect)

    def _timer_expired(self, shard: Shard[MachineT], timer: Timer) -> None:
        if not shard.owns(timer.key):
            return  # A record stands in a partition that its key does not belong to.
        try:
            self.run(timer.key, self._timer_command(timer))
        except KafkaError as error:
            self._timers.retry(shard, timer, error.code)
        self._host.flush_answers()

    def forget(self, shard: Shard[MachineT]) -> None:
        """Drop the timers of a partition that was lost."""
        self._timers.forget(shard)

    def close(self) -> None:
        """Let no timer run any more: the broker ends."""
        self._timers.close()
