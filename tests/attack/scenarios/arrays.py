"""Requests of a million entries, in every array of every API, and fetch sessions of such sizes."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from barnabas.broker import handlers
from barnabas.broker.api.dispatch import ROUTES
from barnabas.protocol.generate.schema import Field, Struct
from barnabas.protocol.messages import ENTRIES
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from tests.attack.peer import frame
from tests.attack.scenario import MIB, Scenario, Sent, Target
from tests.broker.sample_requests import SAMPLES
from tests.protocol.random_messages import generated
from tests.protocol.schemas import SCHEMAS

assert handlers, "importing the package registers the routes"

ENTRIES_MOST = 900_000
"""Just below what one array may have."""
FRAME_BYTES_MOST = 95 * MIB
PATIENCE_S = 120.0
NUMBERED = "n0000000"
FIRST = {
    ("Fetch", 11, "topics.partitions"),
    ("DescribeGroups", 5, "groups"),
    ("ListOffsets", 9, "topics.partitions"),
    ("OffsetCommit", 8, "topics.partitions"),
    ("Metadata", 9, "topics"),
}
"""Arrays that are slowest for a broker; the others follow in any order."""
SESSIONS = 3
VICTIM = "victim"

_LENGTH = struct.Struct(">i")
_INT32 = struct.Struct(">i")


class Place(NamedTuple):
    """One array of one request."""

    api: str
    version: int
    path: str


def places() -> list[Place]:
    """Every array of every request, in the oldest and the newest version that is served."""
    return [
        Place(route.name, version, ".".join(path))
        for route in ROUTES
        for version in sorted({route.min_version, route.max_version} | _versions_first(route.name))
        for path in _paths(SCHEMAS[ENTRIES[route.key].module].sections["request"], version)
    ]


def _versions_first(name: str) -> set[int]:
    return {version for api, version, _ in FIRST if api == name}


def _paths(within: Struct, version: int, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in within.fields:
        if version in field.versions:
            if field.is_array:
                yield (*path, field.name)
            if field.struct is not None:
                yield from _paths(field.struct, version, (*path, field.name))


def enormous(
    place: Place, count: int, make: Callable[[], Any] | None = None, *, is_named: bool = True
) -> bytes | None:
    """Return a frame with ``count`` entries in that array, each with a name of its own.

    The frame is made of bytes, since no client could encode as many in time: the bytes that one
    more entry adds are the entry, and the first byte that changes is the count. Return None if that
    does not hold. ``make`` returns the request to start from, instead of the sample; without
    ``is_named`` all entries are copies of the existing one.
    """
    route = next(each for each in ROUTES if each.name == place.api)

    def encoded(entries: int) -> bytes:
        message = make() if make else SAMPLES[place.api](VICTIM, bytes(16), "gone", bytes(16))
        path = place.path.split(".")
        _fill(ENTRIES[route.key].module, message, path, entries, is_named=is_named)
        return frame(route.api, place.version, message)[4:]

    two, three = encoded(2), encoded(3)
    size = len(three) - len(two)
    at = next(each for each in range(len(two)) if two[each] != three[each])
    begin, is_flexible = (at, True) if two[at] == 3 else (at - 3, False)
    entry, rest = three[at + 1 : at + 1 + size], three[at + 1 + 3 * size :]
    if three != three[:begin] + _count(3, flexible=is_flexible) + entry * 3 + rest:
        return None
    count = min(count, FRAME_BYTES_MOST // size)
    head = three[:begin] + _count(count, flexible=is_flexible)
    payload = head + _entries(entry, count) + rest
    return _LENGTH.pack(len(payload)) + payload


def _entries(entry: bytes, count: int) -> bytes:
    name = NUMBERED.encode()
    if name in entry:
        return b"".join([entry.replace(name, b"n%07d" % number) for number in range(count)])
    if len(entry) == _INT32.size:
        return struct.pack(f">{count}i", *range(count))
    return entry * count


def _count(count: int, *, flexible: bool) -> bytes:
    if not flexible:
        return _INT32.pack(count)
    data, value = bytearray(), count + 1
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _fill(module: str, message: Any, path: list[str], count: int, *, is_named: bool) -> None:
    """Put ``count`` equal entries at the end of ``path``; create the missing parts of the path."""
    within = SCHEMAS[module].sections["request"]
    for step, name in enumerate(path):
        field = next(each for each in within.fields if each.name == name)
        value = getattr(message, name)
        entry = _entry(module, field, value)
        if step == len(path) - 1:
            setattr(message, name, [_named(entry) if is_named else entry] * count)
            return
        assert field.struct is not None
        setattr(message, name, [entry] if field.is_array else entry)
        message, within = entry, field.struct


def _entry(module: str, field: Field, value: Any) -> Any:
    if value:
        return value[0] if field.is_array else value
    if field.struct is not None:
        return getattr(generated(module), field.struct.name)()
    return {"string": "", "uuid": bytes(16), "bytes": b""}.get(field.type, 0)


def _named(entry: Any) -> Any:
    if isinstance(entry, str):
        return NUMBERED
    for name in getattr(entry, "__slots__", ()):
        if isinstance(getattr(entry, name), str):
            setattr(entry, name, NUMBERED)
    return entry


async def fill_arrays(target: Target, seed: int, duration_s: float) -> Sent:
    """One request after the other on two connections at a time; answered, or refused by closing."""
    rng = random.Random(seed)
    every = places()
    rng.shuffle(every)
    every.sort(key=lambda place: tuple(place) not in FIRST)
    ahead = iter(every)
    until_s = time.monotonic() + duration_s
    sent = Sent()

    async def send_some() -> None:
        for place in ahead:
            # Without a name of its own, all of these would do.
            if time.monotonic() > until_s and tuple(place) not in FIRST:
                return
            if data := enormous(place, rng.choice((ENTRIES_MOST, ENTRIES_MOST, 100_000))):
                sent["requests"] += 1
                sent["MB"] += len(data) // 1_000_000
                await _send(target, place, data)

    await asyncio.gather(send_some(), send_some())
    return sent


async def _send(target: Target, place: Place, data: bytes) -> None:
    async with await target.connect() as peer:
        try:
            await peer.send(data)
        except ConnectionError:
            return
        peer.finish()
        ended, _ = await peer.hung_up(PATIENCE_S)
        target.expect(ended, f"neither answered nor refused: {place}")


def _session_request(topic: str, partitions: int) -> bytes:
    """A Fetch v11 that opens a session, as long as it may be."""
    one = FetchRequest(
        max_wait_ms=0,
        session_id=0,
        session_epoch=0,
        topics=[FetchTopic(topic, bytes(16), [FetchPartition(7, partition_max_bytes=1000)])],
    )
    small = frame(FETCH, 11, one)[4:]
    entry_bytes = 28  # partition, leader epoch, offset, log start offset, most bytes
    at = small.index(_INT32.pack(1) + _INT32.pack(7), small.index(topic.encode()))
    entry = small[at + 4 : at + 4 + entry_bytes]
    entries = b"".join([_INT32.pack(each) + entry[4:] for each in range(partitions)])
    payload = small[:at] + _INT32.pack(partitions) + entries + small[at + 4 + entry_bytes :]
    return _LENGTH.pack(len(payload)) + payload


async def open_sessions(target: Target, seed: int, duration_s: float) -> Sent:
    """Sessions of 900,000 partitions of a topic that does not exist, then of thousands each."""
    rng = random.Random(seed)
    sent = Sent()
    until_s = time.monotonic() + duration_s

    async def open_one(partitions: int) -> None:
        async with await target.connect() as peer:
            try:
                await peer.send(_session_request(f"nowhere-{rng.randrange(10)}", partitions))
            except ConnectionError:
                return
            peer.finish()
            ended, _ = await peer.hung_up(PATIENCE_S)
            target.expect(ended, "a Fetch was neither answered nor refused")
            sent["partitions in sessions"] += partitions
            sent["sessions"] += 1

    for _ in range(SESSIONS):
        await open_one(ENTRIES_MOST)
    while time.monotonic() < until_s or sent["sessions"] < 3 * SESSIONS:
        await open_one(rng.choice((ENTRIES_MOST, 100_000, 10_000, 1000, 1000)))
    return sent


SCENARIOS = (
    Scenario("absurd-arrays", fill_arrays, weight=2),
    Scenario("fetch-sessions", open_sessions),
)
