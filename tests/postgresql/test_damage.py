"""Damage in the server's data of one partition stays the damage of that partition alone."""

from __future__ import annotations

import contextlib
import random
import re
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.broker.cluster.start.exit_reasons import words_of_end
from barnabas.protocol.records import placed, read_header
from barnabas.storage.errors import Corrupt, StoreUnusable
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.postgresql.primary import READS_MOST
from barnabas.storage.replicated.cluster_index import Assignment, HandOver
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from tests.broker.cluster.reading import read_stored
from tests.counterparts.postgresql_servers import ROLE, Server
from tests.storage.stores import batch
from tests.waiting import WAIT_S, wait_until

DAMAGED = 3
PARTITIONS = range(8)
BATCHES = 12
"""The number of batches of each partition. Some pages of the store belong to one partition
alone."""
BATCH_BYTES = 1500
PAGE_BYTES = 8192


@pytest.fixture
def server():
    """One of which a test may do what it likes."""
    with Server() as running:
        yield running


@pytest.fixture
def base(server):
    with contextlib.closing(PostgreSqlBase(server.url, new_cluster_id="c", patience_s=5)) as made:
        yield made


class Leader:
    """A session that leads all partitions and has written to each of them."""

    def __init__(self, base: PostgreSqlBase) -> None:
        self.index = base.log_index()
        cluster = base.cluster_index()
        self.session = cluster.register(uuid4(), 1, "", 60_000)
        for each in PARTITIONS:
            self.index.add_partition(each)
        assignments = [Assignment(each, self.session, -1) for each in PARTITIONS]
        assert cluster.assign(assignments) == frozenset(PARTITIONS)
        self._flushes = 0
        for partition_id in PARTITIONS:
            for offset in range(BATCHES):
                assert self.append(partition_id, offset) is Outcome.COMMITTED

    def append(self, partition_id: int, offset: int) -> Outcome:
        value = random.Random(offset).randbytes(BATCH_BYTES)
        plain = bytes(batch(value=value))
        data = placed(plain, read_header(plain), offset, 0)
        item = Item(partition_id, 0, offset, offset + 1, 0, len(data))
        flush = Flush(Lane.INLINE, self._flushes, [item], payload=data)
        self._flushes += 1
        return self.index.commit_flush(self.session, flush).outcome


def damage(server: Server) -> None:
    """Overwrite a page on which nothing lies but what one partition has."""
    on_page = (
        "SELECT (object.ctid::text::point)[0]::integer AS page FROM barnabas.objects AS object"
        " JOIN barnabas.extents AS extent USING (object_id)"
        " GROUP BY page HAVING min(partition_id) = %s AND max(partition_id) = %s ORDER BY page"
    )
    ((page,), *_) = server.execute(on_page, DAMAGED, DAMAGED)
    ((path,),) = server.execute("SELECT pg_relation_filepath('barnabas.objects')")
    server.stop()
    with (server.data / path).open("r+b") as file:
        file.seek(page * PAGE_BYTES)
        file.write(b"\xff" * PAGE_BYTES)
    server.start()


def test_a_damaged_page_keeps_no_other_partition_from_being_read(server, base):
    leader = Leader(base)
    damage(server)
    logs = StoredLogs(base)
    logs.begin(leader.session)
    with ThreadPoolExecutor(len(PARTITIONS)) as threads:
        reading = {each: threads.submit(read_stored, logs, each, 0) for each in PARTITIONS}
        try:
            found = reading.pop(DAMAGED).exception(WAIT_S)
            read = [len(each.result(WAIT_S).batches) for each in reading.values()]
        finally:
            base.close()  # Ends what still waits.
    assert isinstance(found, Corrupt)
    assert f"partition {DAMAGED} in the store" in str(found)
    assert "invalid page in block" in str(found)
    assert read == [BATCHES] * len(reading)


def test_damaged_page_hides_no_new_records(server, base):
    """A look brings logs along where it can: that it cannot is no reason to show nothing."""
    leader = Leader(base)
    cluster = base.cluster_index()
    other = cluster.register(uuid4(), 2, "", 60_000)
    since = cluster.snapshot(0).version
    cluster.hand_over(leader.session, [HandOver(each, 0, other) for each in PARTITIONS])
    limits = {"most_logs": 99, "most": 99, "most_bytes": 1 << 30}
    assert len(cluster.poll(since, other, **limits).gained) == len(PARTITIONS)
    damage(server)
    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(cluster.poll, since, other, **limits)
        try:
            snapshot, gained = looking.result(WAIT_S)
        finally:
            if not looking.done():
                base.close()
    assert snapshot == cluster.snapshot(since)
    assert [each.session for each in snapshot.led] == [other] * len(PARTITIONS)
    assert list(gained) == []


def test_flushes_and_reads_continue_beside_a_damaged_page(server, base):
    leader = Leader(base)
    damage(server)
    logs = StoredLogs(base)
    logs.begin(leader.session)
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read_stored, logs, DAMAGED, 0)
        try:
            assert isinstance(reading.exception(WAIT_S), Corrupt)
        finally:
            if not reading.done():
                base.close()
    assert base.last_error == "", "the server answers"
    assert leader.append(0, BATCHES) is Outcome.COMMITTED
    assert len(read_stored(logs, 0, 0).batches) == BATCHES + 1
    logs.close()


READ_ERROR = 'could not read blocks 7..7 in file "base/5/16449": Input/output error'
FAILING = """
CREATE SEQUENCE public.read;
CREATE FUNCTION public.read(partition_id bigint, payload bytea) RETURNS bytea
STABLE LANGUAGE plpgsql AS $$ -- Else it is called for more rows than are read.
BEGIN
    IF partition_id = %(partition)s AND nextval('public.read') <= %(times)s THEN
        RAISE '%(message)s' USING ERRCODE = '%(code)s';
    END IF;
    RETURN payload;
END $$;
ALTER TABLE barnabas.objects RENAME TO kept;
CREATE VIEW barnabas.objects AS
    SELECT object_id, session_id, key, live_extents, size_bytes, footer_at, public.read((
        SELECT partition_id FROM barnabas.extents AS part WHERE part.object_id = kept.object_id
    ), payload) AS payload FROM barnabas.kept;
"""
MENDED = "DROP VIEW barnabas.objects; ALTER TABLE barnabas.kept RENAME TO objects"
ALWAYS = 1_000_000


def fail_to_read(server: Server, code: str, times: int) -> None:
    """Make ``times`` attempts to read one partition's data fail."""
    named = {"partition": DAMAGED, "times": times, "message": READ_ERROR, "code": code}
    server.execute(FAILING % named)


@pytest.mark.parametrize("code", ["58030", "58P01", "XX000", "42501"])
def test_read_error_of_a_disk_blocks_no_other_partition(server, base, code):
    leader = Leader(base)
    fail_to_read(server, code, ALWAYS)
    logs = StoredLogs(base)
    logs.begin(leader.session)
    with ThreadPoolExecutor(len(PARTITIONS)) as threads:
        reading = {each: threads.submit(read_stored, logs, each, 0) for each in PARTITIONS}
        try:
            found = reading.pop(DAMAGED).exception(WAIT_S)
            read = [len(each.result(WAIT_S).batches) for each in reading.values()]
        finally:
            if not all(each.done() for each in reading.values()):
                base.close()  # Ends what still waits.
    assert isinstance(found, Corrupt)
    assert f"partition {DAMAGED} in the store" in str(found)
    assert str(found).endswith(f"its disk fails, or the server itself (error {code}): {READ_ERROR}")
    assert read == [BATCHES] * len(reading)
    ((attempts,),) = server.execute("SELECT last_value FROM public.read")
    assert attempts <= 4 * READS_MOST, "not for ever"
    assert base.last_error == "", "the server answers"
    server.execute(MENDED)
    assert len(read_stored(logs, DAMAGED, 0).batches) == BATCHES
    logs.close()


def test_read_error_that_a_retry_clears_is_no_damage(server, base):
    leader = Leader(base)
    fail_to_read(server, "58030", READS_MOST - 1)
    logs = StoredLogs(base)
    logs.begin(leader.session)
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read_stored, logs, DAMAGED, 0)
        try:
            assert len(reading.result(WAIT_S).batches) == BATCHES
        finally:
            base.close()


def test_read_waits_while_the_system_denies_a_file_to_the_server(server, base):
    """A file that the system denies is like an unreadable disk: only requests that need it fail."""
    leader = Leader(base)
    ((path,),) = server.execute("SELECT pg_relation_filepath('barnabas.objects')")
    file = server.data / path
    mode = file.stat().st_mode
    server.stop()
    file.chmod(0)
    server.start()
    logs = StoredLogs(base)
    logs.begin(leader.session)
    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(read_stored, logs, DAMAGED, 0)
        flushing = threads.submit(leader.append, 0, BATCHES)
        try:
            found = reading.exception(WAIT_S)
            assert isinstance(found, Corrupt)
            assert re.search(rf"\(error 42501\): .*{path}.*: Permission denied$", str(found))
            wait_until(lambda: leader.index.attempts_failed > READS_MOST)
            # That of the newest attempt, which may not have come that far.
            wait_until(lambda: "(error 42501)" in leader.index.last_error)
            file.chmod(mode)
            assert flushing.result(WAIT_S) is Outcome.COMMITTED
        finally:
            file.chmod(mode)
            if not flushing.done():
                base.close()
    assert len(read_stored(logs, DAMAGED, 0).batches) == BATCHES
    logs.close()


PLAIN_ROLE = "plain"


def test_missing_privilege_ends_a_broker_with_one_line(server):
    """All partitions are meant, and nothing of it passes by itself."""
    server.execute(f"CREATE ROLE {PLAIN_ROLE} LOGIN")
    server.execute(f"GRANT CREATE ON DATABASE postgres TO {PLAIN_ROLE}")
    url = server.url.replace(f"//{ROLE}@", f"//{PLAIN_ROLE}@")
    with contextlib.closing(PostgreSqlBase(url, new_cluster_id="c", patience_s=5)) as base:
        leader = Leader(base)
        server.execute(f"REVOKE ALL ON barnabas.objects FROM {PLAIN_ROLE}")
        logs = StoredLogs(base)
        logs.begin(leader.session)
        for ask in (lambda: read_stored(logs, 1, 0), lambda: leader.append(0, BATCHES)):
            with pytest.raises(StoreUnusable) as told:
                ask()
            assert words_of_end(told.value) == (
                "the store of the cluster cannot be used any more:"
                " permission denied for table objects (error 42501)"
            )
        logs.close()


@pytest.mark.parametrize("code", ["XX001", "58030"])
def test_request_for_no_single_log_waits_until_damage_is_repaired(server, base, code):
    index = base.log_index()
    index.add_partition(0)
    server.execute("ALTER FUNCTION barnabas.read_partition RENAME TO repaired")
    server.execute(
        "CREATE FUNCTION barnabas.read_partition(bigint) RETURNS SETOF integer LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE 'invalid page in block 7' USING ERRCODE = '{code}'; END $$"
    )
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(index.partition, 0)
        try:
            wait_until(lambda: index.attempts_failed > READS_MOST)
            # That of the newest attempt, which may not have come that far.
            wait_until(lambda: index.last_error.endswith("invalid page in block 7"))
            server.execute(
                "BEGIN; DROP FUNCTION barnabas.read_partition;"
                " ALTER FUNCTION barnabas.repaired RENAME TO read_partition; COMMIT"
            )
            assert asking.result(WAIT_S) == (None, -1, 0, 0)
        finally:
            base.close()
    assert index.last_error == ""
