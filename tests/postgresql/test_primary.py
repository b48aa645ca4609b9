"""The result of a call is final, regardless of failures of servers and connections during
the call."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest

from barnabas.storage.errors import IndexClosed
from barnabas.storage.postgresql.durability import NotDurable
from barnabas.storage.postgresql.primary import QUIET_S, Primary
from barnabas.storage.replicated.log_index import Flush, IndexMisused, Item, Lane, Outcome
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import ROLE, Pair, Server
from tests.counterparts.probe import free_port
from tests.postgresql.links import Between, Links
from tests.postgresql.whole_index import WholeIndex
from tests.products import case
from tests.waiting import WAIT_S, wait_until

PATIENCE_S = 0.5
WAITING = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
OURS = "FROM pg_stat_activity WHERE application_name = 'barnabas'"
ADMITTED = "canceling"
"""The server's message when a statement or a wait is cancelled."""


class Writer:
    """A session that leads one partition and flushes an offset at a time."""

    def __init__(self, address, patience_s=PATIENCE_S):
        self.index = WholeIndex.open(address, patience_s=patience_s)
        self.index.add_partition(0)
        self.session = self.index.register(uuid4(), 1, "", 60_000)
        assert self.index.assign_one(0, self.session, -1)
        self.number = 0

    def flush(self):
        item = Item(0, 0, self.number, self.number + 1, 0, 1)
        answer = self.index.commit_flush(
            self.session, Flush(Lane.INLINE, self.number, [item], payload=b"x")
        )
        self.number += 1
        return answer.outcome


@pytest.fixture
def writer(pair):
    writing = Writer(pair.url)
    assert writing.flush() is Outcome.COMMITTED
    yield writing
    writing.index.close()


@contextmanager
def asking(index, call):
    """The answer to a call of an index, which comes on a thread."""
    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(call)
        except BaseException:
            index.close()
            raise


def flushing(writer):
    """The answer to a flush, which comes on a thread."""
    return asking(writer.index, writer.flush)


def is_whole(server, count):
    """Whether a server has as many offsets, each once."""
    extents = server.execute("SELECT base_offset, next_offset FROM barnabas.extents ORDER BY 1")
    return extents == [(offset, offset + 1) for offset in range(count)]


@pytest.mark.parametrize(
    "how",
    [case("pg_terminate_backend", in_test=True), case("pg_cancel_backend", in_test=False)],
)
def test_unreplicated_flush_whose_wait_was_cancelled_is_not_acknowledged(pair, writer, how):
    pair.standby.stop()
    with flushing(writer) as answer:
        pair.primary.wait_for(WAITING)
        failed = writer.index.attempts_failed
        pair.primary.execute(f"SELECT {how}(pid) {OURS} AND wait_event = 'SyncRep'")
        wait_until(lambda: writer.index.attempts_failed > failed)
        # The flush is visible, but only here. A terminated backend ends after a while, and an
        # attempt may have failed before because it was left.
        wait_until(lambda: is_whole(pair.primary, 2))
        pair.primary.wait_for(WAITING)
        assert not answer.done()
        pair.follow()
        assert answer.result() is Outcome.COMMITTED
    assert is_whole(pair.primary, 2)


def test_call_continues_at_the_next_primary(pair, writer):
    for number in range(2):
        pair.cut()
        with flushing(writer) as answer:
            pair.primary.wait_for(WAITING)
            pair.fail_over()
            assert answer.result() is Outcome.COMMITTED
        assert is_whole(pair.primary, number + 2)


def test_a_call_leaves_a_primary_that_was_replaced_and_lives(pair, writer):
    pair.cut()
    with flushing(writer) as answer:
        pair.primary.wait_for(WAITING)
        old = pair.split()
        assert answer.result() is Outcome.COMMITTED
    assert is_whole(pair.primary, 2)
    # The statement was left alone: no broker cancelled it.
    assert is_whole(old, 1)
    assert ADMITTED not in old.said()


def test_a_primary_that_falls_silent_is_left_once_another_takes_writes(pair):
    """However long one would wait for it alone."""
    writer = Writer(pair.url, patience_s=3600)
    assert writer.flush() is Outcome.COMMITTED
    pair.primary.pause()
    try:
        with flushing(writer) as answer:
            pair.standby.promote()
            assert answer.result(WAIT_S) is Outcome.COMMITTED
        assert writer.index.attempts_failed == 1
        assert is_whole(pair.standby, 2)
    finally:
        pair.primary.resume()
        writer.index.close()


def test_unresponsive_server_does_not_delay_the_search_for_the_primary(pair):
    """The unresponsive server may be the first, and the others may be in any state."""
    ports = f"{HOST}:{pair.primary.port},{HOST}:{pair.standby.port}"
    url = f"postgresql://{ROLE}@{ports}/postgres?load_balance_hosts=disable&connect_timeout=3600"
    writer = Writer(pair.url)
    pair.primary.pause()
    looking = Primary(url)
    try:
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(looking.execute, "SELECT pg_is_in_recovery()")
            pair.standby.promote()
            assert found.result(WAIT_S) == [(False,)]
    finally:
        pair.primary.resume()
        looking.close()
        writer.index.close()


def test_a_slow_primary_is_not_left_for_another_way_to_it(pair):
    """The primary would end the work of a statement again and again."""
    with Links() as links:
        port = free_port()
        links.listen(port, pair.primary.port, Between(1, "store"))
        ports = f"{HOST}:{pair.primary.port},{HOST}:{port}"
        url = f"postgresql://{ROLE}@{ports}/postgres?load_balance_hosts=disable"
        primary = Primary(url, patience_s=WAIT_S)
        (before,) = primary.execute("SELECT pg_backend_pid()")
        asked = f"SELECT pg_sleep({3 * QUIET_S}) IS NULL, pg_backend_pid()"
        ((_, after),) = primary.execute(asked)
        assert (primary.attempts_failed, (after,)) == (0, before)
        primary.close()


def test_closing_ends_the_search_for_a_primary(pair):
    pair.primary.stop()
    pair.standby.pause()
    looking = Primary(pair.url + "&connect_timeout=3600")
    try:
        with asking(looking, lambda: looking.execute("SELECT 1")) as answer:
            looking.close()
            with pytest.raises(IndexClosed):
                answer.result(WAIT_S)
    finally:
        pair.standby.resume()


def test_request_refused_by_a_replaced_primary_is_retried_at_the_next_one(pair, writer):
    """The former primary does not know the session that started since: its flush is no misuse."""
    pair.cut()
    pair.split()
    with closing(WholeIndex.open(pair.primary.url)) as other:
        session = other.register(uuid4(), 2, "", 60_000)
    flush = Flush(Lane.INLINE, 0, [Item(0, 0, 0, 1, 0, 1)], payload=b"x")
    with asking(writer.index, lambda: writer.index.commit_flush(session, flush)) as answer:
        assert answer.result(60).outcome is Outcome.REFUSED
    assert writer.index.attempts_failed


def test_error_of_a_former_primary_is_not_taken_as_final(pair, writer):
    """To a server without the newest flush the next one comes too early, like a bug in Barnabas."""
    pair.cut()
    pair.split()
    newest = Flush(Lane.INLINE, 1, [Item(0, 0, 1, 2, 0, 1)], payload=b"x")
    with closing(WholeIndex.open(pair.primary.url)) as other:
        assert other.commit_flush(writer.session, newest).outcome is Outcome.COMMITTED
    writer.number = 2
    with flushing(writer) as answer:
        assert answer.result(60) is Outcome.COMMITTED
    assert is_whole(pair.primary, 3)
    assert writer.index.attempts_failed


def test_a_look_at_a_primary_that_was_replaced_and_lives_shows_the_next_one(pair, writer):
    """A snapshot would stay the same forever if no later change followed."""
    seen = writer.index.snapshot(0).version
    pair.cut()
    pair.split()
    with closing(WholeIndex.open(pair.primary.url)) as other:
        session = other.register(uuid4(), 2, "", 60_000)
    with asking(writer.index, lambda: writer.index.snapshot(seen)) as answer:
        found = answer.result(WAIT_S)
    assert found.version > seen
    assert session in {each.session for each in found.members}


def test_a_refusal_of_a_primary_that_was_replaced_and_lives_is_not_believed(pair, writer):
    """A server without any record of a session confirms its end, too."""
    pair.cut()
    pair.split()
    with closing(WholeIndex.open(pair.primary.url)) as other:
        session = other.register(uuid4(), 2, "", 60_000)
    with asking(writer.index, lambda: writer.index.heartbeat(session, 60_000)) as answer:
        assert answer.result(WAIT_S)


@pytest.mark.parametrize(
    "read",
    [
        case(each, in_test=each in {"partition", "poll"})
        for each in ("partition", "extents", "beginnings", "poll")
    ],
)
def test_unconfirmed_read_is_not_returned(pair, writer, read):
    pair.cut()
    there = WholeIndex.open(pair.primary.url, patience_s=60)
    calls = {
        "partition": lambda: there.partition(0),
        "extents": lambda: there.extents(0, 0, most=9),
        "beginnings": lambda: there.beginnings([0], most=9, most_bytes=9),
        "poll": lambda: there.poll(0, writer.session, most_logs=9, most=9, most_bytes=9),
    }
    with flushing(writer) as answer:
        pair.primary.wait_for(WAITING)
        old = pair.split()
        assert answer.result() is Outcome.COMMITTED
    old.terminate_waiting()
    old.wait_for("SELECT count(*) = 2 FROM barnabas.extents")
    with asking(there, calls[read]) as reading:
        # An attempt to flush that was left may wait beside it.
        old.wait_for(f"{WAITING} AND query NOT LIKE '%commit_flush%'")
        assert not reading.done()
        there.close()
        with pytest.raises(IndexClosed):
            reading.result()


def test_a_call_survives_a_crash(pair, writer):
    with flushing(writer) as answer:
        pair.primary.crash()
        pair.primary.start()
        assert answer.result() is Outcome.COMMITTED
    assert writer.flush() is Outcome.COMMITTED
    assert is_whole(pair.primary, 3)


@pytest.mark.slow
def test_attempts_that_were_left_do_not_pile_up(pair, writer):
    pair.standby.stop()
    with flushing(writer) as answer:
        failed = writer.index.attempts_failed
        wait_until(lambda: writer.index.attempts_failed >= failed + 12)
        # The first, which waits for the standby, those of the last seconds, and the newest.
        pair.primary.wait_for(f"SELECT count(*) <= 8 {OURS}")
        # That of the newest attempt, which may have had another one: it did not come that far.
        wait_until(lambda: "commits wait for a synchronous standby" in writer.index.last_error)
        pair.follow()
        assert answer.result() is Outcome.COMMITTED
    assert writer.index.last_error == ""
    assert is_whole(pair.primary, 2)


def test_closing_ends_a_call_and_cancels_nothing(pair, writer):
    pair.standby.stop()
    with flushing(writer) as answer:
        pair.primary.wait_for(WAITING)
        writer.index.close()
        with pytest.raises(IndexClosed):
            answer.result()
    with pytest.raises(IndexClosed):
        writer.flush()
    pair.follow()
    pair.primary.wait_for("SELECT count(*) = 2 FROM barnabas.extents")
    assert ADMITTED not in pair.primary.said()


def test_an_interrupt_cancels_nothing(pair, writer):
    """Ctrl-C does so in the driver's own wait."""
    connection = writer.index._primary._connection

    def interrupt():
        pair.primary.wait_for(WAITING)
        raise KeyboardInterrupt

    pair.standby.stop()
    connection.attend = interrupt
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    pair.follow()
    pair.primary.wait_for("SELECT count(*) = 2 FROM barnabas.extents")
    assert ADMITTED not in pair.primary.said()


def test_an_asynchronous_standby_is_refused_at_the_start():
    with Pair(synchronous=False) as pair, pytest.raises(NotDurable, match="asynchronous"):
        WholeIndex.open(pair.url)


def test_nothing_is_answered_while_the_standby_is_found_asynchronous(pair, writer):
    pair.primary.set(synchronous_standby_names="")
    pair.primary.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
    pair.primary.wait_for(f"SELECT count(*) = 0 {OURS}")
    with flushing(writer) as answer:
        wait_until(lambda: "asynchronous" in writer.index.last_error)
        assert not answer.done()
        pair.primary.set(synchronous_standby_names="*")
        assert answer.result() is Outcome.COMMITTED
    assert is_whole(pair.primary, 2)


def test_a_call_says_that_it_waits_for_a_synchronous_standby(pair, writer):
    pair.standby.stop()
    with flushing(writer) as answer:
        wait_until(lambda: "commits wait for a synchronous standby" in writer.index.last_error)
        assert "(synchronous_standby_names = *)" in writer.index.last_error
        assert not answer.done()
        pair.standby.start()
        assert answer.result() is Outcome.COMMITTED
    assert writer.index.last_error == ""


def test_a_single_server_is_warned_of(pair):
    with Server() as server:
        index = WholeIndex.open(server.url)
        assert "one server" in index.warning
        index.close()
    index = WholeIndex.open(pair.url)
    assert index.warning is None
    index.close()


@pytest.mark.parametrize(("setting", "value"), [("fsync", "off"), ("synchronous_commit", "off")])
def test_settings_that_lose_commits_are_refused(setting, value):
    with Server(**{setting: value}) as server, pytest.raises(NotDurable, match=setting):
        WholeIndex.open(server.url)


def test_repeated_error_is_reported_in_one_line(pair):
    with closing(Primary(pair.url)) as primary, pytest.raises(IndexMisused) as told:
        primary.value(int, "SELECT nobody FROM barnabas.sessions_of_another_release")
    relation = "barnabas.sessions_of_another_release"
    # Without the statement, and where in it that was.
    assert str(told.value) == f'relation "{relation}" does not exist (error 42P01)'
