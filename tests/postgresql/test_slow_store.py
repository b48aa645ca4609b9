"""A store that is slow, or far away, responds in the end to every request."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from barnabas.broker.cluster.membership.durable_logs import StoredLogs
from barnabas.protocol.records import placed, read_header
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from tests.broker.cluster.reading import read_stored
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import ROLE, Server
from tests.counterparts.probe import free_port
from tests.postgresql.links import Between, Links
from tests.storage.stores import batch
from tests.waiting import WAIT_S

PATIENCE_S = 0.5
PATIENT_S = 5.0
"""A timeout that a busy machine does not reach by a pause."""
BATCHES = 12
BATCH_BYTES = 50_000
READ_BYTES_PER_S = int(BATCHES * BATCH_BYTES / (2 * PATIENT_S))
"""All of a log takes twice as long as an attempt may be silent, and comes in many pieces."""
WRITTEN_BYTES_PER_S = 500_000
LINK = Between(1, "store")
ALL = {"most": 99, "most_bytes": 1 << 24}


class Leader:
    """A session that leads a partition."""

    def __init__(self, base: PostgreSqlBase) -> None:
        self.index = base.log_index()
        self.cluster = base.cluster_index()
        self.session = self.cluster.register(uuid4(), 1, "", 60_000)
        self.index.add_partition(0)
        assert self.cluster.assign([Assignment(0, self.session, -1)])

    def append(self, offset: int, size: int = BATCH_BYTES) -> None:
        """A flush of one batch."""
        plain = bytes(batch(value=random.Random(offset).randbytes(size)))
        data = placed(plain, read_header(plain), offset, 0)
        flush = Flush(Lane.INLINE, offset, [Item(0, 0, offset, offset + 1, 0, len(data))], (), data)
        assert self.index.commit_flush(self.session, flush).outcome is Outcome.COMMITTED


@pytest.fixture
def server() -> Iterator[Server]:
    """One of which a test may do what it likes."""
    with Server() as running:
        yield running


@pytest.fixture
def leader(server: Server) -> Iterator[Leader]:
    """Yield a leader that has written a log over a quick link."""
    with contextlib.closing(PostgreSqlBase(server.url, new_cluster_id="c")) as base:
        leader = Leader(base)
        for offset in range(BATCHES):
            leader.append(offset)
        yield leader


@pytest.fixture
def links() -> Iterator[Links]:
    with Links() as running:
        yield running


@pytest.fixture
def far(server: Server, links: Links, patience_s: float) -> Iterator[PostgreSqlBase]:
    """The same store, behind a link."""
    port = free_port()
    links.listen(port, server.port, LINK)
    url = f"postgresql://{ROLE}@{HOST}:{port}/postgres"
    made = PostgreSqlBase(url, new_cluster_id="c", patience_s=patience_s)
    with contextlib.closing(made):
        yield made


@pytest.fixture
def patience_s() -> float:
    """Return the maximum silence of an attempt."""
    return PATIENCE_S


patient = pytest.mark.parametrize("patience_s", [PATIENT_S])
"""For tests that count attempts: a machine that pauses for a moment is no slow link."""


def answer_of(base: PostgreSqlBase, call: Callable[[], object]) -> object:
    """Return the response to a call, with a limit on the wait."""
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(call)
        try:
            return asking.result(WAIT_S)
        finally:
            if not asking.done():
                base.close()


@patient
def test_over_a_slow_link_what_is_read_comes_at_once(leader, far, links):
    """The read may take any time as long as data arrives: a retry would restart it."""
    one, other = far.log_index(), far.log_index()
    links.slow(LINK, READ_BYTES_PER_S)  # Of each connection.
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(answer_of, far, lambda: one.extents(0, 0, **ALL))
        (beginning,) = answer_of(far, lambda: other.beginnings([0], **ALL))
        extents = reading.result(WAIT_S)
    assert [each.base_offset for each in extents] == [*range(BATCHES)]
    assert beginning.extents == extents
    assert (one.attempts_failed, other.attempts_failed) == (0, 0)


def test_over_a_slow_link_what_is_written_goes_at_once(server, leader, links):
    """Long before it has gone it lies in the system's buffers, all of it, and nothing comes."""
    port = free_port()
    links.listen(port, server.port, LINK)
    url = f"postgresql://{ROLE}@{HOST}:{port}/postgres"
    with contextlib.closing(PostgreSqlBase(url, new_cluster_id="c", patience_s=PATIENT_S)) as far:
        leader.index = far.log_index()
        links.slow(LINK, WRITTEN_BYTES_PER_S)
        answer_of(far, lambda: leader.append(BATCHES, int(2 * PATIENT_S * WRITTEN_BYTES_PER_S)))
        assert leader.index.attempts_failed == 0, leader.index.last_error


@patient
def test_bytes_come_as_they_are(leader, far, links):
    """Bytes are not sent as twice as many digits."""
    index = far.log_index()
    for ask in (
        lambda: index.extents(0, 0, **ALL),
        lambda: index.beginnings([0], **ALL),
        lambda: far.cluster_index().poll(1, leader.session, most_logs=9, **ALL),
    ):
        before = links.passed_bytes(LINK)
        assert answer_of(far, ask)
        assert (
            BATCHES * BATCH_BYTES
            < links.passed_bytes(LINK) - before
            < 1.2 * (BATCHES * BATCH_BYTES)
        )


SLOW = """
CREATE FUNCTION public.slowly(payload bytea) RETURNS bytea
STABLE LANGUAGE plpgsql AS $$ -- Else it is called for more rows than are read.
BEGIN
    PERFORM pg_sleep(%(pause_s)s);
    RETURN payload;
END $$;
ALTER TABLE barnabas.objects RENAME TO kept;
CREATE VIEW barnabas.objects AS
    SELECT object_id, session_id, key, live_extents, size_bytes, footer_at,
        public.slowly(payload) AS payload
    FROM barnabas.kept;
"""


def test_a_server_that_is_too_slow_is_asked_for_less(server, leader, far):
    """The server sends no row before it has read all: a client cannot know whether it is alive."""
    server.execute(SLOW % {"pause_s": PATIENCE_S / 5})
    logs = StoredLogs(far)
    logs.begin(leader.session)
    log = answer_of(far, lambda: read_stored(logs, 0, 0))
    assert len(log.batches) == BATCHES
    logs.close()


def test_a_look_at_a_server_that_is_too_slow_shows_who_leads(server, leader, far):
    server.execute(SLOW % {"pause_s": PATIENCE_S / 5})
    cluster = far.cluster_index()
    look = answer_of(far, lambda: cluster.poll(1, leader.session, most_logs=9, **ALL))
    assert [each.session for each in look.snapshot.led] == [leader.session]
    assert look.gained == []
