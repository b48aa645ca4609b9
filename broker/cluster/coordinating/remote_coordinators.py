"""Asks the coordinators of other brokers whether partitions are part of a transaction (R1, R7).

A leader to which a transaction's first batch comes, or its first offsets, asks the coordinator, if
that is another broker: up to version 11 of Produce (4 of TxnOffsetCommit) whether the partition was
added, from the next on to add it. The coordinator answers when what it says is durable.

Rules of this file:

* **One request is on its way to each broker.** What comes up meanwhile is sent with the next one,
  each transactional id once in a request, in the order in which it came. What may wait is bounded.
* **Guards are made for each request, in the turn in which it is sent,** and for no longer than its
  answer is acted on: what a marker drops is never used, and what is asked again has new ones.
* **A coordinator never holds a question.** It says CONCURRENT_TRANSACTIONS while a transaction is
  ending, and is asked again from here for ``barnabas.transaction.wait.ms``, as is one that says
  NOT_COORDINATOR, or that it is loading. Who the coordinator is, is asked anew each time.
* **Whoever asks is told once, in a turn of its own,** when his time is over at the latest, and has
  to act on it in that turn. Who has given up is told nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.coordination.runner import respond_to
from barnabas.broker.metadata.topic_names import TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.storage.log.producer_entry import NO_COORDINATOR_EPOCH

if TYPE_CHECKING:
    from barnabas.broker.cluster.coordinating.verification_guards import Guard, Guards, Log
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.view import ClusterView
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.coordinator.transactions.state import TopicPartition

logger = logging.getLogger(__name__)

VERSION: Final = 5
ANSWER_TIMEOUT_MS: Final = 10_000
"""After so long without an answer the connection is given up."""
PAUSE_FIRST_MS: Final = 2
PAUSE_MAX_MS: Final = 10
"""Between two questions about the same: at first, as the end is about to be durable, and at last.
An end takes two more flushes, so what a longer pause oversleeps is much of a transaction's time.
Apache Kafka waits 20 ms each time. One request at a time bounds what it costs."""

NO_WORD: Final = ErrorCode.NETWORK_EXCEPTION
"""In the place of an answer that did not come, or that may not be acted on."""

_NOT_NOW: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.NETWORK_EXCEPTION,
}
"""What says something of the two brokers, and nothing of the transaction."""
_OF_A_MOVE: Final = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""What is said while the coordinator's partition goes from one broker to another."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may wait for one coordinator, and what of it is asked at once."""

    questions_max: int = 1_000
    bytes_max: int = 4 * 1024 * 1024
    """Names of transactional ids and topics, roughly."""
    at_once_max: int = 200
    partitions_at_once_max: int = 2_000
    """One question may have more."""


class Question(NamedTuple):
    """What a coordinator is asked for one producer."""

    transactional_id: str
    producer_id: int
    epoch: int
    logs: Mapping[TopicPartition, Log]
    """The partitions, all led here."""
    adds: bool
    """Whether the partitions are to be added, or must have been."""

    @property
    def size_bytes(self) -> int:
        """Return how much it takes, roughly."""
        return 4 * len(self.transactional_id) + sum(len(each.topic) + 16 for each in self.logs)


class Answer:
    """The coordinator's word on each partition, to be acted on at once."""

    def __init__(
        self,
        question: Question,
        codes: Mapping[TopicPartition, ErrorCode],
        guarded: dict[TopicPartition, Guard],
        guards: Guards,
    ) -> None:
        self.question = question
        self._codes = codes
        self._guarded = guarded
        self._guards = guards

    def code(self, topic_partition: TopicPartition) -> ErrorCode:
        """Return what the coordinator has said."""
        return self._codes.get(topic_partition, NO_WORD)

    def refusal(self, topic_partition: TopicPartition, log: Log) -> ErrorCode:
        """Say why nothing may be appended to a log; NONE, once, if it is appended right now."""
        code = self.code(topic_partition)
        if code:
            return code
        guard = self._guarded.pop(topic_partition, None)
        if guard is None or not self._guards.take(guard, log):
            return NO_WORD
        question = self.question
        self._guards.note_verified(log, question.producer_id, question.transactional_id)
        return ErrorCode.NONE

    def keep(self, topic_partition: TopicPartition) -> Guard | None:
        """Take over the guard of a partition, to take or release it later; None: there is none."""
        return self._guarded.pop(topic_partition, None)

    def release(self) -> None:
        """Release what was not used."""
        for guard in self._guarded.values():
            self._guards.release(guard)
        self._guarded.clear()


class Asking:
    """Somebody who waits for an answer."""

    __slots__ = (
        "guarded",
        "is_over",
        "late",
        "node",
        "on_answer",
        "pause",
        "pause_ms",
        "question",
        "repeats_until_ms",
        "size_bytes",
    )

    def __init__(
        self, question: Question, on_answer: Callable[[Answer], None], repeats_until_ms: float
    ) -> None:
        self.question = question
        self.on_answer = on_answer
        self.repeats_until_ms = repeats_until_ms
        self.size_bytes = question.size_bytes
        self.guarded: dict[TopicPartition, Guard] = {}
        self.node: _Node | None = None
        """Whose coordinator it waits for now."""
        self.is_over = False
        self.late: Timer | None = None
        self.pause: Timer | None = None
        self.pause_ms = float(PAUSE_FIRST_MS)


class _Node:
    """A broker that is asked."""

    __slots__ = ("bytes", "is_asked", "node_id", "questions", "waiting")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.waiting: dict[Asking, None] = {}
        """In the order in which they came."""
        self.is_asked = False
        """Whether a request is on its way."""
        self.questions = 0
        """With those that are on their way."""
        self.bytes = 0


class RemoteCoordinators:
    """The coordinators of transactions that are not this broker."""

    def __init__(
        self,
        host: Host,
        view: ClusterView,
        partition_id_of: Callable[[str], int | None],
        peers: Peers,
        guards: Guards,
        bounds: Bounds | None = None,
    ) -> None:
        """``partition_id_of`` a transactional id: of its partition of ``__transaction_state``.

        None: there is no such topic, as far as is known here.
        """
        self.guards = guards
        self._host = host
        self._view = view
        self._partition_id_of = partition_id_of
        self._peers = peers
        self._bounds = bounds or Bounds()
        self._nodes: dict[int, _Node] = {}
        self._asking: set[Asking] = set()
        self._unheard: set[int] = set()
        """Brokers of which the log says that they do not answer."""

    def __len__(self) -> int:
        """Return how many wait for an answer."""
        return len(self._asking)

    # ------------------------------------------------------------------------------- who asks

    def ask(
        self, question: Question, on_answer: Callable[[Answer], None], *, wait_ms: float
    ) -> Asking:
        """Ask the coordinator of a transactional id; ``on_answer`` is called after this returned.

        ``wait_ms`` is the longest that whoever asks waits.
        """
        now_ms = self._host.clock.monotonic() * 1000
        asking = Asking(question, on_answer, now_ms + self._host.config.transaction_wait_ms)
        self._asking.add(asking)
        asking.late = self._host.clock.call_later(wait_ms, self._tell_alone, asking, NO_WORD)
        self._place(asking)
        return asking

    def give_up(self, asking: Asking) -> None:
        """Wait for no answer any more; no effect if there was one."""
        self._end(asking)

    def refusal_outside(self, log: Log, producer_id: int) -> ErrorCode:
        """Say why a producer may not write outside of transactions where others are forbidden to.

        Only of what the log knows, for which ids other coordinators serve is not known here: a
        producer that has had markers in the log, or has a transaction there, is one of theirs.
        """
        entry = log.producers.entry(producer_id)
        is_transactional = self.guards.knows(log, producer_id) or (
            entry is not None
            and (entry.is_in_transaction or entry.coordinator_epoch != NO_COORDINATOR_EPOCH)
        )
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if is_transactional else ErrorCode.NONE

    def close(self) -> None:
        """Ask nothing any more, and tell nobody anything: the broker ends."""
        for asking in list(self._asking):
            self._end(asking)

    # ------------------------------------------------------------------------------- asking

    def _coordinator_of(self, transactional_id: str) -> int:
        """Return the broker that coordinates an id; NO_NODE: nobody does, as far as is known."""
        partition_id = self._partition_id_of(transactional_id)
        return NO_NODE if partition_id is None else self._view.leader_of(partition_id).node_id

    def _place(self, asking: Asking) -> None:
        """Let somebody wait for the coordinator of now."""
        node_id = self._coordinator_of(asking.question.transactional_id)
        if node_id == NO_NODE:
            self._tell_soon(asking, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        if node_id == self._view.node_id:
            self._tell_soon(asking, ErrorCode.NOT_COORDINATOR)  # It was moved here just now.
            return
        node = self._nodes.setdefault(node_id, _Node(node_id))
        bounds = self._bounds
        if node.questions >= bounds.questions_max or (
            node.questions and node.bytes + asking.size_bytes > bounds.bytes_max
        ):
            self._tell_soon(asking, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        asking.node = node
        node.waiting[asking] = None
        node.questions += 1
        node.bytes += asking.size_bytes
        self._send(node)

    def _send(self, node: _Node) -> None:
        """Ask a broker what waits for it, unless it is being asked."""
        if node.is_asked:
            return
        if not node.waiting:
            if not node.questions:
                self._nodes.pop(node.node_id, None)
            return
        batch = self._next_of(node)
        transactions = []
        for asking in batch:
            del node.waiting[asking]
            question = asking.question
            asking.guarded = {
                topic_partition: self.guards.make(log, question.producer_id)
                for topic_partition, log in question.logs.items()
            }
            transactions.append(_transaction(question))
        node.is_asked = True
        self._peers.ask(
            node.node_id,
            Purpose.VERIFICATION,
            ADD_PARTITIONS_TO_TXN,
            VERSION,
            AddPartitionsToTxnRequest(transactions=transactions),
            partial(self._answered, node, batch),
            timeout_ms=ANSWER_TIMEOUT_MS,
        )

    def _next_of(self, node: _Node) -> list[Asking]:
        """Return those whose questions are sent together, one for each transactional id."""
        bounds = self._bounds
        batch: list[Asking] = []
        keys: set[str] = set()
        partitions = 0
        for asking in node.waiting:
            question = asking.question
            if question.transactional_id in keys:
                continue
            partitions += len(question.logs)
            if batch and partitions > bounds.partitions_at_once_max:
                break
            batch.append(asking)
            keys.add(question.transactional_id)
            if len(batch) == bounds.at_once_max:
                break
        return batch

    # ------------------------------------------------------------------------------- answers

    def _answered(
        self, node: _Node, batch: list[Asking], response: AddPartitionsToTxnResponse | NoAnswer
    ) -> None:
        """Take the answer to a request: act on it now, before any marker is handled."""
        node.is_asked = False
        self._note(node.node_id, response)
        found = _by_id(response)
        for asking in batch:
            if asking.is_over:
                continue
            question = asking.question
            said = found.get(question.transactional_id, {})
            codes = {each: _heard(said.get(each, NO_WORD)) for each in question.logs}
            if not self._repeats(asking, codes):
                self._tell(asking, codes)
        self._send(node)
        self._host.flush_answers()

    def _repeats(self, asking: Asking, codes: Mapping[TopicPartition, ErrorCode]) -> bool:
        """Ask again later if the answer is one of a moment, and there is time."""
        question = asking.question
        is_of_a_moment = not _OF_A_MOVE.isdisjoint(codes.values()) or (
            question.adds and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        )
        due_ms = self._host.clock.monotonic() * 1000 + asking.pause_ms
        if not is_of_a_moment or due_ms > asking.repeats_until_ms:
            return False
        self._leave(asking)
        asking.pause = self._host.clock.call_later(asking.pause_ms, self._ask_again, asking)
        asking.pause_ms = min(2 * asking.pause_ms, PAUSE_MAX_MS)
        return True

    def _ask_again(self, asking: Asking) -> None:
        asking.pause = None
        self._place(asking)

    def _tell_soon(self, asking: Asking, code: ErrorCode) -> None:
        """Tell somebody of an error, in a turn of its own."""
        self._host.loop.call_soon(self._tell_alone, asking, code)

    def _tell_alone(self, asking: Asking, code: ErrorCode) -> None:
        node = asking.node
        self._tell(asking, dict.fromkeys(asking.question.logs, code))
        if node is not None:
            self._send(node)
        self._host.flush_answers()

    def _tell(self, asking: Asking, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        """Let somebody act on an answer, unless he has one."""
        if asking.is_over:
            return
        guarded, asking.guarded = asking.guarded, {}
        self._end(asking)
        answer = Answer(asking.question, codes, guarded, self.guards)
        respond_to(asking.on_answer, answer, TRANSACTION_STATE)
        answer.release()

    def _end(self, asking: Asking) -> None:
        if asking.is_over:
            return
        asking.is_over = True
        self._asking.discard(asking)
        for timer in (asking.late, asking.pause):
            if timer is not None:
                timer.cancel()
        self._leave(asking)

    def _leave(self, asking: Asking) -> None:
        """Wait for a broker no more; what it still says is not acted on."""
        for guard in asking.guarded.values():
            self.guards.release(guard)
        asking.guarded = {}
        node, asking.node = asking.node, None
        if node is not None:
            node.waiting.pop(asking, None)
            node.questions -= 1
            node.bytes -= asking.size_bytes

    def _note(self, node_id: int, response: AddPartitionsToTxnResponse | NoAnswer) -> None:
        """Say in the log, once, that a broker does not answer, and that it does again."""
        if isinstance(response, NoAnswer):
            reason = response.reason
        elif response.error_code:
            reason = ErrorCode(response.error_code).name
        else:
            if node_id in self._unheard:
                self._unheard.discard(node_id)
                logger.info("coordinator answers again node=%d", node_id)
            return
        if node_id not in self._unheard:
            self._unheard.add(node_id)
            logger.warning("coordinator does not answer node=%d reason=%s", node_id, reason)


def _transaction(question: Question) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for name, index in question.logs:
        topics.setdefault(name, []).append(index)
    return AddPartitionsToTxnTransaction(
        question.transactional_id,
        question.producer_id,
        question.epoch,
        verify_only=not question.adds,
        topics=[AddPartitionsToTxnTopic(*each) for each in topics.items()],
    )


def _by_id(
    response: AddPartitionsToTxnResponse | NoAnswer,
) -> dict[str, dict[Any, ErrorCode]]:
    """Return what was said, by transactional id, topic and partition index."""
    if isinstance(response, NoAnswer) or response.error_code:
        return {}
    return {
        result.transactional_id: {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }


def _heard(code: ErrorCode) -> ErrorCode:
    return NO_WORD if code in _NOT_NOW else code
