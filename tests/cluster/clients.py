"""Clients of a cluster that note what they ask for and what they are told, as a history.

Each does one thing again and again, on a thread of its own, and every request again until the
answer is no reason to. What it has not got to its end after long, or is refused for good, is an
error of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import counter_ns
from barnabas.storage.runtime.threads import new_event, start_thread
from tests.broker.committed_reader import READ_COMMITTED, Seen, committed_records
from tests.broker.data_plane import (
    Named,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
)
from tests.cluster.routing import GROUP, Coordinated, Led, Routing
from tests.history.model import (
    COMMITTED,
    NOT_KNOWN,
    POLL,
    SEND,
    Operation,
    Read,
    Write,
)

LATEST = -1
FETCH_VERSION = 12


class Abortable(Exception):
    """The transaction may go on in one way only: it is aborted."""


class Client:
    """Does one thing until it is told to stop; begins no new one then."""

    def __init__(self, name: str, addresses: Sequence[tuple[str, int]], seed: int) -> None:
        self.name = name
        self.random = Random(f"{seed} {name}")
        self.routing = Routing(addresses, self.random, name)
        self.history: list[Operation] = []
        self.is_over = new_event()
        self.error: BaseException | None = None
        self.rest_s = 0.0
        """The longest time from one of its operations to the next."""
        self.done = 0
        """How often it has done its thing."""

    def start(self) -> None:
        """Begin, on a thread of its own."""
        self._thread = start_thread(self.name, self._run)

    def join(self, seconds: float) -> bool:
        """Wait for its end; return whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self.is_over.is_set():
                self.once()
                self.done += 1
                if self.rest_s:
                    self.is_over.wait(self.random.random() * self.rest_s)
        except BaseException as error:  # noqa: BLE001  told by the test's own thread
            self.error = error
        finally:
            self.routing.close()

    def once(self) -> None:
        raise NotImplementedError

    def asked(self, place: Any, ask: Callable[[], Any], code_of: Callable[[Any], int]) -> Any:
        """Ask until it is done; return the answer. Whatever is no reason to ask again is wrong."""
        answers: list[Any] = []

        def code() -> int:
            answers.append(ask())
            return code_of(answers[-1])

        told = self.routing.until_answered(place, code)
        if told is ErrorCode.TRANSACTION_ABORTABLE:
            raise Abortable(place)
        assert told is ErrorCode.NONE, f"{self.name} at {place}: {told!r}"
        return answers[-1]

    def produce(self, place: Led, records: Any, version: int = 9, **more: Any) -> int:
        """Have a batch appended; return its offset."""
        request = produce_request(version, Named(place.topic), (place.partition, records), **more)
        return self.asked(
            place,
            lambda: (
                self.routing.ask(place, PRODUCE, request, version)
                .responses[0]
                .partition_responses[0]
            ),
            lambda answer: answer.error_code,
        ).base_offset


class Writer(Client):
    """An idempotent producer of one partition."""

    def __init__(self, name: str, addresses: Any, seed: int, place: Led) -> None:
        super().__init__(name, addresses, seed)
        self.place = place
        self.producer_id = NOT_KNOWN

    def once(self) -> None:
        if self.producer_id == NOT_KNOWN:
            self.producer_id = self._new_producer_id()
        value, begun_ns = f"{self.name}-{self.done}", counter_ns()
        records = batch(
            value.encode(),
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=self.done,
        )
        offset = self.produce(self.place, records)
        self.history.append(
            Operation(
                SEND,
                self.name,
                invoked_ns=begun_ns,
                completed_ns=counter_ns(),
                writes=(Write(*self.place, value, offset),),
            )
        )

    def _new_producer_id(self) -> int:
        request = InitProducerIdRequest(None, 60_000)
        return self.asked(
            self.place,
            lambda: self.routing.ask(self.place, INIT_PRODUCER_ID, request, 4),
            lambda answer: answer.error_code,
        ).producer_id


class Committer(Client):
    """A group without members, which commits one offset after the other and asks for it."""

    def __init__(self, name: str, addresses: Any, seed: int, topic: str) -> None:
        super().__init__(name, addresses, seed)
        self.topic = topic
        self.place = Coordinated(GROUP, name)

    def once(self) -> None:
        partition = OffsetCommitRequestPartition(0, self.done)
        request = OffsetCommitRequest(
            self.name, topics=[OffsetCommitRequestTopic(self.topic, partitions=[partition])]
        )
        self.asked(
            self.place,
            lambda: self.routing.ask(self.place, OFFSET_COMMIT, request, 8),
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
        told = committed_offset(self, self.name, Led(self.topic, 0))
        assert told == self.done, (told, self.done)


def committed_offset(client: Client, group: str, of: Led) -> int:
    """How far a group is in a partition, once no transaction is about to change that; -1: nowhere.

    Partitions are named: of all of a group, those are not told that are only about to have one.
    """
    place = Coordinated(GROUP, group)
    asked = [OffsetFetchRequestTopics(of.topic, partition_indexes=[of.partition])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group, topics=asked)], require_stable=True
    )
    (answer,) = client.asked(
        place, lambda: client.routing.ask(place, OFFSET_FETCH, request, 8), _group_code
    ).groups
    return answer.topics[0].partitions[0].committed_offset


def _group_code(answer: Any) -> int:
    (group,) = answer.groups
    codes = [each.error_code for topic in group.topics for each in topic.partitions]
    return next((code for code in [group.error_code, *codes] if code), 0)


class Reader(Client):
    """Reads partitions from their beginning, each poll one of them."""

    def __init__(
        self, name: str, addresses: Any, seed: int, places: Iterable[Led], isolation: str
    ) -> None:
        super().__init__(name, addresses, seed)
        self.positions = dict.fromkeys(places, 0)
        self.isolation = isolation

    def once(self) -> None:
        self.poll(self.random.choice([*self.positions]))

    def poll(self, place: Led) -> None:
        """Read what there is of one partition."""
        begun_ns = counter_ns()
        seen, self.positions[place] = read(self, place, self.positions[place], self.isolation)
        if seen:
            self.note(begun_ns, place, seen)

    def note(self, begun_ns: int, place: Led, seen: Iterable[Seen]) -> None:
        reads = [Read(*place, each.offset, (each.value or b"").decode()) for each in seen]
        self.history.append(
            Operation(
                POLL,
                self.name,
                invoked_ns=begun_ns,
                completed_ns=counter_ns(),
                isolation=self.isolation,
                reads=tuple(reads),
            )
        )

    def read_to(self, place: Led, end: int) -> None:
        """Read a partition up to an offset."""
        while self.positions[place] < end:
            self.poll(place)


def read(
    client: Client, place: Led, position: int, isolation: str, max_wait_ms: int = 20
) -> tuple[list[Seen], int]:
    """Fetch once from a position on: the records that a consumer shows, and the next position."""
    is_committed = isolation == COMMITTED

    def fetch() -> Any:
        epoch = client.routing.find(place).epoch
        asked = FetchPartition(
            place.partition,
            current_leader_epoch=epoch,
            fetch_offset=position,
            partition_max_bytes=1 << 20,
        )
        request = fetch_request(
            FETCH_VERSION,
            (Named(place.topic), asked),
            max_wait_ms=max_wait_ms,
            isolation=READ_COMMITTED if is_committed else 0,
        )
        answer = client.routing.ask(place, FETCH, request, FETCH_VERSION)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0]

    data = client.asked(place, fetch, lambda answer: answer.error_code)
    return committed_records(data, position)


def end_of(client: Client, place: Led, isolation: str) -> int:
    """Where a partition ends, as its leader says."""
    request = list_offsets_request(
        place.topic, (place.partition, LATEST), isolation=int(isolation == COMMITTED)
    )
    return client.asked(
        place,
        lambda: client.routing.ask(place, LIST_OFFSETS, request, 7).topics[0].partitions[0],
        lambda answer: answer.error_code,
    ).offset
