"""Requests to the coordinators of other brokers to verify the partitions of a transaction (R1, R7).

The leader of a partition sends a request when it receives a transaction's first batch or first
offsets and another broker is the coordinator. Up to version 11 of Produce (4 of TxnOffsetCommit)
the request verifies that the partition was added; later versions add it. The coordinator responds
once its result is durable.

Rules of this file:

* **One request at a time is in flight to each broker.** Later ones wait and share the next request,
  each transactional ID once, in the order of arrival. The queue has a limit.
* **Each request gets its own guards, in the turn in which it is sent.** They end when the response
  is applied. A guard that a marker drops is never used, and a retry gets new ones.
* **A coordinator never holds a request.** While a transaction is ending it returns
  CONCURRENT_TRANSACTIONS. The leader retries for ``barnabas.transaction.wait.ms``, as it does after
  NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS. Each retry looks up the coordinator again.
* **Each caller gets one response, in a turn of its own,** at the latest when its timeout expires,
  and must act on it in that turn. A caller that has given up gets no response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.api.waiting import respond_to
from barnabas.broker.cluster.peers.interface import NoAnswer, Purpose
from barnabas.broker.cluster.view import NO_NODE
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
"""Timeout, in milliseconds, of a request; then the connection is closed."""
PAUSE_FIRST_MS: Final = 2
PAUSE_MAX_MS: Final = 10
"""Pauses, in milliseconds, between retries: at first, since the end is about to be durable, and at
most.

The end of a transaction takes two more flushes, so the time lost in a longer pause is a large part
of it. Apache Kafka always waits 20 ms. The load is limited, since one request at a time is in
flight."""

NO_WORD: Final = ErrorCode.NETWORK_EXCEPTION
"""Code in the place of a response that did not arrive or must not be used."""

_NOT_NOW: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.NETWORK_EXCEPTION,
}
"""Error codes that describe the two brokers, not the transaction."""
_OF_A_MOVE: Final = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Error codes while the coordinator's partition moves from one broker to another."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the queue for one coordinator and of one request."""

    questions_max: int = 1_000
    bytes_max: int = 4 * 1024 * 1024
    """Size of the transactional IDs and topic names, estimated."""
    at_once_max: int = 200
    partitions_at_once_max: int = 2_000
    """Limit of one request, except that a single question can exceed it."""


class Question(NamedTuple):
    """Verification of the partitions of one producer."""

    transactional_id: str
    producer_id: int
    epoch: int
    logs: Mapping[TopicPartition, Log]
    """Partitions, all led by this broker."""
    adds: bool
    """Whether to add the partitions, instead of verifying that they were added."""

    @property
    def size_bytes(self) -> int:
        """Return the estimated size of the names."""
        return 4 * len(self.transactional_id) + sum(len(each.topic) + 16 for each in self.logs)


class Answer:
    """Coordinator's result for each partition, to be used at once."""

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
        """Return the coordinator's error code for a partition."""
        return self._codes.get(topic_partition, NO_WORD)

    def refusal(self, topic_partition: TopicPartition, log: Log) -> ErrorCode:
        """Return the error for an append to a log.

        NONE permits one append, which must follow at once.
        """
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
        """Return a partition's guard, which the caller must take or release, or None."""
        return self._guarded.pop(topic_partition, None)

    def release(self) -> None:
        """Release the guards that were not used."""
        for guard in self._guarded.values():
            self._guards.release(guard)
        self._guarded.clear()


class Asking:
    """Caller that waits for a response."""

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
        """Broker whose response it waits for now, or None."""
        self.is_over = False
        self.late: Timer | None = None
        self.pause: Timer | None = None
        self.pause_ms = float(PAUSE_FIRST_MS)


class _Node:
    """Queue of one coordinator's broker."""

    __slots__ = ("bytes", "is_asked", "node_id", "questions", "waiting")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.waiting: dict[Asking, None] = {}
        """Callers in the order of arrival."""
        self.is_asked = False
        """Whether a request is in flight."""
        self.questions = 0
        """Number of questions, including those in flight."""
        self.bytes = 0


class RemoteCoordinators:
    """Client of the transaction coordinators on other brokers."""

    def __init__(
        self,
        host: Host,
        view: ClusterView,
        partition_id_of: Callable[[str], int | None],
        peers: Peers,
        guards: Guards,
        bounds: Bounds | None = None,
    ) -> None:
        """``partition_id_of`` maps a transactional ID to its partition of ``__transaction_state``.

        It returns None if this broker does not know that topic.
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
        """Brokers that the log reports as unresponsive."""

    def __len__(self) -> int:
        """Return the number of callers that wait for a response."""
        return len(self._asking)

    # ------------------------------------------------------------------------------- callers

    def ask(
        self, question: Question, on_answer: Callable[[Answer], None], *, wait_ms: float
    ) -> Asking:
        """Verify with a transactional ID's coordinator; ``on_answer`` is called after this
        returned.

        ``wait_ms`` is the caller's maximum waiting time.
        """
        now_ms = self._host.clock.monotonic() * 1000
        asking = Asking(question, on_answer, now_ms + self._host.config.transaction_wait_ms)
        self._asking.add(asking)
        asking.late = self._host.clock.call_later(wait_ms, self._respond_alone, asking, NO_WORD)
        self._place(asking)
        return asking

    def give_up(self, asking: Asking) -> None:
        """Cancel a question; no effect after its response."""
        self._end(asking)

    def refusal_outside(self, log: Log, producer_id: int) -> ErrorCode:
        """Return the error for a producer that must not write outside of transactions, or NONE.

        This broker decides from the log alone, since it does not know which transactional IDs other
        coordinators serve: a producer is transactional if it has guards, an open transaction or an
        earlier marker in the log.
        """
        entry = log.producers.entry(producer_id)
        is_transactional = self.guards.knows(log, producer_id) or (
            entry is not None
            and (entry.is_in_transaction or entry.coordinator_epoch != NO_COORDINATOR_EPOCH)
        )
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if is_transactional else ErrorCode.NONE

    def close(self) -> None:
        """Cancel all questions without a response, since the broker stops."""
        for asking in list(self._asking):
            self._end(asking)

    # ------------------------------------------------------------------------------- requests

    def _coordinator_of(self, transactional_id: str) -> int:
        """Return the node ID of an ID's coordinator, or NO_NODE if none is known."""
        partition_id = self._partition_id_of(transactional_id)
        return NO_NODE if partition_id is None else self._view.leader_of(partition_id).node_id

    def _place(self, asking: Asking) -> None:
        """Queue a question for the current coordinator."""
        node_id = self._coordinator_of(asking.question.transactional_id)
        if node_id == NO_NODE:
            self._respond_soon(asking, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        if node_id == self._view.node_id:
            self._respond_soon(asking, ErrorCode.NOT_COORDINATOR)  # It was moved here just now.
            return
        node = self._nodes.setdefault(node_id, _Node(node_id))
        bounds = self._bounds
        if node.questions >= bounds.questions_max or (
            node.questions and node.bytes + asking.size_bytes > bounds.bytes_max
        ):
            self._respond_soon(asking, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        asking.node = node
        node.waiting[asking] = None
        node.questions += 1
        node.bytes += asking.size_bytes
        self._send(node)

    def _send(self, node: _Node) -> None:
        """Send the waiting questions to a broker, unless a request is in flight."""
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
        """Return the callers of the next request, one for each transactional ID."""
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

    # ------------------------------------------------------------------------------- responses

    def _answered(
        self, node: _Node, batch: list[Asking], response: AddPartitionsToTxnResponse | NoAnswer
    ) -> None:
        """Apply a response now, before any marker is handled."""
        node.is_asked = False
        self._note(node.node_id, response)
        found = _by_id(response)
        for asking in batch:
            if asking.is_over:
                continue
            question = asking.question
            said = found.get(question.transactional_id, {})
            codes = {each: _usable(said.get(each, NO_WORD)) for each in question.logs}
            if not self._repeats(asking, codes):
                self._respond(asking, codes)
        self._send(node)
        self._host.flush_answers()

    def _repeats(self, asking: Asking, codes: Mapping[TopicPartition, ErrorCode]) -> bool:
        """Schedule a retry if the error is temporary and time is left; return whether it was
        scheduled.
        """
        question = asking.question
        is_of_a_moment = not _OF_A_MOVE.isdisjoint(codes.values()) or (
            question.adds and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        )
        due_ms = self._host.clock.monotonic() * 1000 + asking.pause_ms
        if not is_of_a_moment or due_ms > asking.repeats_until_ms:
            return False
        self._leave(asking)
        asking.pause = self._host.clock.call_later(asking.pause_ms, self._retry, asking)
        asking.pause_ms = min(2 * asking.pause_ms, PAUSE_MAX_MS)
        return True

    def _retry(self, asking: Asking) -> None:
        asking.pause = None
        self._place(asking)

    def _respond_soon(self, asking: Asking, code: ErrorCode) -> None:
        """Return an error code to a caller, in a turn of its own."""
        self._host.loop.call_soon(self._respond_alone, asking, code)

    def _respond_alone(self, asking: Asking, code: ErrorCode) -> None:
        node = asking.node
        self._respond(asking, dict.fromkeys(asking.question.logs, code))
        if node is not None:
            self._send(node)
        self._host.flush_answers()

    def _respond(self, asking: Asking, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        """Pass a result to its caller, unless the question has ended."""
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
        """Remove a question from its broker's queue; a later response to it is ignored."""
        for guard in asking.guarded.values():
            self.guards.release(guard)
        asking.guarded = {}
        node, asking.node = asking.node, None
        if node is not None:
            node.waiting.pop(asking, None)
            node.questions -= 1
            node.bytes -= asking.size_bytes

    def _note(self, node_id: int, response: AddPartitionsToTxnResponse | NoAnswer) -> None:
        """Log once when a broker stops responding, and once when it responds again."""
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
    """Return the error codes by transactional ID, topic and partition index."""
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


def _usable(code: ErrorCode) -> ErrorCode:
    return NO_WORD if code in _NOT_NOW else code
