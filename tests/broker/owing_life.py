"""A ``MovingLife`` in a cluster: two more brokers lead partitions, and answer as a test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.broker.cluster.view import ClusterView
from barnabas.broker.peers.interface import Failure, NoAnswer, Purpose
from barnabas.coordinator.transactions.state import State, TopicPartition
from barnabas.protocol.api import Api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.storage.io import Buffer
from tests.broker.harness import NODE_ID
from tests.broker.moving_shards import MovingLife
from tests.broker.several import ScriptedView, node
from tests.crash.transaction_life import TOPIC

SECOND, THIRD = 2, 3
"""Who else there is. Of the topic the first partition is led here, the others one each by them."""
HERE, AT_SECOND, AT_THIRD = range(3)


@dataclass(eq=False)
class Question:
    """A request that has left, and what is to be done with its answer."""

    node_id: int
    request: WriteTxnMarkersRequest
    markers: set[tuple[str, int]]
    """Transactional ids and partitions."""
    on_answer: Callable[[Any], None]
    is_told: bool = False

    def answer(self, code: ErrorCode = ErrorCode.NONE, *, but: Any = None) -> None:
        """One error for all, ``but`` for some by index; None: that partition is left out."""
        codes = but or {}
        markers = [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [
                            WritableTxnMarkerPartitionResult(index, codes.get(index, code))
                            for index in topic.partition_indexes
                            if codes.get(index, code) is not None
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in self.request.markers
        ]
        self.tell(WriteTxnMarkersResponse(markers))

    def fail(self, failure: Failure) -> None:
        self.tell(NoAnswer(failure, "as the test says", was_sent=True))

    def tell(self, answer: Any) -> None:
        assert not self.is_told
        self.is_told = True
        self.on_answer(answer)


class ScriptedPeers:
    """``Peers`` that keep what is asked."""

    def __init__(self, life: OwingLife) -> None:
        self._life = life
        self.asked: list[Question] = []

    def ask(
        self,
        node_id: int,
        purpose: Purpose,
        api: Api[Any, Any],
        version: int,
        request: Any,
        on_answer: Callable[[Any], None],
        *,
        timeout_ms: float,
    ) -> None:
        assert (purpose, api, version) == (Purpose.MARKERS, WRITE_TXN_MARKERS, 2)
        assert timeout_ms > 0
        chunks: list[Buffer] = api.encode_request(request, version)
        sent = memoryview(b"".join(chunks))
        read = api.decode_request(sent, 0, version)
        markers = {
            (self._life.key_of(marker.producer_id), index)
            for marker in read.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        }
        self.asked.append(Question(node_id, read, markers, on_answer))

    def forget(self, node_id: int) -> None:
        raise AssertionError(node_id)

    async def close(self) -> None:
        """Nothing is open."""


class OwingLife(MovingLife):
    """The coordinator of transactions whose partitions are led by three brokers."""

    def __init__(self) -> None:
        self.peers = ScriptedPeers(self)
        super().__init__()

    def _new_view(self) -> ClusterView:
        nodes = [node(each) for each in (NODE_ID, SECOND, THIRD)]
        # Ids of partitions are given from 1 on, and this topic is the first one.
        view = ScriptedView(NODE_ID, nodes, {2: SECOND, 3: THIRD})
        view.own_epoch = lambda: self.logs.leader_epoch
        return view

    def key_of(self, producer_id: int) -> str:
        return self.transactions._producer_ids[producer_id]

    @property
    def pending(self) -> list[Question]:
        """All that has left and is not answered, in order."""
        return [each for each in self.peers.asked if not each.is_told]

    @property
    def question(self) -> Question:
        (found,) = self.pending
        return found

    def asked_of(self, node_id: int) -> Question:
        (found,) = [each for each in self.pending if each.node_id == node_id]
        return found

    def lead(self, index: int, node_id: int) -> None:
        """Have a partition of the topic led by another broker from now on."""
        topic = self.catalogue.topics[TOPIC]
        self.view.led_by(topic.partitions[index].partition_id, node_id)

    def turns(self) -> None:
        """Let the loop go on; nothing comes of the disk."""
        while self.later:
            self.turn()

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass, and all go on that needs none."""
        self.clock.advance(milliseconds=milliseconds)
        self.come_to_rest()

    def state(self, key: str) -> State:
        return self.transactions.transaction(key).state

    def owed(self, key: str) -> list[int]:
        found: list[TopicPartition] = self.transactions.awaiting_markers(key)
        return [each.partition for each in found]

    def _check_nothing_is_left(self) -> None:
        super()._check_nothing_is_left()
        debts = self.transactions.remote_markers._debts
        for debt in debts.values():
            assert not debt.shard.is_gone
            assert self.transactions.is_deciding(debt.key)
