"""A broker whose PostgreSQL has no room: it acknowledges nothing, logs the reason, and continues
afterwards.

The tests of this file are those that mount a small file system of their own, which only root may:
`make controls`. In every run a server that only reports a full disk stands for them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import PRODUCE
from tests.broker.data_plane import Named, Wire, batch, list_offsets_request, produce_request
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import Server, own
from tests.postgresql.brokers import Member, running
from tests.waiting import wait_until

TOPIC = Named("orders")
BYTES = 60_000
"""Size of a record; it is not compressed."""
MOST_RECORDS = 400
AWAY = "the store of the cluster does not answer: "
BACK = "the store of the cluster answers again"
LATEST = -1


def goes_on_once_there_is_room(
    directory: Path,
    server: Server,
    fill: Callable[[], object],
    make_room: Callable[[], object],
    words: str,
) -> None:
    """Write until no record is acknowledged, make room, and find each record once.

    ``words``: the broker's log line about the server while that has no room.
    """
    member = Member(directory, server.url)
    with running([member]), Wire((HOST, member.port), timeout_s=60) as wire:
        wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name=TOPIC.name)]), 12)
        wait_until(lambda: produced(wire, 0), "the topic is made, and led")
        sessions = sessions_of(server)
        fill()
        written, is_away = 1, False
        while not is_away:
            assert written < MOST_RECORDS, "there is room"
            wire.send(PRODUCE, request(written), 9)
            wait_until(lambda: not wire.silent(0.01) or AWAY in output_of(member))
            is_away = wire.silent()
            written += not is_away and code_of(wire.receive()) == 0
        # Reads continue, and return durable records only.
        with Wire((HOST, member.port)) as other:
            assert end(other) in {written, LATEST}
        assert member.is_running
        make_room()
        assert code_of(wire.receive()) == 0
        written += 1
        # At once, or with the next heartbeat if the server was unavailable for longer than a lease.
        wait_until(lambda: produced(wire, written))
        # The end is unknown while the lease has expired because a busy machine delayed its renewal.
        wait_until(lambda: end(wire) == written + 1, lambda: f"{end(wire)}, {written + 1} written")
        wait_until(lambda: BACK in output_of(member))
        said = [line for line in output_of(member).splitlines() if AWAY in line]
        assert len(said) == 1
        assert words in said[0]
        assert sessions_of(server) == sessions
        member.kill()
        member.restart()
        with Wire((HOST, member.port)) as other:
            wait_until(lambda: end(other) == written + 1, "all of it is there")


def request(number: int) -> object:
    return produce_request(9, TOPIC, (0, batch(b"%d:" % number + os.urandom(BYTES))))


def output_of(member: Member) -> str:
    """All that it has said."""
    return member.output(limit=1 << 20)


def code_of(answer: object) -> int:
    return answer.responses[0].partition_responses[0].error_code


def produced(wire: Wire, number: int) -> bool:
    """Whether a record was acknowledged."""
    return code_of(wire.ask(PRODUCE, request(number), 9)) == 0


def end(wire: Wire) -> int:
    """Return the end of the partition, or LATEST if the broker does not report it."""
    answer = wire.ask(LIST_OFFSETS, list_offsets_request(TOPIC.name, (0, LATEST)), 7)
    return answer.topics[0].partitions[0].offset


def sessions_of(server: Server) -> list[tuple[int]]:
    return server.execute("SELECT session_id FROM barnabas.sessions ORDER BY 1")


class SmallDisk:
    """A file system with little room, which can be filled."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._filler = directory / "filler"

    def fill(self, left_bytes: int) -> None:
        """Fill the disk until ``left_bytes`` are free."""
        found = os.statvfs(self.directory)
        with self._filler.open("wb") as file:
            file.write(bytes(found.f_bavail * found.f_frsize - left_bytes))

    def make_room(self) -> None:
        self._filler.unlink()


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    # Not below pytest's own, into which PostgreSQL's user may not go.
    with tempfile.TemporaryDirectory(prefix="small-disk-") as name:
        directory = Path(name)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", directory], check=True)
        try:
            own(directory)
            yield SmallDisk(directory)
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)


def test_a_table_that_cannot_grow(tmp_path, disk):
    """Each flush fails; leases and all small statements continue."""

    def fill() -> None:
        place = disk.directory / "tables"
        place.mkdir()
        own(disk.directory)
        server.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        server.execute("ALTER TABLE barnabas.objects SET TABLESPACE small")
        disk.fill(10 * BYTES)

    with Server() as server:
        words = "No space left on device"
        goes_on_once_there_is_room(tmp_path / "broker", server, fill, disk.make_room, words)


def test_a_write_ahead_log_that_cannot_grow(tmp_path, disk):
    """The server ends by itself, and the test starts it again after making room."""

    def start_again() -> None:
        wait_until(lambda: not server.is_running)
        disk.make_room()
        server.start()

    server = Server().make()
    shutil.move(server.data / "pg_wal", disk.directory / "pg_wal")
    (server.data / "pg_wal").symlink_to(disk.directory / "pg_wal")
    own(disk.directory)
    with server:
        goes_on_once_there_is_room(
            tmp_path / "broker", server, lambda: disk.fill(20 * BYTES), start_again, ""
        )
