"""A broker that has seen a newer state stops at a store that was restored to an older moment."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.postgresql.base import PostgreSqlBase
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from barnabas.testing import Broker
from tests.cluster.watched import WatchedCluster
from tests.counterparts.postgresql_servers import Server, own, run
from tests.waiting import wait_until

LOST = "it has lost what it had confirmed"
TOPIC = "t"


class Moment:
    """A server's files as they are, to which it can be restored once."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._files = server.directory / "backup"
        server.stop()
        shutil.copytree(server.data, self._files)
        server.start()

    def restore(self) -> None:
        """Restore the server's state of that time; all connections end."""
        self._server.stop()
        shutil.rmtree(self._server.data)
        self._files.rename(self._server.data)
        own(self._server.data)
        self._server.start()


class Peer:
    """A broker's parts in a store: a session that leads a partition, and all its connections."""

    def __init__(self, address: str, number: int) -> None:
        self.base = PostgreSqlBase(address, new_cluster_id="b3V0c2lkZS1hLWNsdXN0ZQ", patience_s=60)
        self.number = number
        self.cluster = self.base.cluster_index()
        self.log = self.base.log_index()
        self.metadata = self.base.metastore(number)
        self.session = -1
        self.flushes = 0

    def begin(self) -> None:
        self.session = self.cluster.register(uuid4(), self.number, "", 600_000)
        self.flushes = 0

    def lead(self) -> None:
        self.log.add_partition(self.number)
        assert self.cluster.assign([Assignment(self.number, self.session, -1)])

    def flush(self) -> Outcome:
        item = Item(self.number, 0, self.flushes, self.flushes + 1, 0, 1)
        flush = Flush(Lane.INLINE, self.flushes, [item], payload=b"x")
        answer = self.log.commit_flush(self.session, flush)
        self.flushes += 1
        return answer.outcome

    def look(self) -> None:
        self.cluster.snapshot(0)

    def close(self) -> None:
        self.base.close()

    def change(self) -> None:
        self.metadata.set_broker_configs("", {"log.retention.ms": str(self.number)})


@contextlib.contextmanager
def peers(address: str, count: int) -> Iterator[list[Peer]]:
    """Brokers that lead a partition each, and know of each other."""
    with contextlib.ExitStack() as stack:
        found = []
        for number in range(1, count + 1):
            found.append(stack.enter_context(contextlib.closing(Peer(address, number))))
            found[-1].begin()
            found[-1].lead()
            assert found[-1].flush() is Outcome.COMMITTED
        for each in found:
            each.look()
        yield found


def answers(peer: Peer) -> None:
    """Query the store over all connections."""
    assert peer.cluster.heartbeat(peer.session, 600_000)
    assert peer.log.partition(peer.number).log_end_offset == peer.flushes
    peer.metadata.load()


def refuses(peer: Peer, why: str) -> None:
    """See that no way answers, and no new one is opened."""
    for ask in (
        lambda: peer.cluster.heartbeat(peer.session, 600_000),
        lambda: peer.log.partition(peer.number),
        peer.flush,
        peer.metadata.load,
        peer.base.log_index,
    ):
        with pytest.raises(StoreUnusable, match=LOST) as refused:
            ask()
        assert why in str(refused.value)


def test_broker_that_saw_lost_commits_gets_no_more_results():
    with Server() as server, peers(server.url, 7) as brokers:
        unconcerned, flushed, looked, changed, reads, anew, renewed = brokers
        moment = Moment(server)
        assert flushed.flush() is Outcome.COMMITTED
        changed.change()
        reads.metadata.load()
        looked.cluster.want({looked.number: 1})
        looked.look()
        anew.begin()  # Without a commit that another broker saw.
        renewed.begin()
        renewed.look()
        moment.restore()
        answers(unconcerned)
        refuses(flushed, f"2 flushes of session {flushed.session}, 1 are there")
        refuses(looked, "of its cluster")
        refuses(changed, "of its metadata")
        refuses(reads, "of its metadata")
        refuses(renewed, "of its cluster")
        # Ids of sessions are given out again.
        while unconcerned.session < anew.session:
            unconcerned.begin()
        assert unconcerned.session == anew.session
        refuses(anew, f"session {anew.session} is another broker's")
        with contextlib.closing(Peer(server.url, 9)) as started_later:
            assert started_later.log.partition(flushed.number).log_end_offset == 1
        server.execute("DROP SCHEMA barnabas CASCADE")
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'barnabas'"
        )
        refuses(unconcerned, "all of it")


def test_tables_that_are_put_back_under_open_connections_are_noticed():
    with Server() as server, peers(server.url, 3) as brokers:
        renews, begins, unconcerned = brokers
        copy = server.directory / "copy"
        database = f"--dbname={server.url}"
        run("pg_dump", "--format=custom", database, f"--file={copy}", output=server.output)
        for each in (renews, begins):
            assert each.flush() is Outcome.COMMITTED
        run("pg_restore", "--clean", "--exit-on-error", database, copy, output=server.output)
        for ask in (lambda: renews.cluster.heartbeat(renews.session, 600_000), begins.begin):
            with pytest.raises(StoreUnusable, match=LOST) as refused:
                ask()
            assert "(2 flushes of session" in str(refused.value)
        answers(unconcerned)


def test_no_failover_takes_anything_back_and_a_primary_that_was_replaced_and_lives_is_left(pair):
    """A result needs the confirmation of a standby: the old primary lacks later commits, too."""
    with peers(pair.url, 2) as brokers:
        for each in brokers:
            assert each.flush() is Outcome.COMMITTED
            each.cluster.want({each.number: each.number})
            each.look()
            each.change()
        pair.fail_over()
        for each in brokers:
            answers(each)
        old = pair.split()
        (first, _) = brokers
        assert first.flush() is Outcome.COMMITTED
        first.begin()
        first.look()
        for _ in range(6):  # The first of the hosts is one or the other.
            assert first.base.cluster_index().heartbeat(first.session, 600_000)
        old.wait_for(f"SELECT max(session_id) < {first.session} FROM barnabas.sessions")
        # Statements left there wait behind the first of them. This query waits, too.
        waits = "FROM pg_stat_activity WHERE query LIKE '%pg_advisory_xact_lock(336114%'"
        old.wait_for(f"SELECT count(*) <= 2 {waits}")


class Store:
    """Stands where ``MemoryStore`` does for brokers in this process."""

    def __init__(self, address: str) -> None:
        self.address = address

    def base(self, *_: object) -> PostgreSqlBase:
        return PostgreSqlBase(self.address, new_cluster_id="b3V0c2lkZS1hLWNsdXN0ZQ")


def send(broker: Broker, value: bytes) -> int:
    with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
        return producer.send(TOPIC, value).get(60).offset


def test_a_broker_ends_where_its_store_was_restored_and_starts_with_what_is_there(caplog):
    with Server() as server, WatchedCluster(1, store=Store(server.url)) as cluster:
        cluster.create_topic(TOPIC)
        (broker,) = cluster.brokers
        assert send(broker, b"kept") == 0
        moment = Moment(server)
        assert send(broker, b"lost") == 1
        moment.restore()
        wait_until(lambda: broker.server.failure is not None)
        assert isinstance(broker.server.failure, StoreUnusable)
        (line,) = [each.getMessage() for each in caplog.records if each.levelname == "CRITICAL"]
        assert line.startswith(
            f"broker stops: the store of the cluster cannot be used any more: {LOST} ("
        )
        cluster.kill(0, expire=False)
        cluster.restart(0)
        assert [each.value for each in cluster.records(TOPIC).result] == [b"kept"]
        assert send(broker, b"new") == 1
