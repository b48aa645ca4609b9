"""Runs the decisions of a coordinator: append, wait until durable, apply, effects, answer.

Rules of this file:

* One state machine for each partition of the internal topic; a key (group, transactional id)
  belongs to the partition that Kafka's hash of it names.
* Nothing of a decision shows before its records are durable. Commands for the same key wait in its
  lane meanwhile, in order; decisions for different keys share one group of the journal.
* What does not become durable leaves no trace: an append is refused before the state has changed,
  and a disk that fails stops the process (D9). So does a mistake in taking in what is durable, for
  the state is not what the log says then; one in deciding only fails its command.
* At start every record of the topic goes through the same ``apply`` as in live traffic: for a
  moment before clients come, and if that is not enough in the background, while the keys of the
  partitions that are not read yet are answered COORDINATOR_LOAD_IN_PROGRESS.
* A decision that takes long (``Decision.steps``) has its lane for itself from its first step until
  its last record is applied, and the loop for one slice at a time. It is one batch like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.api.storage_errors import coordinator_error_of
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.coordination.shard import Lane, Machine, Refuse, Respond, Shard, Waiting
from barnabas.broker.runtime import failpoints
from barnabas.broker.runtime.turns import next_turn
from barnabas.coordinator.decision import (
    NO_PRODUCER_ID,
    Answer,
    Cancel,
    Decision,
    Effect,
    LongDecision,
    Now,
    Schedule,
    Timer,
    decode_record,
)
from barnabas.protocol.errors import ErrorCode, KafkaError, Malformed
from barnabas.protocol.records import (
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    encode_batch,
    encode_record,
    encode_single,
    iterate_records,
    read_marker,
    seal,
    sole_record,
)
from barnabas.protocol.records import Record as LogRecord
from barnabas.storage.batch_contents import DECOMPRESSED_BYTES_MAX
from barnabas.storage.errors import Corrupt, Refused
from barnabas.storage.partition_log import Appended, PartitionLog

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.clock import Timer as ClockTimer
    from barnabas.broker.topics.catalogue import Catalogue
    from barnabas.broker.topics.topic import Topic

logger = logging.getLogger(__name__)

UNREADABLE: Final = (KafkaError, Malformed, Corrupt, CorruptBatch, InvalidBatch, ValueError)
"""What comes of a log whose content makes no sense; an error of the disk is none of these."""

RETRY_MS: Final = 1000
"""A timer whose records cannot be written (the disk is full) comes again after this time."""

LOAD_BEFORE_READY_MS: Final = 200
LOAD_TURN_MS: Final = 5
"""How long the loop is held for replaying: before clients come, and in one turn after that."""

_DONE: Final = object()

RECORDS_PER_SLICE = 250
"""Records encoded, applied or replayed before the loop may get a turn: a few milliseconds' work."""


class Coordination:
    """One kind of coordinator: its topic, its machines, its timers, its parked answers."""

    def __init__(
        self,
        topic_name: str,
        make_machine: Callable[[], Machine],
        timer_command: Callable[[Timer], Any],
        *,
        catalogue: Catalogue,
        clock: Clock,
        after: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
        on_fatal: Callable[[BaseException], None],
        batch_max_bytes: int,
        latest_counts: bool = False,
    ) -> None:
        """``timer_command`` makes the command a timer comes back as.

        ``latest_counts``: a record says all there is of its key, so at a start only the last one of
        each is read. A short transaction leaves four.
        ``batch_max_bytes``: what one decision may write; the journal takes no more in one piece.
        ``after`` runs behind what a timer caused: answers leave then.
        """
        self.topic_name = topic_name
        self._make_machine = make_machine
        self._timer_command = timer_command
        self._catalogue = catalogue
        self._clock = clock
        self._after = after
        self._spawn = spawn
        self._on_fatal = on_fatal
        self._batch_max_bytes = batch_max_bytes
        self._latest_counts = latest_counts
        self._topic: Topic | None = None
        self._shards: list[Shard] = []
        self._timers: dict[Timer, ClockTimer] = {}
        self._expired_timers: dict[Timer, object] = {}
        """Commands of timers that wait in their lane."""
        self._parked: dict[int, Waiting] = {}
        self._last_ticket = 0
        self._closed = False
        self.replayed = asyncio.Event()
        """Whether a start has nothing left to read: what is not loaded then never will be."""
        self.partitions_replayed = 0
        self.records_replayed = 0

    # --------------------------------------------------------------------------------------- start

    def open(self) -> None:
        """Replay the topic, if there is one; call it before clients come."""
        topic = self._catalogue.topic(self.topic_name)
        if topic is None:
            self.replayed.set()
            return
        self._topic = topic
        self._shards = [
            Shard(partition.log, self._make_machine()) for partition in topic.partitions
        ]
        self.replayed.clear()
        self.partitions_replayed = self.records_replayed = 0
        loading = self._load()
        if self._goes_on_after(LOAD_BEFORE_READY_MS, loading):
            self._spawn(self._load_the_rest(topic, loading), f"load {self.topic_name}")
        else:
            self.replayed.set()

    async def _load_the_rest(self, topic: Topic, loading: Iterator[None]) -> None:
        logger.info("loading %s", self.describe_replay())
        while self._topic is topic and self._goes_on_after(LOAD_TURN_MS, loading):  # noqa: ASYNC110
            await asyncio.sleep(0)
        self.replayed.set()
        logger.info("loaded topic=%s records=%d", self.topic_name, self.records_replayed)

    def describe_replay(self) -> str:
        """How far a start has come with the topic."""
        done = f"{self.partitions_replayed} of {len(self._shards)} partitions"
        return f"{self.topic_name}: {done}, {self.records_replayed} records replayed"

    @property
    def unreadable(self) -> list[str]:
        """The partitions that could not be loaded: their keys are refused until the next start."""
        if not self.replayed.is_set():
            return []
        logs = [shard.log for shard in self._shards if not shard.is_loaded]
        return [f"{log.topic}-{log.partition}" for log in logs]

    def _goes_on_after(self, turn_ms: int, loading: Iterator[None]) -> bool:
        """Load for a while; False once everything is loaded."""
        end = self._clock.monotonic() + turn_ms / 1000
        return any(self._clock.monotonic() >= end for _ in loading)

    def _load(self) -> Iterator[None]:
        """Replay one partition after the other; stops after every batch.

        What cannot be read is never half there: its keys are refused until somebody has looked
        into it, for state that is forgotten means zombies that are not fenced (D8).
        """
        for shard in self._shards:
            try:
                yield from self._replay(shard)
            except UNREADABLE as error:
                logger.error("cannot be loaded log=%s reason=%s", shard.log, error)  # noqa: TRY400
                if isinstance(error, Corrupt):
                    shard.log.suspect(shard.log.log_start_offset, error)
                shard.machine = self._make_machine()
            else:
                shard.is_loaded = True
                self._take_effects(shard.machine.begin(self._now()))
            self.partitions_replayed += 1

    def _replay(self, shard: Shard) -> Iterator[None]:
        """Apply what the partition holds. Waits for the disk."""
        log = shard.log
        log.cleaning.walkers += 1
        try:
            yield from self._replay_log(shard, log)
        finally:
            log.cleaning.walkers -= 1

    def _replay_log(self, shard: Shard, log: PartitionLog) -> Iterator[None]:
        latest: dict[bytes, LogRecord] = {}
        for segment in log.segments:
            for _, header, batch in segment.scan_checked(0):
                if header.next_offset <= log.log_start_offset:
                    continue
                if header.is_control:
                    marker = read_marker(batch)
                    if marker is not None:
                        yield from (
                            shard.machine.end_transaction(header.producer_id, commit=marker.commit)
                            or ()
                        )
                    continue
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                sole = sole_record(header, batch)
                records: Iterable[LogRecord] = (
                    (sole,)
                    if sole is not None
                    else iterate_records(batch, limit_bytes=DECOMPRESSED_BYTES_MAX)
                )
                for number, stored in enumerate(records, start=1):
                    if number % RECORDS_PER_SLICE == 0:
                        yield
                    if self._latest_counts and stored.key is not None:
                        latest[stored.key] = stored
                    else:
                        self._replay_record(shard, stored, producer_id)
                yield
        for stored in latest.values():
            self._replay_record(shard, stored, NO_PRODUCER_ID)
            yield

    def _replay_record(self, shard: Shard, stored: LogRecord, producer_id: int) -> None:
        if stored.key is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"{shard.log} offset {stored.offset} has no key"
            )
        try:
            record = decode_record(self.topic_name, stored.key, stored.value, producer_id)
            if record is not None:
                shard.machine.apply(record, stored.offset)
        except (KafkaError, Malformed, ValueError) as error:
            if not self._set_aside(shard, stored.key):
                raise
            logger.warning(
                "record makes no sense, its key is refused log=%s offset=%d reason=%s",
                shard.log,
                stored.offset,
                error,
            )
            return
        if record is None:
            logger.warning(
                "record of unknown kind skipped log=%s offset=%d", shard.log, stored.offset
            )
            return
        self.records_replayed += 1

    def _set_aside(self, shard: Shard, key: bytes) -> bool:  # noqa: ARG002
        """Go on without what ``key`` stands for; False where that would harm others."""
        return False

    # ------------------------------------------------------------------------------------ requests

    def is_coordinator(self) -> bool:
        """Whether keys are served here: the internal topic exists, and is the one replayed."""
        topic = self._catalogue.topic(self.topic_name)
        if topic is not self._topic:
            self._forget()
            if topic is not None and not any(each.log.next_offset for each in topic.partitions):
                self.open()  # Made just now.
        return self._topic is not None

    def refusal(self, key: str) -> ErrorCode:
        """Why commands for ``key`` cannot be taken now; NONE if they can."""
        if not self.is_coordinator():
            return ErrorCode.NOT_COORDINATOR
        if not self._shards[self.partition_of(key)].is_loaded:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    @property
    def is_loading(self) -> bool:
        """Whether some partition is not replayed yet."""
        return not all(shard.is_loaded for shard in self._shards)

    async def ensure_topic(self, partition_count: int, configs: dict[str, str]) -> None:
        """Make the internal topic unless it is there; raises KafkaError."""
        if self._catalogue.topic(self.topic_name) is None:
            try:
                await self._catalogue.create_topic(self.topic_name, partition_count, configs)
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

    def close(self) -> None:
        """Let no timer run any more: the broker ends."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _forget(self) -> None:
        """Drop everything: the topic was deleted, and its groups with it."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._expired_timers.clear()
        waiting = list(self._parked.values())
        self._parked.clear()
        shards = self._shards
        for shard in shards:
            shard.is_gone = True
            waiting += [each for lane in shard.lanes.values() for each in lane.waiting]
            shard.lanes.clear()
        self._shards = []
        self._topic = None
        for each in waiting:
            self._refuse(each, ErrorCode.NOT_COORDINATOR)
        for shard in shards:
            shard.release()

    def partition_of(self, key: str) -> int:
        """The partition whose machine knows ``key``."""
        return java_hash(key) % len(self._shards)

    def machine_of(self, key: str) -> Machine:
        """The machine that knows ``key``, to read from."""
        return self._shards[self.partition_of(key)].machine

    @property
    def machines(self) -> list[Machine]:
        """All machines, to read from."""
        return [shard.machine for shard in self._shards]

    def new_ticket(self) -> int:
        """A number for a command whose answer may have to wait."""
        self._last_ticket += 1
        return self._last_ticket

    def submit(
        self,
        key: str,
        command: object,
        respond: Respond,
        refuse: Refuse | None = None,
    ) -> None:
        """Decide ``command`` when its turn has come; ``respond`` gets the response, once.

        Ask ``refusal`` first.
        ``refuse`` makes the response to an error of the log. Without it nobody waits for one.
        """
        self._submit(self._shards[self.partition_of(key)], key, Waiting(command, respond, refuse))

    def must_wait(self, key: str, command: object) -> bool:
        """Whether a command would wait for others of its key, were it submitted now."""
        return self._shards[self.partition_of(key)].must_wait(key, command)

    def _submit(self, shard: Shard, key: str, waiting: Waiting) -> None:
        if shard.is_gone:
            self._refuse(waiting, ErrorCode.NOT_COORDINATOR)
            return
        lane = shard.lane_of_waiting(key, waiting.command)
        if lane is None:
            self._run(shard, key, waiting)
        else:
            lane.waiting.append(waiting)

    def _run(self, shard: Shard, key: str, waiting: Waiting) -> None:
        """Decide, and either finish at once or when the records are durable."""
        if shard.endings:
            shard.held.append(partial(self._submit, shard, key, waiting))
            return
        if self._is_overtaken(waiting.command):
            return
        try:
            decision, appended = self._decide(shard, key, waiting.command)
        except KafkaError as error:
            self._refuse(waiting, error.code)
            return
        if appended is None:
            if decision.steps is None:
                self._finish(shard, decision, 0, waiting)
                return
            lane = shard.enter_lane(key, waiting.command)
            running = self._run_long(shard, key, lane, decision.steps, waiting)
            self._spawn(running, f"decide {self.topic_name}")
            return
        lane = shard.enter_lane(key, waiting.command)
        assert appended.durable is not None

        def durable() -> None:
            if shard.is_gone:
                self._refuse(waiting, ErrorCode.NOT_COORDINATOR)
                return
            lane.in_flight -= 1
            if self._finish(shard, decision, appended.base_offset, waiting):
                self._go_on(shard, key, lane)

        appended.durable.add_waiter(durable)

    async def _run_long(
        self,
        shard: Shard,
        key: str,
        lane: Lane,
        steps: Generator[None, None, LongDecision],
        waiting: Waiting,
    ) -> None:
        """Decide, write, apply and answer in slices. The lane is left when all that is done."""
        base_offset = 0
        try:
            decision = await self._decide_long(shard, key, steps)
            batch = await self._batch_in_slices(shard, key, decision)
            if batch is not None:
                appended = self._append(shard, key, waiting.command, batch)
                await self._until_durable(shard, appended)
                base_offset = appended.base_offset
        except KafkaError as error:
            self._refuse(waiting, error.code)
        else:
            if not await self._finish_long(shard, decision, base_offset, waiting):
                return
        if not shard.is_gone:
            lane.in_flight -= 1
            self._go_on(shard, key, lane)
        self._after()

    async def _decide_long(
        self, shard: Shard, key: str, steps: Generator[None, None, LongDecision]
    ) -> LongDecision:
        """Take all steps; raises KafkaError, and then nothing has changed."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                decision: LongDecision = done.value
                return decision
            except Exception as error:  # As in _decide.
                logger.exception("command failed topic=%s key=%s", self.topic_name, key)
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
            await self._let_others_run(shard)

    async def _let_others_run(self, shard: Shard) -> None:
        """Raises KafkaError if the topic is gone after that."""
        await next_turn()
        while shard.endings and not shard.is_gone:
            released = asyncio.Event()
            shard.held.append(released.set)
            await released.wait()
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    async def _batch_in_slices(
        self, shard: Shard, key: str, decision: LongDecision
    ) -> memoryview | None:
        """The records as one batch, if there are any; raises KafkaError once it is too large."""
        now_ms = self._clock.now_ms()
        encoded: list[bytes] = []
        size = 0
        for number, record in enumerate(decision.records):
            data = encode_record(LogRecord(number, now_ms, *record.encode(), ()), 0, now_ms)
            encoded.append(data)
            size += len(data)
            if number % RECORDS_PER_SLICE == 0:
                self._refuse_too_large(key, size)
                await self._let_others_run(shard)
        self._refuse_too_large(key, size)
        count = len(encoded)
        if not count:
            return None
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            partition_leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=count,
        )
        return memoryview(seal(header, b"".join(encoded)))

    async def _until_durable(self, shard: Shard, appended: Appended) -> None:
        """Wait for the disk; raises KafkaError if the topic is gone then."""
        assert appended.durable is not None
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not durable.done():  # Cancelled: the broker stops.
                durable.set_result(None)

        appended.durable.add_waiter(wake)
        await durable
        if shard.is_gone:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    async def _finish_long(
        self, shard: Shard, decision: LongDecision, base_offset: int, waiting: Waiting
    ) -> bool:
        """As ``_finish``; nobody reads the key while only a part of it is applied."""
        for number, record in enumerate(decision.records):
            try:
                shard.machine.apply(record, base_offset + number)
            except Exception as error:  # noqa: BLE001  As in _finish.
                self._on_fatal(error)
                return False
            if number % RECORDS_PER_SLICE == 0:
                try:
                    await self._let_others_run(shard)
                except KafkaError as error:
                    self._refuse(waiting, error.code)
                    return True
        rest = Decision(decision.response, effects=decision.effects)
        return self._finish(shard, rest, base_offset, waiting)

    def end_transaction(self, shard: Shard, producer_id: int, *, commit: bool) -> None:
        """Take in a marker that is durable: before anyone hears of it, as far as can be seen."""
        steps = shard.machine.end_transaction(producer_id, commit=commit)
        if steps is None:
            return
        shard.endings.append(steps)
        if len(shard.endings) == 1:
            self._spawn(self._take_in_markers(shard), f"take in markers of {shard.log}")

    async def _take_in_markers(self, shard: Shard) -> None:
        """Take in large markers in slices, and let go on what waits for that."""
        try:
            while shard.endings and not shard.is_gone:
                if next(shard.endings[0], _DONE) is _DONE:
                    shard.endings.popleft()
                await next_turn()
        except Exception as error:  # noqa: BLE001  As in _finish.
            self._on_fatal(error)
            return
        shard.release()
        self._after()

    def _decide(
        self,
        shard: Shard,
        key: str,
        command: Any,  # noqa: ANN401
    ) -> tuple[Decision, Appended | None]:
        """Decide and append the records; raises KafkaError, and then nothing has changed."""
        try:
            decision = shard.machine.decide(command, self._now())
            batch = self._batch(decision) if decision.records else None
        except Exception as error:  # A bug with one key must not stop the others.
            logger.exception("command failed topic=%s key=%s", self.topic_name, key)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        if batch is None:
            return decision, None
        return decision, self._append(shard, key, command, batch)

    def _refuse_too_large(self, key: str, size: int) -> None:
        """Raise what Apache Kafka answers where its coordinator's batch is too large."""
        if size > self._batch_max_bytes:
            logger.warning(
                "decision too large topic=%s key=%s bytes=%d", self.topic_name, key, size
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _append(
        self,
        shard: Shard,
        key: str,
        command: Any,  # noqa: ANN401
        batch: memoryview,
    ) -> Appended:
        """Append a decision's batch; raises KafkaError, and then nothing has changed."""
        self._refuse_too_large(key, len(batch))
        # What must be true at the very moment of the append, with nothing in between (P1).
        admit: Callable[[], ErrorCode] | None = getattr(command, "admit", None)
        if admit is not None and (code := admit()):
            raise KafkaError(code)
        try:
            appended = shard.log.append_records(batch)
        except Refused as refused:
            raise KafkaError(coordinator_error_of(refused)) from refused
        if failpoints.ARMED is not None:
            failpoints.ARMED.reached(type(command).__name__, self._catalogue.journal)
        return appended

    def _go_on(self, shard: Shard, key: str, lane: Lane) -> None:
        """Run what waits in a lane, as far as it may."""
        if not lane.in_flight:
            lane.shared = True
        while lane.waiting and lane.may_join(lane.waiting[0].command):
            self._run(shard, key, lane.waiting.popleft())
        if not lane.in_flight and not lane.waiting and shard.lanes.get(key) is lane:
            del shard.lanes[key]

    def _finish(self, shard: Shard, decision: Decision, base_offset: int, waiting: Waiting) -> bool:
        """Take in what is durable, then answer; False when the broker cannot go on."""
        try:
            self._take_in(shard, decision, base_offset, waiting)
        except Exception as error:  # noqa: BLE001  What is in memory is right no more (D9).
            self._on_fatal(error)
            return False
        if decision.response is not None:
            self._respond(waiting, decision.response)
        return True

    def _take_in(
        self, shard: Shard, decision: Decision, base_offset: int, waiting: Waiting
    ) -> None:
        """Apply records and changes, park an answer that has to wait, take the effects."""
        for number, record in enumerate(decision.records):
            shard.machine.apply(record, base_offset + number)
        for change in decision.changes:
            shard.machine.change(change)
        if decision.response is None:
            ticket = getattr(waiting.command, "ticket", None)
            if ticket is not None:
                self._parked[ticket] = waiting
        self._take_effects(decision.effects)

    def _respond(self, waiting: Waiting, response: object) -> None:
        try:
            waiting.respond(response)
        except Exception:  # What was decided is done, and others wait behind this answer.
            logger.exception("answer failed topic=%s", self.topic_name)

    def _refuse(self, waiting: Waiting, code: ErrorCode) -> None:
        """Answer with an error; a timer comes again, unless its key is not known here any more."""
        if waiting.refuse is not None:
            self._respond(waiting, waiting.refuse(code))
            return
        timer = getattr(waiting.command, "timer", None)
        if isinstance(timer, Timer) and code != ErrorCode.NOT_COORDINATOR:
            self._start_timer(timer, RETRY_MS)

    def _take_effects(self, effects: tuple[Effect, ...]) -> None:
        if not effects:
            return
        now = self._now()
        for effect in effects:
            if isinstance(effect, Schedule):
                self._start_timer(effect.timer, max(0, effect.at_tick_ms - now.tick_ms))
            elif isinstance(effect, Cancel):
                self._stop_timer(effect.timer)
            elif isinstance(effect, Answer):
                self._answer(effect)
            else:
                self._take_effect(effect)

    def _take_effect(self, effect: object) -> None:
        """Do what only this kind of coordinator can."""
        raise NotImplementedError(effect)

    def _answer(self, answer: Answer) -> None:
        waiting = self._parked.pop(answer.ticket, None)
        assert waiting is not None, answer
        self._respond(waiting, answer.response)

    def _start_timer(self, timer: Timer, delay_ms: int) -> None:
        self._stop_timer(timer)
        if self._closed:
            return
        self._timers[timer] = self._clock.call_later(delay_ms, self._expired, timer)

    def _stop_timer(self, timer: Timer) -> None:
        self._expired_timers.pop(timer, None)
        running = self._timers.pop(timer, None)
        if running is not None:
            running.cancel()

    def _expired(self, timer: Timer) -> None:
        del self._timers[timer]
        command = self._timer_command(timer)
        self._expired_timers[timer] = command
        self.submit(timer.key, command, _nobody_waits)
        self._after()

    def _is_overtaken(self, command: object) -> bool:
        """Whether a timer was scheduled again or cancelled while its command waited in the lane.

        A member whose session ran out while its answer was on its way to the disk is not gone.
        """
        timer = getattr(command, "timer", None)
        if not isinstance(timer, Timer):
            return False
        if self._expired_timers.get(timer) is not command:
            return True
        del self._expired_timers[timer]
        return False

    def _batch(self, decision: Decision) -> memoryview:
        """The records of a decision as one batch: all of them, or none."""
        now_ms = self._clock.now_ms()
        records, producer = decision.records, decision.producer
        if len(records) == 1 and producer is None:
            key, value = records[0].encode()
            return memoryview(encode_single(now_ms, key, value))
        encoded = [
            LogRecord(number, now_ms, *record.encode(), ()) for number, record in enumerate(records)
        ]
        if producer is None:
            return memoryview(encode_batch(encoded))
        # Kafka's coordinator numbers what it writes for a producer from 0 each time (measured).
        batch = encode_batch(
            encoded,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        return memoryview(batch)

    def _now(self) -> Now:
        return Now(self._clock.now_ms(), int(self._clock.monotonic() * 1000))


def _nobody_waits(_response: object) -> None:
    """What a timer's command answers is heard by nobody."""
