"""A member of a group by wire, of the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from tests.history.model import ASSIGNED, COMMITTED, LOST, REVOKED, Partition, Read
from tests.requests import commit_request
from tests.workload.drivers.wire import addresses_of
from tests.workload.payload import value_of
from tests.workload.progress import CommitRefused, Progress
from tests.workload.routing import GROUP, Coordinated, Led
from tests.workload.settings import Settings
from tests.workload.wire_client import WireClient, committed_offset, read

JOIN, LEAVE = 0, -1
REBALANCE_MS = 60_000
NO_MEMBER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
REFUSALS = NO_MEMBER | {ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}


class Member(WireClient):
    """A member of a group; each poll fetches one of its partitions."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)
        self._progress = progress
        self._group = settings.group
        self._coordinator = Coordinated(GROUP, settings.group)
        self._topics = {self._topic_id(topic): topic for topic in settings.topics}
        self._epoch = JOIN
        self._positions: dict[Led, int] = {}
        """Next offsets of the partitions that it owns."""

    def poll(self) -> list[Read]:
        self._heartbeat()
        if not self._positions:
            return []
        place = self.random.choice([*self._positions])
        seen, self._positions[place] = read(self, place, self._positions[place], COMMITTED)
        return [Read(*place, each.offset, value_of(each.value)) for each in seen]

    def commit(self) -> None:
        with self._progress.commit() as (attempt, offsets):
            if offsets:
                self._send_commit(attempt, offsets)

    def close(self) -> None:
        """Release all partitions, then leave the group, in the order of Kafka's own consumer.

        Another member can own them as soon as the coordinator has the request, which is before
        this member has the response.
        """
        self._progress.moved(self._positions, REVOKED)
        self._positions.clear()
        self._beat(LEAVE)
        super().close()

    def _topic_id(self, topic: str) -> bytes:
        request = MetadataRequest([MetadataRequestTopic(name=topic)], False)
        found = self.asked(
            Led(topic, 0),
            lambda: self.routing.ask(Led(topic, 0), METADATA, request, 12).topics[0],
            lambda answer: answer.error_code,
        )
        return bytes(found.topic_id)

    def _heartbeat(self) -> None:
        """Join, or stay a member; take in what is assigned, and give up what is not."""
        response = self._beat(self._epoch)
        if response.error_code in NO_MEMBER:
            # The coordinator has removed it: other members may have its partitions already.
            self._progress.moved(self._positions, LOST)
            self._positions.clear()
            self._epoch = JOIN
            return
        code = ErrorCode(response.error_code)
        assert code is ErrorCode.NONE, f"{self.name} of {self._group}: {code!r}"
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self._take(response.assignment.topic_partitions)

    def _take(self, assignment: Iterable[TopicPartitions]) -> None:
        target = {
            Led(self._topics[bytes(each.topic_id)], index)
            for each in assignment
            for index in each.partitions
        }
        revoked, assigned = self._positions.keys() - target, target - self._positions.keys()
        if revoked:
            self.commit()
            self._progress.moved(revoked, REVOKED)
            for place in revoked:
                del self._positions[place]
        if assigned:
            self._progress.moved(assigned, ASSIGNED)
            for place in sorted(assigned):
                offset = committed_offset(self, self._group, place)
                self._positions[place] = max(offset, 0)

    def _beat(self, epoch: int) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            self._group, self.name, epoch, rebalance_timeout_ms=REBALANCE_MS
        )
        request.subscribed_topic_names = [*self._topics.values()] if epoch == JOIN else None
        request.topic_partitions = [
            TopicPartitions(topic_id, [p.partition for p in self._positions if p.topic == topic])
            for topic_id, topic in self._topics.items()
            if any(place.topic == topic for place in self._positions)
        ]
        return self._responded(CONSUMER_GROUP_HEARTBEAT, request, 1, lambda r: r.error_code)

    def _send_commit(self, attempt: str, offsets: dict[Partition, int]) -> None:
        request = commit_request(self._group, offsets, self._epoch, self.name, attempt)

        def code_of(response: Any) -> int:
            codes = [each.error_code for topic in response.topics for each in topic.partitions]
            return next((code for code in codes if code), 0)

        response = self._responded(OFFSET_COMMIT, request, 9, code_of)
        code = ErrorCode(code_of(response))
        if code in REFUSALS:
            raise CommitRefused from RuntimeError(code.name)
        assert code is ErrorCode.NONE, f"{self.name} of {self._group}: {code!r}"

    def _responded(self, api: Any, request: Any, version: int, code_of: Any) -> Any:
        """Return the first response that is no reason to retry."""
        responses: list[Any] = []

        def code() -> int:
            responses.append(self.routing.ask(self._coordinator, api, request, version))
            return code_of(responses[-1])

        self.routing.until_answered(self._coordinator, code)
        return responses[-1]
