"""Runs decisions that apply when they are durable: append, wait for the disk, apply, answer.

Rules of this file:

* Nothing of a decision shows before its records are durable. Commands for the same key wait in its
  lane meanwhile, in order; decisions for different keys share one group of the journal.
* What does not become durable leaves no trace: an append is refused before the state has changed,
  and so is a flush in a cluster; a disk that fails stops the process (D9). So does a mistake in
  taking in what is durable, for the state is not what the log says then; one in deciding only fails
  its command.
* A partition that is lost answers everybody who waits at once: also those whose records are on
  their way to the disk, and may become durable. Nobody applies them here any more.
* A decision that takes long (``Decision.steps``) has its lane for itself from its first step until
  its last record is applied, and the loop for one slice at a time. It is one batch like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Generic

from barnabas.broker.coordination.lanes import Command, Lane, Lanes, Submission
from barnabas.broker.coordination.long_decision import (
    apply_in_slices,
    decide_in_slices,
    encode_in_slices,
    until_durable,
)
from barnabas.broker.coordination.marker_intake import MarkerIntake
from barnabas.broker.coordination.responding import respond_to
from barnabas.broker.coordination.shard import MachineT, Shard
from barnabas.broker.coordination.timers import Timers
from barnabas.coordinator.decision import Answer, Decision, Effect, LongDecision, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import CoordinatorLog
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.refusal import Refusal


class DurableRunner(Generic[MachineT]):
    """The lanes, parked answers and timers of one coordinator."""

    def __init__(
        self,
        log: CoordinatorLog[MachineT],
        host: Host,
        timer_command: Callable[[Timer], Command],
    ) -> None:
        """``timer_command`` makes the command that a timer comes back as."""
        self._log = log
        self._host = host
        self._timer_command = timer_command
        self._fatal = host.fatal
        self._lanes = Lanes()
        self._timers = Timers(host.clock, self._timer_expired)
        self._markers = MarkerIntake(host)
        self._parked: dict[int, Submission] = {}
        self._in_flight: set[Submission] = set()
        """What has a decision that is being made or is on its way to the disk."""
        self._last_ticket = 0

    # ------------------------------------------------------------------------------------ commands

    def new_ticket(self) -> int:
        """A number for a command whose answer may have to wait."""
        self._last_ticket += 1
        return self._last_ticket

    def must_wait(self, key: str, command: Command) -> bool:
        """Whether a command would wait for others of its key, were it submitted now."""
        shard = self._log.shard_here(key)
        if shard is not None and self._markers.holds(shard):
            return True
        return self._lanes.to_wait_in(key, command) is not None

    def submit(self, submission: Submission) -> None:
        """Decide a command when its turn has come; ask the log's ``refusal`` first."""
        shard = self._log.shard_here(submission.key)
        if shard is None:
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
        else:
            self._submit(shard, submission)

    def _submit(self, shard: Shard[MachineT], submission: Submission) -> None:
        if shard.is_gone:
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
            return
        lane = self._lanes.to_wait_in(submission.key, submission.command)
        if lane is None:
            self._run(shard, submission)
        else:
            lane.waiting.append(submission)

    def _run(self, shard: Shard[MachineT], submission: Submission) -> None:
        """Decide, and either finish at once or when the records are durable."""
        if self._markers.holds(shard):
            self._markers.hold(shard, partial(self._submit, shard, submission))
            return
        if submission.expiry is not None and not self._timers.begin(submission.expiry):
            return
        key, command = submission.key, submission.command
        try:
            decision, appended = self._log.decide(shard, key, command, submission.admit)
        except KafkaError as error:
            self._refuse(submission, error.code)
            return
        if appended is not None:
            lane = self._lanes.enter(key, command)
            self._in_flight.add(submission)
            assert appended.durable is not None
            appended.durable.add_waiter(
                _InFlight(self, shard, lane, submission, decision, appended.base_offset)
            )
        elif decision.steps is None:
            self._finish(shard, decision, 0, submission)
        else:
            lane = self._lanes.enter(key, command)
            self._in_flight.add(submission)
            running = self._run_long(shard, lane, decision.steps, submission)
            self._host.spawn(running, f"decide {self._log.topic_name}")

    def became_durable(
        self,
        shard: Shard[MachineT],
        lane: Lane,
        submission: Submission,
        decision: Decision,
        base_offset: int,
    ) -> None:
        """Take in and answer what was decided, and let those go on who wait behind it."""
        if shard.is_gone:
            return  # It was answered.
        self._in_flight.discard(submission)
        if self._finish(shard, decision, base_offset, submission):
            self._leave(shard, lane, submission.key)

    def was_refused(self, lane: Lane, submission: Submission) -> None:
        """Answer what came to nothing, and all that waits behind it: the log is closed."""
        if submission not in self._in_flight:
            return  # The partition was lost before that, and it was answered.
        self._in_flight.discard(submission)
        waiting: Submission | None = submission
        lane.in_flight -= 1
        while waiting is not None:
            self._refuse(waiting, ErrorCode.NOT_COORDINATOR)
            waiting = self._lanes.next(submission.key, lane)

    def _finish(
        self, shard: Shard[MachineT], decision: Decision, base_offset: int, submission: Submission
    ) -> bool:
        """Take in what is durable, then answer; False when the broker cannot go on."""
        response = decision.response
        try:
            shard.apply(decision, base_offset)
            if response is None and submission.ticket is not None:
                self._parked[submission.ticket] = submission
            if decision.effects:
                self.take_effects(shard, decision.effects)
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._fatal(error)
            return False
        if response is not None:
            respond_to(submission.respond, response, self._log.topic_name)
        return True

    def _leave(self, shard: Shard[MachineT], lane: Lane, key: str) -> None:
        """Let the next ones of the lane go on."""
        lane.in_flight -= 1
        while (submission := self._lanes.next(key, lane)) is not None:
            self._run(shard, submission)

    def _refuse(self, submission: Submission, code: ErrorCode) -> None:
        """Answer with an error; a timer comes again."""
        if submission.refuse is not None:
            respond_to(submission.respond, submission.refuse(code), self._log.topic_name)
        elif submission.expiry is not None:
            self._timers.retry(submission.expiry.shard, submission.expiry.timer, code)

    # ------------------------------------------------------------------------------------- effects

    def take_effects(self, shard: Shard[MachineT], effects: tuple[Effect, ...]) -> None:
        """Set and cancel timers, give parked answers."""
        for effect in effects:
            if isinstance(effect, Answer):
                parked = self._parked.pop(effect.ticket, None)
                if shard.is_gone:
                    return  # That came out while others were answered: so was this one.
                assert parked is not None, effect
                respond_to(parked.respond, effect.response, self._log.topic_name)
            else:
                self._timers.take(shard, effect)

    def _timer_expired(self, shard: Shard[MachineT], timer: Timer) -> None:
        if not shard.owns(timer.key):
            return  # A record stands in a partition that its key does not belong to.
        command = self._timer_command(timer)
        expiry = self._timers.waiting(shard, timer)
        self._submit(shard, Submission(timer.key, command, _ignore, expiry=expiry))
        self._host.flush_answers()

    # ------------------------------------------------------------------------------ what takes long

    async def _run_long(
        self,
        shard: Shard[MachineT],
        lane: Lane,
        steps: Generator[None, None, LongDecision],
        submission: Submission,
    ) -> None:
        """As ``_run``, in slices. The lane is left when all is done."""
        key = submission.key
        pause = partial(self._markers.pause, shard)
        base_offset = 0
        try:
            decision = await decide_in_slices(steps, partial(self._log.failed, key), pause)
            batch = await encode_in_slices(
                decision, self._log.now().wall_ms, partial(self._log.refuse_too_large, key), pause
            )
            if batch is not None:
                appended = self._log.append(shard, key, submission.command, batch, submission.admit)
                await until_durable(appended, shard)
                base_offset = appended.base_offset
            if not await apply_in_slices(shard, decision, base_offset, self._fatal, pause):
                return
        except KafkaError as error:
            if shard.is_gone:
                return  # It was answered.
            self._in_flight.discard(submission)
            self._refuse(submission, error.code)
        else:
            self._in_flight.discard(submission)
            rest = Decision(decision.response, changes=decision.changes, effects=decision.effects)
            if not self._finish(shard, rest, base_offset, submission):
                return
        self._leave(shard, lane, key)
        self._host.flush_answers()

    def end_transaction(self, shard: Shard[MachineT], producer_id: int, *, commit: bool) -> None:
        """Take in a marker that is durable."""
        if not shard.is_gone:
            self._markers.take_in(shard, producer_id, commit=commit)

    # ----------------------------------------------------------------------------------------- end

    def forget(self, shard: Shard[MachineT]) -> None:
        """Drop what there is of a partition that was lost, and answer all who wait for it."""
        self._timers.forget(shard)
        in_flight = [each for each in self._in_flight if shard.owns(each.key)]
        self._in_flight.difference_update(in_flight)
        tickets = [ticket for ticket, each in self._parked.items() if shard.owns(each.key)]
        parked = [self._parked.pop(ticket) for ticket in tickets]
        waiting = self._lanes.drop(shard.owns)
        for submission in (*in_flight, *parked, *waiting):
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
        self._markers.forget(shard)

    def close(self) -> None:
        """Let no timer run any more: the broker ends."""
        self._timers.close()


class _InFlight(Generic[MachineT]):
    """A decision whose records are on their way to the disk."""

    __slots__ = ("_base_offset", "_decision", "_lane", "_runner", "_shard", "_submission")

    def __init__(
        self,
        runner: DurableRunner[MachineT],
        shard: Shard[MachineT],
        lane: Lane,
        submission: Submission,
        decision: Decision,
        base_offset: int,
    ) -> None:
        self._runner = runner
        self._shard = shard
        self._lane = lane
        self._submission = submission
        self._decision = decision
        self._base_offset = base_offset

    def durable(self) -> None:
        """Have it taken in."""
        self._runner.became_durable(
            self._shard, self._lane, self._submission, self._decision, self._base_offset
        )

    def refused(self, _refusal: Refusal) -> None:
        """Have it answered: who the coordinator is has to be asked again."""
        self._runner.was_refused(self._lane, self._submission)


def _ignore(_response: object) -> None:
    """Do nothing: a timer's command has no client."""
