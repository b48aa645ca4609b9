"""Runs the transaction coordinator: records, markers and completion in one group of the journal.

Rules of this file:

* **The state moves when a record is placed in the journal, answers wait until it is durable.** The
  journal is one total order of which a crash leaves a prefix, so a decision can never be durable
  without what it was decided upon: no data without the record that its partition was added (P1),
  no marker without its decision, no completion without its markers (D5). Therefore nothing waits
  between them, and a transaction over any number of partitions ends with one sync. A record that
  is refused has changed nothing; a journal that fails ends the process (D9).
* Where markers cannot be placed (the disk is full, a partition is being closed or not loaded yet)
  the transaction stays prepared, and they are tried again until they are there (C6); see
  ``broker/coordination/marker_phase.py``.
* What Apache Kafka refuses with CONCURRENT_TRANSACTIONS, so that its clients sleep and ask again,
  waits here for the transition in flight, for ``barnabas.transaction.wait.ms`` at most.
* "No such partition" is said by the catalogue, which is complete before this starts: a partition
  that is merely not ready is never taken for one that is gone (KAFKA-20734).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.broker.coordination.id_expiration import IdExpiration
from barnabas.broker.coordination.marker_phase import MarkerPhase
from barnabas.broker.coordination.runner import RETRY_MS, Coordination
from barnabas.broker.coordination.shard import Respond, Shard
from barnabas.broker.coordination.transaction_clients import TransactionClients
from barnabas.broker.coordination.transaction_counts import TransactionCounts
from barnabas.broker.runtime.clock import Timer as ClockTimer
from barnabas.broker.topics.topic_names import TRANSACTION_STATE
from barnabas.coordinator.decision import Decision, Timer
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    Expire,
    MarkersPlaced,
    MarkersWritten,
    Outcome,
    TakeProducerId,
    TimerExpired,
    VerifyPartitions,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import TopicPartition, Transaction
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.messages.transaction_log_record import TRANSACTION_LOG_RECORD

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.coordination.markers import MarkerWriter
    from barnabas.broker.runtime.host import Host
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.storage.log_store import LogStore

logger = logging.getLogger(__name__)

IDS_PER_TURN: Final = 256
"""Transactional ids asked for what has expired before the loop gets a turn."""
TRANSACTIONAL_ID_MAX_BYTES: Final = 32_767
"""What the records of ``__transaction_state`` can hold."""


@dataclass(slots=True)
class _Held:
    """A request that waits for the transition in flight."""

    then: Callable[[], None]
    timer: ClockTimer


class Transactions(Coordination):
    """Runs the transaction coordinator."""

    def __init__(
        self, host: Host, catalogue: Catalogue, logs: LogStore, markers: MarkerWriter
    ) -> None:
        super().__init__(
            TRANSACTION_STATE,
            lambda: TransactionShard(host.config.transaction_version),
            self._timer_expired,
            catalogue=catalogue,
            clock=host.clock,
            after=host.flush_answers,
            spawn=host.spawn,
            on_fatal=host.fatal,
            batch_max_bytes=host.config.journal_file_bytes // 2,
            latest_counts=True,
        )
        self._host = host
        self._logs = logs
        self._held: dict[str, deque[_Held]] = {}
        self._sets_aside = False
        """Whether a start met ids whose records make no sense."""
        self._markers = MarkerPhase(self, host, catalogue, markers)
        self.clients = TransactionClients()
        self.counts = TransactionCounts()
        self.held_bytes = 0
        """Records of requests that wait in ``when_decided``; who lets them wait counts."""

    @property
    def coordinator_epoch(self) -> int:
        """Greater at every start, and than any in a marker of the logs that were found (D6)."""
        return self._logs.leader_epoch

    async def ensure(self) -> None:
        """Make ``__transaction_state`` unless it is there; raises KafkaError."""
        config = self._host.config
        await self.ensure_topic(
            config.transaction_state_log_num_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )

    # ------------------------------------------------------------------------------------- reading

    def transaction(self, transactional_id: str) -> Transaction | None:
        """What is known of a transactional id; ask ``refusal`` first."""
        return self._machine(transactional_id).transactions.get(transactional_id)

    def awaiting_markers(self, transactional_id: str) -> list[TopicPartition]:
        """The partitions that a decided transaction still owes a marker."""
        return self._machine(transactional_id).awaiting_markers(transactional_id)

    @property
    def all(self) -> list[Transaction]:
        """Every transactional id there is."""
        machines = cast("list[TransactionShard]", self.machines)
        return [each for machine in machines for each in machine.transactions.values()]

    def when_durable(self, then: Callable[[], None]) -> None:
        """Call ``then`` when everything that was placed in the journal so far is durable (C14)."""
        group = self._logs.journal.newest_group()
        if group is None:
            then()
        else:
            group.add_waiter(then)

    async def durable(self) -> None:
        """Wait until everything that was placed in the journal so far is durable (C14)."""
        durable: asyncio.Future[None] = self._host.loop.create_future()
        self.when_durable(lambda: None if durable.done() else durable.set_result(None))
        await durable

    def _machine(self, transactional_id: str) -> TransactionShard:
        return cast("TransactionShard", self.machine_of(transactional_id))

    # -------------------------------------------------------------------------------------- asking

    def refusal(self, key: str) -> ErrorCode:
        """Why commands for a transactional id cannot be taken now; NONE if they can."""
        if len(key) > TRANSACTIONAL_ID_MAX_BYTES // 4 and (
            len(key.encode()) > TRANSACTIONAL_ID_MAX_BYTES
        ):
            return ErrorCode.INVALID_REQUEST
        code = super().refusal(key)
        if self._sets_aside and not code and key in self._machine(key).quarantined:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return code

    def _set_aside(self, shard: Shard, key: bytes) -> bool:
        """Refuse one id whose latest record makes no sense, and serve the others."""
        try:
            transactional_id = TRANSACTION_LOG_RECORD.decode_key(key).transactional_id
        except (KafkaError, Malformed):
            return False
        cast("TransactionShard", shard.machine).quarantine(transactional_id)
        self._sets_aside = True
        return True

    def ask(
        self,
        make: Callable[[], Command],
        respond: Callable[[Outcome], None],
        *,
        key: str,
        context: RequestContext | None = None,
    ) -> None:
        """Decide a client's command and answer when that is durable; may wait for a transition.

        ``make`` builds the command each time it is decided: it may bring a fresh producer id.
        ``context`` is that of the client who uses the id, if it is one.
        """
        if context is not None:
            respond = partial(self._noted, key, context, respond)
        self._ask(key, make, respond, None)

    async def asked(
        self, make: Callable[[], Command], *, key: str, context: RequestContext
    ) -> Outcome:
        """``ask``, for a handler that waits."""
        found: asyncio.Future[Outcome] = self._host.loop.create_future()

        def answer(outcome: Outcome) -> None:
            if not found.done():  # Whoever waited may be gone.
                found.set_result(outcome)

        self.ask(make, answer, key=key, context=context)
        return await found

    def _noted(
        self,
        key: str,
        context: RequestContext,
        respond: Callable[[Outcome], None],
        outcome: Outcome,
    ) -> None:
        if not outcome.error:
            self.used(key, context)
        respond(outcome)

    def used(self, key: str, context: RequestContext) -> None:
        """Remember who used a transactional id last; it exists, for the request succeeded."""
        if self._topic is not None:
            self.clients.used(key, context)

    def _ask(
        self,
        key: str,
        make: Callable[[], Command],
        respond: Callable[[Outcome], None],
        deadline_ms: float | None,
    ) -> None:
        code = self.refusal(key)
        outcome = Outcome(code) if code else self.decide_now(key, make())
        wait_ms = self._host.config.transaction_wait_ms
        if outcome.error == ErrorCode.CONCURRENT_TRANSACTIONS and wait_ms:
            now_ms = self._clock.monotonic() * 1000
            if deadline_ms is None:
                deadline_ms = now_ms + wait_ms
            if not self.is_deciding(key):
                # The command itself ended what was open, and that is done: ask again.
                outcome = self.decide_now(key, make())
            elif now_ms < deadline_ms - 1:
                self.when_decided(key, partial(self._ask, key, make, respond, deadline_ms))
                return
        self.when_durable(partial(self._respond_outcome, respond, outcome))

    def _respond_outcome(self, respond: Callable[[Outcome], None], outcome: Outcome) -> None:
        try:
            respond(outcome)
        except Exception:  # What was decided is done, and others wait behind this answer.
            logger.exception("answer failed topic=%s", self.topic_name)

    def is_deciding(self, key: str) -> bool:
        """Whether a decided transaction still waits for its markers."""
        transaction = self.transaction(key)
        return transaction is not None and transaction.state.is_prepared

    def when_decided(self, key: str, then: Callable[[], None]) -> None:
        """Call ``then`` when the transition in flight is over, or when it was waited for enough."""
        queue = self._held.setdefault(key, deque())

        def give_up() -> None:
            self.counts.requests_given_up += 1
            queue.remove(held)
            if not queue and self._held.get(key) is queue:
                del self._held[key]
            then()
            self._after()

        timer = self._clock.call_later(self._host.config.transaction_wait_ms, give_up)
        held = _Held(then, timer)
        queue.append(held)
        self.counts.requests_held += 1

    @property
    def requests_waiting(self) -> int:
        """How many requests wait now until a transaction has ended."""
        return sum(map(len, self._held.values()))

    def _release(self, key: str) -> None:
        """Ask for those who waited for a transition that is over now."""
        for held in self._held.pop(key, ()):
            held.timer.cancel()
            held.then()

    def decide_now(self, key: str, command: Command) -> Outcome:
        """Decide at once; the answer is true when the journal's newest group is durable."""
        shard = self._shards[self.partition_of(key)]
        try:
            return cast("Outcome", self._execute(shard, key, command).response or Outcome())
        except KafkaError as error:
            return Outcome(error.code)

    def _execute(self, shard: Shard, key: str, command: Command) -> Decision:
        """Decide, place and apply; raises KafkaError, and then nothing has changed."""
        decision, appended = self._decide(shard, key, command)
        base_offset = 0 if appended is None else appended.base_offset
        try:
            if decision.records:
                known = cast("TransactionShard", shard.machine).transactions
                before = known.get(key)
                for number, record in enumerate(decision.records):
                    shard.machine.apply(record, base_offset + number)
                self.counts.moved(before, known.get(key), command)
            for change in decision.changes:
                shard.machine.change(change)
            self._take_effects(decision.effects)
        except Exception as error:  # What is in memory is right no more (D9).
            self._on_fatal(error)
            raise
        return decision

    def submit(
        self,
        key: str,
        command: Any,  # noqa: ANN401
        respond: Respond,
        refuse: Callable[[ErrorCode], Any] | None = None,
    ) -> None:
        """Decide a timer's command; clients' go through ``ask``."""
        assert refuse is None
        if self._is_overtaken(command):
            return
        try:
            decision = self._execute(self._shards[self.partition_of(key)], key, command)
        except KafkaError as error:
            timer = getattr(command, "timer", None)
            if isinstance(timer, Timer) and error.code != ErrorCode.NOT_COORDINATOR:
                self._start_timer(timer, RETRY_MS)
            return
        respond(decision.response)

    # -------------------------------------------------------------------------- what writes imply

    def add(self, command: AddPartitions) -> ErrorCode:
        """Make partitions part of a transaction, in front of what is appended next (P1)."""
        code = self.refusal(command.transactional_id)
        return code or self.decide_now(command.transactional_id, command).error

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        """Say of each partition whether it is part of the transaction."""
        code = self.refusal(command.transactional_id)
        if code:
            return dict.fromkeys(command.partitions, code)
        return dict(self.decide_now(command.transactional_id, command).partition_errors)

    # ------------------------------------------------------------------------------------- markers

    def _take_effect(self, effect: object) -> None:
        if isinstance(effect, TakeProducerId):
            self._catalogue.producer_ids.take(effect.producer_id)
        elif isinstance(effect, WriteMarkers):
            self._markers.begin(effect.transactional_id)
        else:
            raise NotImplementedError(effect)

    def markers_placed(self, key: str, places: Collection[TopicPartition]) -> None:
        """Note that partitions of a decided transaction have their marker, or need none."""
        self._machine(key).change(MarkersPlaced(key, places))

    def complete(self, key: str, transaction: Transaction) -> None:
        """Note that a transaction has all its markers; raises KafkaError."""
        shard = self._shards[self.partition_of(key)]
        self._execute(shard, key, MarkersWritten(key, *transaction.producer))
        self._release(key)

    # ---------------------------------------------------------------------------------------- time

    def _timer_expired(self, timer: Timer) -> TimerExpired:
        return TimerExpired(timer, self.fresh_producer_id)

    @property
    def fresh_producer_id(self) -> int:
        """A producer id that nobody has yet, or -1; it is given away by ``TakeProducerId``."""
        return self._catalogue.producer_ids.peek()

    def expire_ids(self) -> None:
        """Forget transactional ids that nobody has used for long."""
        pending = [each.transactional_id for each in self.all if each.state.is_idle]
        expiration = IdExpiration(self._host.config)

        def turn() -> None:
            for _ in range(min(IDS_PER_TURN, len(pending))):
                key = pending.pop()
                if not self.refusal(key):
                    self.decide_now(key, Expire(key, expiration.idle_ms(key)))
                    if self.transaction(key) is None:
                        self.clients.forget(key)
            if pending and not self._closed:
                self._host.loop.call_soon(turn)

        turn()

    def close(self) -> None:
        """Let no timer run any more: the broker ends."""
        self._markers.close()
        for queue in self._held.values():
            for held in queue:
                held.timer.cancel()
        self._held.clear()
        super().close()

    def _forget(self) -> None:
        self._markers.forget()
        held = [each for queue in self._held.values() for each in queue]
        self._held.clear()
        self.clients.clear()
        super()._forget()
        for each in held:
            each.timer.cancel()
            each.then()
