"""Runs the decisions of a coordinator: decide, append and apply in one go; the response waits.

Rules of this file:

* **The state moves when a record is appended to the journal. What a client receives waits until
  all that its partition's log holds is durable** (D1, O9), also if the command itself wrote
  nothing: what it read may not be durable yet. The journal is one total order of which a crash
  leaves a prefix, so a decision can never be durable without what it was decided upon. Therefore no
  command waits for another one, and the commits of one group share a sync. A response waits for the
  last group with something of its partition, not for later ones, which may be refused.
* In a cluster a flush may be refused. All that is not durable is dropped with it, and every log
  with something of it is closed: the partition is lost as a whole, with its state, its timers and
  its parked commands, and is read again. Answers on their way become errors.
* Exceptions:
  1. A key with a long decision, and a partition with a large marker, hold commands (``slices.py``).
  2. A command that waits for other members of its group is parked under its ticket. Its response
     waits for the decision that gives it.
  3. A response that tells a client nothing new (``Decision.is_known``) leaves at once, so that
     members keep their sessions while the disk, or the store of the cluster, is slow.
  4. A timer of a group that expires while its partition waits for the disk is decided after that: a
     member does not know its next step before its response has left.
* A record that is refused has changed nothing; a journal that fails ends the process (D9), and so
  does a mistake in applying what is appended. A mistake in deciding only fails its command.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from barnabas.broker.api.waiting import PendingResponse, respond_to
from barnabas.broker.coordination.shard import RECORDS_PER_SLICE, MachineT, Shard
from barnabas.broker.coordination.slices import Slices
from barnabas.broker.coordination.timers import RETRY_MS, Timers
from barnabas.coordinator.decision import Answer, Cancel, Decision, Effect, Schedule, Timer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.journal.journal import WhenDurable

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import Admit, CoordinatorLog
    from barnabas.broker.coordination.timers import Expiry
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.decision import LongDecision

Respond = Callable[[Any], object]
Refuse = Callable[[ErrorCode], Any]

_OF_TIMERS: Final = (Schedule, Cancel)


class Following(NamedTuple):
    """A command that follows from a decision's effect: it is decided right behind the decision."""

    key: str
    command: Any
    settled: Callable[[ErrorCode], None]
    """Called with NONE when the command is applied, or with the error if nothing has changed."""


@dataclass(slots=True, eq=False)
class Submission:
    """A command with the receiver of its response."""

    key: str
    command: Any
    respond: Respond
    """Called with the response, once."""
    refuse: Refuse | None = None
    """Makes the response to an error of the log, or None if the command has no client."""
    ticket: int | None = None
    """Number of the parked command, or None unless a later decision completes it."""
    admit: Admit | None = None
    expiry: Expiry | None = None
    """The timer whose command it is."""


class Runner(Generic[MachineT]):
    """The decisions, parked commands and timers of one coordinator."""

    def __init__(
        self,
        log: CoordinatorLog[MachineT],
        host: Host,
        timer_command: Callable[[Timer], Any],
        *,
        on_appended: Callable[[MachineT, Decision, Any], None] | None = None,
        take_effect: Callable[[Shard[MachineT], Effect], Following | None] | None = None,
        timers_wait: bool = False,
    ) -> None:
        """``timer_command`` makes the command that a timer comes back as.

        ``timers_wait``: timers that expire while answers wait for the disk are decided after them.
        ``on_appended`` is shown the machine before it takes in a decision that has records, and the
        command; ``take_effect`` does what is more than timers, and returns what follows from it.
        """
        self._log = log
        self._host = host
        self._timer_command = timer_command
        self._on_appended = on_appended
        self._take_effect = take_effect
        self._timers_wait = timers_wait
        self._timers = Timers(host.clock, self._timer_expired)
        self._slices = Slices(host)
        self._parked: dict[int, Submission] = {}
        self._last_ticket = 0

    # ------------------------------------------------------------------------------------ commands

    def run(self, shard: Shard[MachineT], key: str, command: Any) -> Decision:  # noqa: ANN401
        """Decide, append and apply a command and its follow-ups; return its decision.

        Raises KafkaError, and then nothing has changed. What the decision says is true when all
        that the partition's log holds is durable.
        """
        decision = self._apply(shard, key, command)
        if decision.effects:
            self.take_effects(shard, decision.effects)
        return decision

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

    def new_ticket(self) -> int:
        """Return a number for a command whose response may wait for a later decision."""
        self._last_ticket += 1
        return self._last_ticket

    def must_wait(self, key: str) -> bool:
        """Return whether a command of ``key`` would wait before it is decided."""
        shard = self._log.shard_here(key)
        return shard is not None and self._slices.holds(shard, key)

    def submit(self, submission: Submission) -> None:
        """Decide a command, and respond when that is durable; call the log's ``refusal`` first."""
        shard = self._log.shard_here(submission.key)
        if shard is None:
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
        else:
            self._submit(shard, submission)

    def _submit(self, shard: Shard[MachineT], submission: Submission) -> None:
        if shard.is_gone:
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
        elif self._slices.holds(shard, submission.key):
            self._slices.hold(shard, submission.key, partial(self._submit, shard, submission))
        else:
            self._decide(shard, submission)

    def _decide(self, shard: Shard[MachineT], submission: Submission) -> None:
        if submission.expiry is not None and not self._timers.begin(submission.expiry):
            return
        try:
            decision = self._apply(shard, submission.key, submission.command, submission.admit)
        except KafkaError as error:
            self._refuse(submission, error.code)
            return
        if decision.steps is None:
            self._settle(shard, submission, decision)
        else:
            self._slices.begin(shard, submission.key)
            running = self._decide_long(shard, submission, decision.steps)
            self._host.spawn(running, f"decide {self._log.topic_name}")

    def _apply(
        self,
        shard: Shard[MachineT],
        key: str,
        command: Any,  # noqa: ANN401
        admit: Admit | None = None,
    ) -> Decision:
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        decision, appended = self._log.decide(shard, key, command, admit)
        try:
            if appended is None:
                shard.apply(decision, 0)
            else:
                if self._on_appended is not None:
                    self._on_appended(shard.machine, decision, command)
                shard.apply(decision, appended.base_offset)
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise
        return decision

    def _settle(self, shard: Shard[MachineT], submission: Submission, decision: Decision) -> None:
        """Park or complete a command whose decision is applied."""
        response = decision.response
        if response is None and submission.ticket is not None:
            self._parked[submission.ticket] = submission
        if decision.effects:
            self.take_effects(shard, decision.effects)
        if response is None:
            return
        if decision.is_known:
            respond_to(submission.respond, response, self._log.topic_name)
        else:
            self._answer(shard, submission, response)

    # ------------------------------------------------------------------------------------- effects

    def take_effects(self, shard: Shard[MachineT], effects: tuple[Effect, ...]) -> None:
        """Apply effects: timers, responses to parked commands, and follow-up decisions."""
        try:
            following = [each for effect in effects if (each := self._take(shard, effect))]
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise
        for each in following:
            self.follow(shard, each)

    def _take(self, shard: Shard[MachineT], effect: Effect) -> Following | None:
        if isinstance(effect, _OF_TIMERS):
            self._timers.take(shard, effect)
        elif not isinstance(effect, Answer):
            assert self._take_effect is not None, effect
            return self._take_effect(shard, effect)
        else:
            parked = self._parked.pop(effect.ticket, None)
            if not shard.is_gone:  # Else an earlier response has lost it, and this was refused.
                assert parked is not None, effect
                self._answer(shard, parked, effect.response)
        return None

    # ------------------------------------------------------------------------------------- answers

    def _answer(self, shard: Shard[MachineT], submission: Submission, response: Any) -> None:  # noqa: ANN401
        """Respond when the present content of the partition's log is durable."""
        respond, topic_name = submission.respond, self._log.topic_name
        if self._log.is_durable(shard):
            respond_to(respond, response, topic_name)
            return
        refuse = submission.refuse or _nothing
        self._log.when_durable(shard, PendingResponse(respond, response, refuse, topic_name))

    def _refuse(self, submission: Submission, code: ErrorCode) -> None:
        """Respond with an error, or schedule the command's timer again."""
        if submission.refuse is not None:
            respond_to(submission.respond, submission.refuse(code), self._log.topic_name)
        elif submission.expiry is not None:
            self._timers.retry(submission.expiry.shard, submission.expiry.timer, code)

    # -------------------------------------------------------------------------------------- timers

    def _timer_expired(self, shard: Shard[MachineT], expiry: Expiry) -> None:
        if not shard.owns(expiry.timer.key):  # Its record is in a partition of other keys.
            self._timers.begin(expiry)
        elif not self._timers_wait or expiry.is_postponed or self._log.is_durable(shard):
            self._expire(shard, expiry)
        else:
            expires = partial(self._expire_late, shard, expiry, self._host.clock.monotonic())
            self._log.when_durable(shard, WhenDurable(expires))
        self._host.flush_answers()

    def _expire(self, shard: Shard[MachineT], expiry: Expiry) -> None:
        timer = expiry.timer
        command = self._timer_command(timer)
        self._submit(shard, Submission(timer.key, command, _nothing, expiry=expiry))

    def _expire_late(self, shard: Shard[MachineT], expiry: Expiry, since_s: float) -> None:
        """Decide the command of a timer that had to wait for the disk.

        If the disk was slow the timer is postponed instead, once: a client whose response has only
        just left gets that time to continue.
        """
        if (self._host.clock.monotonic() - since_s) * 1000 >= RETRY_MS:
            self._timers.postpone(expiry)
        else:
            self._expire(shard, expiry)

    # ------------------------------------------------------------------------------ what takes long

    async def _decide_long(
        self,
        shard: Shard[MachineT],
        submission: Submission,
        steps: Generator[None, None, LongDecision],
    ) -> None:
        """Decide a command in slices; other commands of its key wait until all is applied."""
        try:
            decision = await self._slices.take(shard, self._in_slices(shard, submission, steps))
        except KafkaError as error:
            self._refuse(submission, error.code)
        else:
            if decision is None:
                return
            self._settle(shard, submission, decision)
        self._slices.end(shard, submission.key)
        self._host.flush_answers()

    def _in_slices(
        self,
        shard: Shard[MachineT],
        submission: Submission,
        steps: Generator[None, None, LongDecision],
    ) -> Generator[None, None, Decision | None]:
        """Decide, append one batch and apply it; return the remaining work, None after an error.

        Raises KafkaError, and then nothing has changed.
        """
        key = submission.key
        decision, batch = yield from self._log.decide_in_slices(key, steps)
        offset = 0
        if batch is not None:
            appended = self._log.append(shard, key, submission.command, batch, submission.admit)
            offset = appended.base_offset
        try:
            for number, record in enumerate(decision.records):
                shard.machine.apply(record, offset + number)
                if number % RECORDS_PER_SLICE == 0:
                    yield
            for change in decision.changes:
                shard.machine.change(change)
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._host.fatal(error)
            return None
        return Decision(decision.response, effects=decision.effects)

    def end_transaction(self, shard: Shard[MachineT], producer_id: int, *, commit: bool) -> None:
        """Apply an appended marker, unless the partition is lost."""
        if shard.is_gone:
            return
        try:
            self._slices.take_in(shard, producer_id, commit=commit)
        except Exception as error:  # What is in memory is right no more (D9).
            self._host.fatal(error)
            raise

    # ----------------------------------------------------------------------------------------- end

    def forget(self, shard: Shard[MachineT]) -> None:
        """Drop the timers of a lost partition, and refuse its parked and held commands.

        Responses in flight wait for their journal group, which decides whether they are sent.
        """
        self._timers.forget(shard)
        tickets = [ticket for ticket, each in self._parked.items() if shard.owns(each.key)]
        for submission in [self._parked.pop(ticket) for ticket in tickets]:
            self._refuse(submission, ErrorCode.NOT_COORDINATOR)
        self._slices.forget(shard)

    def close(self) -> None:
        """Stop all timers when the broker ends."""
        self._timers.close()


def _nothing(_response: object) -> None:
    """Drop a response: the command has no client."""
