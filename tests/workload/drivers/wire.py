"""Requests by wire: transactions, sends, readers, offsets, and a transformer's input.

It runs in a World and beside the libraries. Transactions are of protocol v2 (KIP-890);
``wire_classic`` has those of v1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.storage.runtime.clock import monotonic, sleep
from tests.broker.committed_reader import Seen
from tests.broker.data_plane import Named, produce_request
from tests.counterparts.logins import NOBODY, Login
from tests.history.model import (
    COMMITTED,
    NOT_KNOWN,
    SEEK,
    OffsetCommit,
    Partition,
    Read,
    Write,
)
from tests.workload.journal import Journal
from tests.workload.payload import payload, value_of
from tests.workload.routing import PATIENCE_S, RETRIABLE, Led, pauses
from tests.workload.settings import INPUTS, PLACES, Settings
from tests.workload.wire_client import (
    WireClient,
    commit_offset,
    committed_offset,
    end_of,
    read,
    records_of,
)
from tests.workload.wire_transactions import IMPLICIT, Transactional

PRODUCE_VERSION = 9
MOST_INPUTS = 5
"""Records that one transaction transforms."""
SEED = 0
"""Clients differ by their names."""


def addresses_of(servers: str) -> list[tuple[str, int]]:
    """Return the addresses of bootstrap servers."""
    parts = [each.rpartition(":") for each in servers.split(",")]
    return [(host, int(port)) for host, _, port in parts]


class Session(Transactional):
    """A transactional producer."""

    produce_version = IMPLICIT

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int, login: Login) -> None:
        assert not login.mechanism, "the wire driver does not log in"
        super().__init__(transactional_id, addresses_of(servers), SEED, self.produce_version)
        self.timeout_ms = timeout_ms
        self.init()
        self._is_open = False

    def begin(self) -> None:
        self._is_open = False

    def send(self, writes: Sequence[Write]) -> list[Write]:
        self._is_open = True
        self.add(*dict.fromkeys(Led(*write.place) for write in writes))
        return _sent(writes, lambda place, values: self.write(place, *values))

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        self._is_open = True
        for place, offset in offsets.items():
            self.commit_offset(group, Led(*place), offset)

    def commit(self) -> None:
        self._end(commit=True)

    def abort(self) -> None:
        self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        if self._is_open:
            self.end(commit=commit)


def _sent(writes: Sequence[Write], send: Any) -> list[Write]:
    """Send each run of records of one partition as a batch."""
    acked = []
    for place, run in groupby(writes, lambda write: write.place):
        some = [*run]
        offset = send(Led(*place), [each.value for each in some])
        acked += [each._replace(offset=offset + at) for at, each in enumerate(some)]
    return acked


class Sender(WireClient):
    """An idempotent producer outside of transactions, which retries until all is acknowledged."""

    is_idempotent = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)
        self._producer_id = NOT_KNOWN
        self._sequences: dict[Led, int] = {}

    def send(
        self, writes: Sequence[Write], pad_bytes: int = 0
    ) -> tuple[list[Write], Exception | None]:
        runs = [(Led(*place), [*run]) for place, run in groupby(writes, lambda w: w.place)]
        if self.is_idempotent and self._producer_id == NOT_KNOWN:
            self._producer_id = self._new_producer_id(runs[0][0])
        left = [(place, run, self._request(place, run, pad_bytes)) for place, run in runs]
        acked: list[Write] = []
        until_s = monotonic() + PATIENCE_S
        pauses_s = pauses()
        while left:
            sent, left = left, []
            asked = [(place, request) for place, _, request in sent]
            for batch_sent, response in zip(
                sent, self.routing.ask_all(PRODUCE, PRODUCE_VERSION, asked), strict=True
            ):
                place, run, _ = batch_sent
                offset = self._offset(response, place, is_behind=place in {p for p, _, _ in left})
                if offset is not None:
                    acked += [w._replace(offset=offset + at) for at, w in enumerate(run)]
                elif self.is_idempotent:
                    left.append(batch_sent)
            if left:
                assert monotonic() < until_s, f"{self.name} sends in vain to {left[0][0]}"
                sleep(next(pauses_s))
        return acked, None

    def _offset(self, response: Any, place: Led, *, is_behind: bool) -> int | None:
        """Return the offset of a batch, or None if it has to be sent again.

        ``is_behind``: an earlier batch of the partition was not appended, so that its sequence is
        out of order.
        """
        if response is None:
            return None
        result = response.responses[0].partition_responses[0]
        code = ErrorCode(result.error_code)
        if code is ErrorCode.NONE:
            return int(result.base_offset)
        is_gap = is_behind and code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert is_gap or code in RETRIABLE, f"{self.name} at {place}: {code!r}"
        self.routing.forget(place)
        return None

    def _request(self, place: Led, run: Sequence[Write], pad_bytes: int) -> Any:
        producer = {}
        if self.is_idempotent:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = sequence + len(run)
            producer = {"producer_id": self._producer_id, "producer_epoch": 0}
            producer["base_sequence"] = sequence
        records = records_of([payload(each.value, pad_bytes) for each in run], **producer)
        return produce_request(PRODUCE_VERSION, Named(place.topic), (place.partition, records))

    def _new_producer_id(self, place: Led) -> int:
        request = InitProducerIdRequest(None, 60_000)
        return self.asked(
            place,
            lambda: self.routing.ask(place, INIT_PRODUCER_ID, request, 4),
            lambda response: response.error_code,
        ).producer_id


class Reader(WireClient):
    """A reader of all partitions; each poll fetches one of them."""

    def __init__(self, settings: Settings, places: Sequence[Partition] = PLACES) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)
        self.positions = {Led(*place): 0 for place in places}
        self._isolation = settings.isolation

    def poll(self) -> list[Read]:
        return self.poll_one(self.random.choice([*self.positions]))

    def poll_one(self, place: Led) -> list[Read]:
        """Fetch one partition."""
        seen, self.positions[place] = read(self, place, self.positions[place], self._isolation)
        return [Read(*place, each.offset, value_of(each.value)) for each in seen]


class Offsets(WireClient):
    """Offsets of groups without members."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)

    def commit(self, group: str, place: Partition, offset: int) -> None:
        commit_offset(self, group, Led(*place), offset)

    def committed(self, group: str, place: Partition) -> int:
        """Return the stable offset; -1 without one."""
        return committed_offset(self, group, Led(*place))


class Input(WireClient):
    """A group without members: each poll reads from the committed offset of one partition."""

    was_moved = False

    def __init__(self, settings: Settings, journal: Journal) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)
        self.group = f"group-{settings.name.partition('.')[0]}"
        self._journal = journal

    def poll(self) -> list[Read]:
        place = Led(*self.random.choice(INPUTS))
        seen: list[Seen] = []
        position, following = -1, max(committed_offset(self, self.group, place), 0)
        # A response may have few records, and aborted ones only.
        while len(seen) < MOST_INPUTS and position < following:
            position = following
            more, following = read(self, place, position, COMMITTED)
            seen += more
        return [Read(*place, e.offset, value_of(e.value)) for e in seen[:MOST_INPUTS]]

    def metadata(self) -> str:
        return self.group

    def rewind(self) -> bool:
        self._journal.moved(INPUTS, SEEK)
        return True


class Look(WireClient):
    """Requests after all clients have ended: ends of partitions, records, committed offsets."""

    def __init__(self, servers: str, _login: Login = NOBODY) -> None:
        super().__init__("final", addresses_of(servers), SEED)

    def ends(self, places: Sequence[Partition], isolation: str) -> dict[Partition, int]:
        return {place: end_of(self, Led(*place), isolation) for place in places}

    def read(
        self, begins: Mapping[Partition, int], ends: Mapping[Partition, int], isolation: str
    ) -> list[Read]:
        reads = []
        for place, begin in begins.items():
            position = begin
            while position < ends[place]:
                seen, position = read(self, Led(*place), position, isolation)
                reads += [Read(*place, e.offset, value_of(e.value)) for e in seen]
        return reads

    def committed(self, group: str, places: Sequence[Partition]) -> list[OffsetCommit]:
        return [
            OffsetCommit(group, *place, committed_offset(self, group, Led(*place)))
            for place in places
        ]
