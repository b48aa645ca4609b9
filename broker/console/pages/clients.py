"""Connections, and readers of partitions: also those without a group, such as Spark's.

The isolation level is known from fetches, not from groups. Each connection has that of its
last fetch, joined to a group's members by client id and host: a good guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from barnabas.broker.api.checks import (
    CLUSTER,
    TOPIC,
)
from barnabas.broker.api.client_seen import NEVER, Sample
from barnabas.broker.console.pacing import CLIENT_UNITS, PARTITION_UNITS
from barnabas.broker.console.pages.reader_names import ReaderNames
from barnabas.broker.console.parameters import Parameter, paged
from barnabas.broker.console.route import Route, required, visible
from barnabas.broker.console.shapes_story import ClientPage, ClientRow, ReaderPage, ReaderRow
from barnabas.broker.network.pauses import (
    BACKLOGGED,
    CLOSED,
    DRAINING,
    HANDLING,
    PIPELINED,
    THROTTLED,
    WRITING,
)
from barnabas.storage.log.readable_log import READ_COMMITTED, READ_UNCOMMITTED

if TYPE_CHECKING:
    from barnabas.broker.api.fetch_sessions import Asked
    from barnabas.broker.console.questions import Question
    from barnabas.broker.metadata.topic import Partition
    from barnabas.broker.network.connection import Connection

ISOLATION: Final = {READ_UNCOMMITTED: "read_uncommitted", READ_COMMITTED: "read_committed"}
BOTH: Final = "both"
WAITS: Final = {
    HANDLING: "request",
    WRITING: "reader",
    BACKLOGGED: "disk",
    PIPELINED: "answers",
    THROTTLED: "quota",
    DRAINING: "closing",
    CLOSED: "closing",
}
OF_MEMBERS: Final = frozenset((11, 12, 68))
"""APIs that only members of groups call: JoinGroup, Heartbeat, ConsumerGroupHeartbeat."""
SAMPLE_SECONDS: Final = 1.0
"""Minimum time between two samples of a rate."""
DIGITS: Final = 1
_NUMBERS: Final = dict.fromkeys(
    ("received_bytes_per_s", "sent_bytes_per_s"), (float, int)
) | dict.fromkeys(("requests", "received_bytes", "sent_bytes"), (int, int))
ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "connection": (int,),
    "client": (str, int),
    **_NUMBERS,
}
READER_ORDERS: Final[Mapping[str, tuple[type, ...]]] = {
    "topic": (str, int, int),
    **dict.fromkeys(("lag", "lag_blocked"), (int, str, int, int)),
}

Client: TypeAlias = tuple[str, str]
"""Client id and host."""


# ------------------------------------------------------------------------------------- connections


async def list_clients(question: Question) -> ClientPage:
    """List connections."""
    wanted = question.text("filter").casefold()
    selection = question.selection(ORDERS)
    sort = selection.sort
    now_s = question.broker.clock.monotonic()
    members = await _members(question)
    for each in list(question.broker.sockets.connections):
        await question.pace.spend(CLIENT_UNITS)
        sample = _sample(each, now_s, question.now_ms)
        if not _is_wanted(each, wanted):
            continue
        if sort == "client":
            selection.offer(each, each.client_id, each.number)
        elif sort == "received_bytes_per_s":
            selection.offer(each, sample.received_per_s, each.number)
        elif sort == "sent_bytes_per_s":
            selection.offer(each, sample.sent_per_s, each.number)
        else:
            selection.offer_by(each, each, each.number)
    rows = [_row(each, members) async for each in selection.rows(question.pace)]
    return ClientPage(question.now_ms, selection.following, selection.total, tuple(rows))


def _is_wanted(connection: Connection, wanted: str) -> bool:
    return not wanted or any(
        wanted in each.casefold()
        for each in (
            connection.client_id,
            connection.peer,
            connection.seen.software,
            str(connection.session.principal),
        )
    )


def _row(connection: Connection, members: frozenset[Client]) -> ClientRow:
    seen, sample = connection.seen, connection.seen.sample
    fetched = seen.fetched
    return ClientRow(
        connection.number,
        connection.client_id,
        seen.software,
        seen.software_version,
        connection.peer,
        connection.listener.name,
        str(connection.session.principal),
        connection.since_ms,
        connection.requests,
        connection.refusals,
        connection.received_bytes,
        connection.sent_bytes,
        0.0 if sample is None else round(sample.received_per_s, DIGITS),
        0.0 if sample is None else round(sample.sent_per_s, DIGITS),
        connection.last_api or None,
        connection.idle_ms,
        tuple(dict.fromkeys(word for bit, word in WAITS.items() if connection.pauses & bit)),
        ISOLATION.get(seen.isolation),
        (connection.client_id, connection.peer_host) in members,
        len(fetched) if fetched is not None else 0 if seen.isolation == NEVER else None,
    )


def _sample(connection: Connection, now_s: float, now_ms: int) -> Sample:
    """Return the traffic of a connection, sampled again if that is due."""
    before, received, sent = (
        connection.seen.sample,
        connection.received_bytes,
        connection.sent_bytes,
    )
    if before is None:
        passed_s = max((now_ms - connection.since_ms) / 1000, SAMPLE_SECONDS)
        sample = Sample(now_s, received, sent, received / passed_s, sent / passed_s)
    elif now_s - before.at_s < SAMPLE_SECONDS / 2:
        return before
    else:
        passed_s = now_s - before.at_s
        sample = Sample(
            now_s,
            received,
            sent,
            (received - before.received_bytes) / passed_s,
            (sent - before.sent_bytes) / passed_s,
        )
    connection.seen.sample = sample
    return sample


async def _members(question: Question) -> frozenset[Client]:
    """Return the clients that are active for a group on one of their connections."""
    found = set()
    for each in list(question.broker.sockets.connections):
        await question.pace.spend(CLIENT_UNITS)
        if each.apis & OF_MEMBERS:
            found.add((each.client_id, each.peer_host))
    return frozenset(found)


async def isolation_of_clients(question: Question) -> Mapping[Client, str]:
    """Return the isolation level of each client, by the last fetch of each of its connections."""
    found: dict[Client, set[int]] = defaultdict(set)
    for each in list(question.broker.sockets.connections):
        await question.pace.spend(CLIENT_UNITS)
        if each.seen.isolation != NEVER:
            found[each.client_id, f"/{each.peer_host}"].add(each.seen.isolation)
    return {
        client: BOTH if len(levels) > 1 else ISOLATION[next(iter(levels))]
        for client, levels in found.items()
    }


# ----------------------------------------------------------------------------------------- readers


class _Reading(NamedTuple):
    """One partition that one connection reads."""

    connection: Connection
    asked: Asked
    partition: Partition

    @property
    def end(self) -> int:
        """Offset up to which the reader can read now."""
        log = self.partition.log_here()
        is_committed = self.connection.seen.isolation == READ_COMMITTED
        return log.last_stable_offset if is_committed else log.high_watermark

    @property
    def lag(self) -> int:
        """Number of readable offsets that it has not read."""
        return max(self.end - self.asked.request.fetch_offset, 0)

    @property
    def lag_blocked(self) -> int:
        """Number of offsets that open transactions block."""
        position = self.asked.request.fetch_offset
        return max(self.partition.log_here().high_watermark - max(self.end, position), 0)


async def list_readers(question: Question) -> ReaderPage:
    """List the partitions that connections read, by their last fetches."""
    wanted, topic = question.text("filter").casefold(), question.text("topic")
    only_alone = bool(question.values["without_group"])
    selection = question.selection(READER_ORDERS)
    members, names = await _members(question), await ReaderNames.of(question)
    for connection in list(question.broker.sockets.connections):
        await question.pace.spend(CLIENT_UNITS)
        is_member = (connection.client_id, connection.peer_host) in members
        # A filter must not find what a row does not show.
        if (only_alone and is_member) or wanted not in (names.client(connection) or "").casefold():
            continue
        for asked in connection.seen.fetched or ():
            await question.pace.spend(PARTITION_UNITS)
            partition = _partition(question, asked)
            if partition is None or (topic and partition.topic.name != topic):
                continue
            reading = _Reading(connection, asked, partition)
            name = partition.topic.name, partition.index, connection.number
            selection.offer_by(reading, reading, *name)
    rows = [_reader_row(each, members, names) async for each in selection.rows(question.pace)]
    return ReaderPage(question.now_ms, selection.following, selection.total, tuple(rows))


def _partition(question: Question, fetched: Asked) -> Partition | None:
    """Return the partition of a fetch if this broker leads it and the user may see it."""
    catalogue = question.broker.catalogue
    topic = catalogue.topic(fetched.topic) or catalogue.topic_by_id(fetched.topic_id)
    if topic is None or not question.access.may_see(TOPIC, topic.name):
        return None
    partition = catalogue.partition(topic.name, fetched.request.partition)
    return None if partition is None or partition.log is None else partition


def _reader_row(reading: _Reading, members: frozenset[Client], names: ReaderNames) -> ReaderRow:
    connection, log = reading.connection, reading.partition.log_here()
    return ReaderRow(
        reading.partition.topic.name,
        reading.partition.index,
        connection.number,
        names.client(connection),
        names.address(connection),
        names.user(connection),
        ISOLATION[connection.seen.isolation],
        (connection.client_id, connection.peer_host) in members,
        reading.asked.request.fetch_offset,
        log.last_stable_offset,
        log.high_watermark,
        reading.lag,
        reading.lag_blocked,
        connection.idle_ms,
    )


CLIENT_ROUTES: Final = (
    Route(
        "/api/v1/clients",
        "Connections of clients",
        list_clients,
        ClientPage,
        required(CLUSTER),
        paged("connection", ORDERS, "client id, address, software or user"),
        watched="clients",
        watched_query={"sort": "-received_bytes_per_s"},
    ),
    Route(
        "/api/v1/readers",
        "Partitions that connections read, with or without a group",
        list_readers,
        ReaderPage,
        visible(TOPIC),
        (
            *paged("topic", READER_ORDERS, "the client id"),
            Parameter("topic", "Only those of this one."),
            Parameter("without_group", "Only those of clients in no group.", bool, False),
        ),
    ),
)
