"""The transaction coordinator: records, markers and completion in one commit group.

Rules of this file:

* A decision applies when it is appended (``runner.py``), and its consequences are appended after
  it: no data without the record that its partition was added (P1), no marker without its decision,
  no completion without its markers (D5). Nothing waits between them, and a transaction over any
  number of partitions ends with one sync. If other brokers lead some of them, their markers leave
  when the decision is durable, and completion follows their responses.
* EndTxn goes one way: ``submit``, the runner, the marker phase (``marker_phase.py``), completion,
  waiting requests (``transition_waits.py``); then the response, when all of it is durable. It waits
  for no other broker (R4).
* A request that Apache Kafka refuses with CONCURRENT_TRANSACTIONS waits here for the transition in
  flight.
* A response without a record of its own uses the state in memory, which may be old in a broker that
  was paused: in a cluster the partition's row is read first (``leadership_check.py``).
* The catalogue decides that a partition does not exist, and it is complete before this starts: a
  partition that is merely not ready is never mistaken for a deleted one (KAFKA-20734).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.api.waiting import PendingResponse, respond_to
from barnabas.broker.cluster.coordinating.remote_markers import RemoteMarkers
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.coordination.coordinator_log import CoordinatorLog, TopicSettings
from barnabas.broker.coordination.id_expiration import IdExpiration
from barnabas.broker.coordination.marker_phase import MarkerPhase, TransitionWaits
from barnabas.broker.coordination.pipelines import Pipelines
from barnabas.broker.coordination.runner import Following, Runner
from barnabas.broker.coordination.shard import Shard
from barnabas.broker.coordination.transaction_events import (
    Client,
    TransactionClients,
    TransactionCounts,
    TransactionEvents,
)
from barnabas.broker.metadata.producer_ids import KEYED_FROM
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.broker.runtime.turns import run_in_turns
from barnabas.coordinator.decision import Effect, Timer
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    Expire,
    Outcome,
    TakeProducerId,
    TimerExpired,
    VerifyPartitions,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import TopicPartition, Transaction
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.records import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import RequestContext
    from barnabas.broker.cluster.coordinating.leadership_check import LeadershipCheck
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.coordination.markers import MarkerWriter
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.decision import Decision
    from barnabas.coordinator.transactions.transaction_table import TransactionTable
    from barnabas.storage.store.log_store import LogStore

Make: TypeAlias = Callable[[], Command | Outcome]
"""Function that returns a command or, if nothing has to be decided, the outcome."""

_NO_TIME: Final = float("-inf")
"""The deadline of a request that does not wait."""
_NOT_COORDINATOR: Final = Outcome(ErrorCode.NOT_COORDINATOR)
TRANSACTIONAL_ID_MAX_BYTES: Final = 32_767
"""Maximum length of a string in the records of ``__transaction_state``."""


class Transactions:
    """The transaction coordinator: its log and runner."""

    def __init__(
        self,
        host: Host,
        catalogue: Catalogue,
        logs: LogStore,
        markers: MarkerWriter,
        view: ClusterView | None = None,
        peers: Peers | None = None,
    ) -> None:
        """``view`` and ``peers`` of the cluster, or None for a single broker."""
        self._host = host
        self._catalogue = catalogue
        self._logs = logs
        self.clients = TransactionClients()
        self.counts = TransactionCounts()
        self.pipelines = Pipelines()
        self.events = TransactionEvents(host.clock.now_ms())
        self.leadership_check: LeadershipCheck | None = None
        """Checks whether an id's partition is still led here, or None for a single broker."""
        self._asker: Client | None = None
        """The client whose command is being decided, or None."""
        self._waits = TransitionWaits(host, self.counts)
        self._producer_ids: dict[int, str] = {}
        """Transactional ids by producer id."""
        self.log: CoordinatorLog[TransactionShard] = CoordinatorLog(
            TRANSACTION_STATE,
            lambda: TransactionShard(host.config.transaction_version, self._producer_ids),
            _topic_settings,
            host,
            catalogue,
            on_loaded=self._loaded,
            on_lost=self._lost,
            latest_only=True,
        )
        self._runner = Runner(
            self.log,
            host,
            self._timer_expired,
            on_appended=self._moves,
            take_effect=self._take_effect,
        )
        self.remote_markers: RemoteMarkers[Shard[TransactionShard]] | None = None
        """The markers that other brokers have to write."""
        if view is not None and peers is not None:
            self.remote_markers = RemoteMarkers(host, catalogue, view, peers, self.counts)
        self._markers = MarkerPhase(
            self.log,
            self._runner,
            markers,
            host,
            self.counts,
            self._waits.release,
            self.remote_markers,
        )
        self._closed = False
        self.held_bytes = 0
        """Bytes of records of requests that wait in ``when_decided``; their caller counts them."""

    def _loaded(self, shard: Shard[TransactionShard], effects: tuple[Effect, ...]) -> None:
        self._runner.take_effects(shard, effects)

    def _lost(self, shard: Shard[TransactionShard]) -> None:
        self._markers.forget(shard)
        self._runner.forget(shard)
        for key in shard.machine.transactions:
            self.clients.forget(key)
        self.pipelines.forget(shard.owns)
        self.events.forget(shard.owns, self._host.clock.now_ms())
        self._waits.release_lost(shard.owns)

    def gain(self, index: int) -> None:
        """Coordinate the IDs of a newly led partition; see ``CoordinatorLog``."""
        self.events.restart(self._host.clock.now_ms())
        self.log.gain(index)

    def lose(self, index: int) -> None:
        """Forget the IDs of a partition that this broker no longer leads."""
        self.log.lose(index)

    def close(self) -> None:
        """Cancel all timers when the broker ends."""
        self._closed = True
        self._markers.close()
        self._waits.close()
        self._runner.close()

    @property
    def coordinator_epoch(self) -> int:
        """Return the epoch of the coordinator: the leader epoch of its partition's log (R6).

        It increases with every start, and exceeds those in the markers of all loaded logs (D6).
        """
        latest = self.log.highest_epoch
        return self._logs.leader_epoch if latest == NO_LEADER_EPOCH else latest

    async def ensure(self) -> None:
        """Create ``__transaction_state`` unless it exists; raises KafkaError."""
        await self.log.ensure()

    # ------------------------------------------------------------------------------------- reading

    def transaction(self, transactional_id: str) -> Transaction | None:
        """Return the state of a transactional id here, or None; call ``refusal`` first."""
        shard = self.log.shard_here(transactional_id)
        return None if shard is None else shard.machine.transactions.get(transactional_id)

    def transaction_of_producer(self, producer_id: int) -> Transaction | None:
        """Return the state of the transactional id whose producer has this producer id, or None."""
        transactional_id = self._producer_ids.get(producer_id)
        found = None if transactional_id is None else self.transaction(transactional_id)
        return found if found is not None and found.producer_id == producer_id else None

    def awaiting_markers(self, transactional_id: str) -> list[TopicPartition]:
        """Return the partitions with a pending marker of a decided transaction."""
        return self.log.shard_of(transactional_id).machine.awaiting_markers(transactional_id)

    def owed_markers(self, transactional_id: str) -> list[TopicPartition]:
        """Return the partitions with a pending marker as of now, in no order: for an iteration in
        steps.
        """
        return self.log.shard_of(transactional_id).machine.owed_markers_of(transactional_id)

    @property
    def all(self) -> list[Transaction]:
        """Every transactional ID that this broker serves."""
        return [each for machine in self.machines for each in machine.transactions.values()]

    @property
    def machines(self) -> list[TransactionShard]:
        """Machines of all served partitions, for reading."""
        return self.log.machines

    def configure(self, config: BrokerConfig) -> None:
        """Use changed settings from the next command on."""
        for machine in self.machines:
            machine.transaction_version = config.transaction_version

    @property
    def refusals(self) -> int:
        """Number of refused batches of these logs."""
        return self.log.refusals

    async def durable(self, refusals: int | None = None) -> None:
        """Wait until all appended batches are durable (C14).

        Raises KafkaError if it was refused. A caller that has let others run since its first read
        passes the number of ``refusals`` at that time: a batch that was refused meanwhile does not
        exist any more.
        """
        await self.log.durable(ErrorCode.NOT_COORDINATOR, refusals)

    # ------------------------------------------------------------------------------------ commands

    def is_coordinator(self) -> bool:
        """Whether ``__transaction_state`` exists, so that this broker may serve IDs."""
        return self.log.is_coordinator()

    @property
    def is_loading(self) -> bool:
        """Whether transactional IDs of this broker are not loaded yet."""
        return self.log.is_loading

    def refusal(self, key: str) -> ErrorCode:
        """Return the error code for commands on a transactional ID, or NONE."""
        found = self._serving(key)
        return found if isinstance(found, ErrorCode) else ErrorCode.NONE

    def _serving(self, key: str) -> Shard[TransactionShard] | ErrorCode:
        """Return the partition that takes commands on a transactional id, or their error code."""
        if len(key) > TRANSACTIONAL_ID_MAX_BYTES // 4 and (
            len(key.encode()) > TRANSACTIONAL_ID_MAX_BYTES
        ):
            return ErrorCode.INVALID_REQUEST
        found = self.log.serving(key)
        if (
            self.log.replay.has_set_aside
            and not isinstance(found, ErrorCode)
            and key in found.machine.quarantined
        ):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return found

    def submit(
        self,
        make: Make,
        respond: Callable[[Outcome], None],
        *,
        key: str,
        context: RequestContext | None = None,
        waits: bool = True,
    ) -> None:
        """Decide a client's command and respond when that is durable; may wait for a transition.

        ``make`` builds the command each time it is decided: it may contain a fresh producer id, and
        it checks the client's permissions, which may have changed while the request waited.
        ``context`` is that of the client that uses the id, if there is one. Without ``waits`` the
        outcome is CONCURRENT_TRANSACTIONS instead of a wait for the transition in flight.
        """
        self._submit(key, make, respond, context, None if waits else _NO_TIME)

    async def outcome_of(self, make: Make, *, key: str, context: RequestContext) -> Outcome:
        """Submit a command like ``submit``, and wait for its outcome."""
        found: asyncio.Future[Outcome] = self._host.loop.create_future()

        def respond(outcome: Outcome) -> None:
            if not found.done():  # The handler may have ended.
                found.set_result(outcome)

        self.submit(make, respond, key=key, context=context)
        return await found

    def _noted(
        self,
        shard: Shard[TransactionShard],
        key: str,
        context: RequestContext,
        respond: Callable[[Outcome], None],
        outcome: Outcome,
    ) -> None:
        """Register the client of a transactional id, unless the decision failed."""
        if not (outcome.error or shard.is_gone) and key in shard.machine.transactions:
            self.clients.used(key, context)
        respond(outcome)

    def used(self, key: str, context: RequestContext) -> None:
        """Record the last client of a transactional ID that this broker serves."""
        if self.transaction(key) is not None:
            self.clients.used(key, context)

    def _submit(
        self,
        key: str,
        make: Make,
        respond: Callable[[Outcome], None],
        context: RequestContext | None,
        deadline_ms: float | None,
    ) -> None:
        shard = self._serving(key)
        if isinstance(shard, ErrorCode):
            respond_to(respond, Outcome(shard), self.log.topic_name)
            return
        outcome, is_recorded = self._decide(shard, key, make(), context)
        wait_ms = self._host.config.transaction_wait_ms
        if outcome.error == ErrorCode.CONCURRENT_TRANSACTIONS and wait_ms:
            now_ms = self._host.clock.monotonic() * 1000
            if deadline_ms is None:
                deadline_ms = now_ms + wait_ms
            if not _is_deciding(shard, key):
                # The command itself ended what was open, and that is done: decide it again.
                outcome, _ = self._decide(shard, key, make(), context)
            elif now_ms < deadline_ms - 1:
                again = partial(self._submit, key, make, respond, context, deadline_ms)
                self.when_decided(key, again)
                return
        if context is not None and not outcome.error:
            respond = partial(self._noted, shard, key, context, respond)
        if is_recorded or self.leadership_check is None:
            self._answer(shard, respond, outcome)
            return
        checked = partial(self._answer_checked, shard, respond, outcome)
        self.leadership_check.check(shard.log.partition_id, checked)

    def _answer_checked(
        self,
        shard: Shard[TransactionShard],
        respond: Callable[[Outcome], None],
        outcome: Outcome,
        is_led: bool,  # noqa: FBT001  a callback's argument
    ) -> None:
        """Respond to a decision without a record, if this broker is sure to be coordinator."""
        self._answer(shard, respond, outcome if is_led else _NOT_COORDINATOR)

    def _answer(
        self,
        shard: Shard[TransactionShard],
        respond: Callable[[Outcome], None],
        outcome: Outcome,
    ) -> None:
        """Respond when the present content of the partition's log is durable.

        The content includes the state before the decision, the decision's record if it has one,
        and the markers and the completion that were appended with it. If a flush with any of it
        was refused, before this call or after, the log is closed and the response is an error.
        """
        pending = PendingResponse(respond, outcome, Outcome, self.log.topic_name)
        self.log.when_durable(shard, pending)

    def _decide(
        self,
        shard: Shard[TransactionShard],
        key: str,
        made: Command | Outcome,
        context: RequestContext | None,
    ) -> tuple[Outcome, bool]:
        """Decide a client's command; return the outcome, and whether a record contains it."""
        if isinstance(made, Outcome):
            return made, False
        if context is None:
            return self._run(shard, key, made)
        self._asker = self.clients.client_of(key, context)
        outcome, is_recorded = self._run(shard, key, made)
        self._asker = None
        if outcome.error == ErrorCode.PRODUCER_FENCED:
            self.was_fenced(key, context)
        return outcome, is_recorded

    def was_fenced(self, key: str, context: RequestContext) -> None:
        """Register that a client was fenced by another client of its transactional id."""
        transaction = None if self.refusal(key) else self.transaction(key)
        if transaction is not None:
            client = self.clients.client_of(key, context)
            self.events.refused(transaction, client, self._host.clock.now_ms())

    def _moves(self, known: TransactionTable, decision: Decision, command: Command) -> None:
        """Count and record a coming transition."""
        self.counts.moves(known, decision, command)
        after: Transaction | None = decision.records[-1].meaning
        if after is not None and after.state.is_decided:
            self.pipelines.decided(after)
        former = self.clients.of(command.transactional_id)
        now_ms = self._host.clock.now_ms()
        self.events.moves(known, decision, command, self._asker, former, now_ms)

    def is_deciding(self, key: str) -> bool:
        """Whether a decided transaction still waits for its markers."""
        shard = self.log.shard_here(key)
        return shard is not None and _is_deciding(shard, key)

    def when_decided(self, key: str, then: Callable[[], None]) -> None:
        """Call ``then`` when the transition in flight has ended, or when the maximum wait has."""
        self._waits.add(key, then)

    @property
    def requests_waiting(self) -> int:
        """Number of requests that wait for the end of a transaction."""
        return len(self._waits)

    def decide_now(self, key: str, command: Command) -> Outcome:
        """Decide at once; the result holds when the present content of the partition is durable."""
        shard = self.log.shard_here(key)
        if shard is None:
            return _NOT_COORDINATOR
        return self._run(shard, key, command)[0]

    def _run(
        self, shard: Shard[TransactionShard], key: str, command: Command
    ) -> tuple[Outcome, bool]:
        try:
            decision = self._runner.run(shard, key, command)
        except KafkaError as error:
            return Outcome(error.code), False
        outcome: Outcome | None = decision.response
        return outcome or Outcome(), bool(decision.records)

    # -------------------------------------------------------------------------- what writes imply

    def has_producer(self, transactional_id: str, producer_id: int) -> bool:
        """Return whether a transactional ID that this broker serves has this producer ID."""
        if self.refusal(transactional_id):
            return False
        transaction = self.transaction(transactional_id)
        return transaction is not None and transaction.producer_id == producer_id

    def refusal_outside(self, producer_id: int) -> ErrorCode:
        """Return the error of a batch outside of transactions with a producer id, or NONE.

        The producer id of a transactional id is for its transactions, and one that was not
        allocated yet may get a transactional id later. Those from KEYED_FROM on never do.
        """
        if producer_id in self._producer_ids:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        was_given = self._catalogue.producer_ids.was_given(producer_id)
        if not was_given and producer_id < KEYED_FROM:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        # Not ``is_loading``: a partition that cannot be read must not make all producers wait.
        return ErrorCode.NONE if self.log.replayed.is_set() else ErrorCode.NOT_ENOUGH_REPLICAS

    def add(self, command: AddPartitions) -> ErrorCode:
        """Make partitions part of a transaction, before the next append (P1)."""
        code = self.refusal(command.transactional_id)
        return code or self.decide_now(command.transactional_id, command).error

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it is part of the transaction."""
        code = self.refusal(command.transactional_id)
        if code:
            return dict.fromkeys(command.partitions, code)
        return dict(self.decide_now(command.transactional_id, command).partition_errors)

    # --------------------------------------------------------------------------- effects and timers

    def _take_effect(self, shard: Shard[TransactionShard], effect: Effect) -> Following | None:
        if isinstance(effect, WriteMarkers):
            return self._markers.begin(shard, effect.transactional_id)
        assert isinstance(effect, TakeProducerId), effect
        self._catalogue.producer_ids.take(effect.producer_id)
        return None

    def _timer_expired(self, timer: Timer) -> TimerExpired:
        return TimerExpired(timer, self.fresh_producer_id)

    @property
    def fresh_producer_id(self) -> int:
        """Unused producer ID, or -1; ``TakeProducerId`` assigns it."""
        return self._catalogue.producer_ids.peek()

    def expire_ids(self) -> None:
        """Delete transactional IDs after their idle time."""
        run_in_turns(self._host.loop, self._expire_steps())

    def _expire_steps(self) -> Iterator[None]:
        idle = [each.transactional_id for each in self.all if each.state.is_idle]
        expiration = IdExpiration(self._host.config)
        for key in idle:
            if self._closed:
                return
            if not self.refusal(key):
                self.decide_now(key, Expire(key, expiration.idle_ms(key)))
                if self.transaction(key) is None:
                    self.clients.forget(key)
            yield


def _is_deciding(shard: Shard[TransactionShard], key: str) -> bool:
    """Return whether a decided transaction still waits for its markers."""
    transaction = None if shard.is_gone else shard.machine.transactions.get(key)
    return transaction is not None and transaction.state.is_decided


def _topic_settings(config: BrokerConfig) -> TopicSettings:
    return TopicSettings(
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_segment_bytes,
        "uncompressed",
    )
