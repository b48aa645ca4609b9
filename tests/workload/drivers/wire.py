"""Requests by wire: transactions, sends, readers, offsets, and a transformer's input.

It runs in a World and beside the libraries. Transactions are of protocol v2 (KIP-890);
``wire_classic`` has those of v1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from tests.broker.data_plane import batch
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
from tests.workload.routing import Led
from tests.workload.settings import INPUTS, PLACES, Settings
from tests.workload.wire_client import (
    WireClient,
    commit_offset,
    committed_offset,
    end_of,
    read,
)
from tests.workload.wire_transactions import IMPLICIT, Transactional

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
    """An idempotent producer outside of transactions."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.name, addresses_of(settings.servers), settings.seed)
        self._producer_id = NOT_KNOWN
        self._sequences: dict[Led, int] = {}

    def send(self, writes: Sequence[Write]) -> tuple[list[Write], Exception | None]:
        return _sent(writes, self._append), None

    def _append(self, place: Led, values: Sequence[str]) -> int:
        if self._producer_id == NOT_KNOWN:
            self._producer_id = self._new_producer_id(place)
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(values)
        records = batch(
            *(value.encode() for value in values),
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        return self.produce(place, records)

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
        return [Read(*place, each.offset, (each.value or b"").decode()) for each in seen]


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
        position = max(committed_offset(self, self.group, place), 0)
        seen, _ = read(self, place, position, COMMITTED)
        return [Read(*place, e.offset, (e.value or b"").decode()) for e in seen[:MOST_INPUTS]]

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
                reads += [Read(*place, e.offset, (e.value or b"").decode()) for e in seen]
        return reads

    def committed(self, group: str, places: Sequence[Partition]) -> list[OffsetCommit]:
        return [
            OffsetCommit(group, *place, committed_offset(self, group, Led(*place)))
            for place in places
        ]
