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
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from barnabas.broker.coordination.shard import MachineT, Shard
from barnabas.broker.coordination.timers import Timers
from barnabas.coordinator.decision import Cancel, Decision, Effect, Schedule, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import CoordinatorLog
    from barnabas.broker.runtime.host import Host

_OF_TIMERS: Final = (Schedule, Cancel)


class Following(NamedTuple):
    """A command that follows from a decision's effect: it is decided right behind the decision."""

    key: str
    command: Any
    settled: Callable[[ErrorCode], None]
    """Gets NONE when the command is applied, or the error for which nothing has changed."""


class AppendedRunner(Generic[MachineT]):
    """The decisions and timers of one coordinator."""

    def __init__(
        self,
        log: CoordinatorLog[MachineT],
        host: Host,
        timer_command: Callable[[Timer], Any],
        *,
        on_appended: Callable[[MachineT, Decision, Any], None],
        take_effect: Callable[[Shard[MachineT], Effect], Following | None],
    ) -> None:
        """``timer_command`` makes the command that a timer comes back as.

        ``on_appended`` is shown the machine before it takes in a decision that has records, and the
        command; ``take_effect`` does what is more than timers, and returns what follows from it.
        """
        self._log = log
        self._host = host
        self._timer_command = timer_command
        self._on_appended = on_appended
        self._take_effect = take_effect
        self._timers = Timers(host.clock, self._timer_expired)

    def run(self, shard: Shard[MachineT], key: str, command: Any) -> Decision:  # noqa: ANN401
        """Decide, append and apply, then what follows; return the decision on ``command``.

        Raises KafkaError, and then nothing has changed.
        """
        decision = self._apply(shard, key, command)
        if decision.effects:
            self.take_effects(shard, decision.effects)
        return decision

    def take_effects(self, shard: Shard[MachineT], effects: tuple[Effect, ...]) -> None:
        """Set and cancel timers, let the rest be done, and decide what follows from it."""
        try:
            following = [each for effect in effects if (each := self._take(shard, effect))]
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise
        for each in following:
            self.follow(shard, each)

    def follow(self, shard: Shard[MachineT], following: Following) -> None:
        """Decide, append and apply a command that has no effects of its own."""
        code = ErrorCode.NONE
        try:
            decision = self._apply(shard, following.key, following.command)
        except KafkaError as error:
            code = error.code
        else:
            assert not decision.effects, following
        following.settled(code)

    def _apply(self, shard: Shard[MachineT], key: str, command: Any) -> Decision:  # noqa: ANN401
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        decision, appended = self._log.decide(shard, key, command)
        try:
            if appended is None:
                shard.apply(decision, 0)
            else:
                self._on_appended(shard.machine, decision, command)
                shard.apply(decision, appended.base_offset)
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise
        return decision

    def _take(self, shard: Shard[MachineT], effect: Effect) -> Following | None:
        if isinstance(effect, _OF_TIMERS):
            self._timers.take(shard, effect)
            return None
        return self._take_effect(shard, effect)

    def _timer_expired(self, shard: Shard[MachineT], timer: Timer) -> None:
        if not shard.owns(timer.key):
            return  # A record stands in a partition that its key does not belong to.
        try:
            self.run(shard, timer.key, self._timer_command(timer))
        except KafkaError as error:
            self._timers.retry(shard, timer, error.code)
        self._host.flush_answers()

    def forget(self, shard: Shard[MachineT]) -> None:
        """Drop the timers of a partition that was lost."""
        self._timers.forget(shard)

    def close(self) -> None:
        """Let no timer run any more: the broker ends."""
        self._timers.close()
