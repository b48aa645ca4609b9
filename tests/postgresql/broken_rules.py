"""Whole brokers over PostgreSQL with one rule of their flushes broken: the judge must see it.

Each test is a script that runs twice. With the rule intact the history of the clients is right.
With the rule removed, the same judge reports the fault, or a broker finds that its flush does not
fit and ends. The brokers are killed before the judgement: their memory may differ from the
database.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from barnabas.protocol.messages.list_offsets import LIST_OFFSETS
from tests.broker.data_plane import list_offsets_request
from tests.counterparts.broker_process import HOST
from tests.counterparts.postgresql_servers import Pair
from tests.history import checker
from tests.history.anomalies import GONE, UNSEEN
from tests.postgresql.broken_flushes import ANSWER_FROM_A_READ, NO_COMPARE, break_flush
from tests.postgresql.brokers import Member, running, start
from tests.seeds import SEED
from tests.waiting import wait_until
from tests.workload.routing import Found, Led, Lost
from tests.workload.scripted import Writer, judged
from tests.workload.wire_client import LATEST

BROKERS = 2
FLUSHES = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%commit_flush%'"
FLUSH_FOR_LOCK = f"SELECT count(*) > 0 {FLUSHES} AND wait_event_type = 'Lock'"
FLUSHES_FOR_STANDBY = f"SELECT pid {FLUSHES} AND wait_event = 'SyncRep'"

pytestmark = pytest.mark.parametrize("is_broken", [False, True], ids=["whole", "broken"])


class Stage:
    """Brokers, their servers, and a topic of one partition that each test creates."""

    def __init__(self, pair: Pair, members: list[Member]) -> None:
        self.pair = pair
        self.members = members
        self.addresses = [(HOST, each.port) for each in members]
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(1)

    def begin(self) -> None:
        """Make a topic, and write the first record to it."""
        self.place = Led(f"topic-{next(self._numbers)}", 0)
        servers = self.members[0].bootstrap_servers
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.create_topics([NewTopic(self.place.topic, 1, 1)])
        self.writer = Writer(f"writer-of-{self.place.topic}", self.addresses, SEED, self.place)
        self.write().result(60)

    def write(self) -> Future[None]:
        """Write one record more, on a thread."""

        return self._threads.submit(self.writer.once)

    def leader(self) -> int:
        """Return which broker leads the partition."""
        return self.addresses.index(self.writer.routing.find(self.place).address)

    def row(self) -> tuple[int, int, int]:
        """Return the partition's id, its leader's session, and its epoch."""
        ((partition_id, session, epoch),) = self.pair.primary.execute(
            "SELECT partition_id, leader_session, leader_epoch FROM barnabas.partitions"
            " JOIN barnabas.topic_partitions USING (partition_id)"
            " JOIN barnabas.topics USING (topic_id) WHERE name = %s",
            self.place.topic,
        )
        return partition_id, session, epoch

    def take(self, number: int) -> None:
        """Move the partition to the other broker, and wait until it serves it."""
        partition_id, session, epoch = self.row()
        ((other,),) = self.pair.primary.execute(
            "SELECT session_id FROM barnabas.sessions WHERE state = 'live' AND session_id <> %s",
            session,
        )
        self.pair.primary.execute(
            "SELECT barnabas.assign(ARRAY[%s], ARRAY[%s], ARRAY[%s])", partition_id, other, epoch
        )
        wait_until(lambda: self._serves(number))

    def waiting_flush(self) -> int:
        """Wait until a flush waits for the standby; return the process that has it."""
        found: list[tuple[int]] = []

        def is_there() -> bool:
            found[:] = self.pair.primary.execute(FLUSHES_FOR_STANDBY)
            return bool(found)

        wait_until(is_there)
        return found[0][0]

    def judge(self, wrong: set[str]) -> None:
        """Kill and start all brokers, and judge the writer's acknowledgements."""
        for each in self.members:
            each.kill()
        start(self.members)
        history, report = judged(self.addresses, [self.writer], [self.place])
        print("\n".join(checker.lines(report, history)))
        assert report.anomalies == wrong

    def end(self) -> None:
        """Restore the function for the next test."""
        self.writer.routing.close()
        break_flush(self.pair.primary, {})
        ended = [each for each in self.members if not each.is_running]
        if ended:
            start(ended)

    def _serves(self, number: int) -> bool:
        request = list_offsets_request(self.place.topic, (0, LATEST))
        routing = Writer("look", self.addresses, SEED, self.place).routing
        try:
            answer = routing.ask_at(self.addresses[number], LIST_OFFSETS, request, 7)
        except Lost:
            return False
        finally:
            routing.close()
        return answer.topics[0].partitions[0].error_code == 0


@pytest.fixture(scope="module")
def brokers(tmp_path_factory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("brokers")
    # A broker that leads no more than the other keeps its partitions.
    settings = {"auto.leader.rebalance.enable": "false"}
    with Pair() as pair:
        members = [
            Member(directory / f"broker-{number}", pair.url, **settings)
            for number in range(BROKERS)
        ]
        with running(members):
            yield Stage(pair, members)


@pytest.fixture
def stage(brokers) -> Iterator[Stage]:
    brokers.begin()
    yield brokers
    brokers.end()


def test_without_the_compare_two_write_f1(stage, is_broken):
    """A flush is on its way when its partition is taken, and is overtaken there."""
    former = stage.leader()
    (present,) = {*range(BROKERS)} - {former}
    if is_broken:
        break_flush(stage.pair.primary, NO_COMPARE)
    _, session, _ = stage.row()
    with stage.pair.primary.connect() as holder, holder.transaction():
        holder.execute("SELECT 1 FROM barnabas.lanes WHERE session_id = %s FOR UPDATE", [session])
        written = stage.write()
        stage.pair.primary.wait_for(FLUSH_FOR_LOCK)
        stage.take(present)
        written.result(60)
    if is_broken:
        wait_until(lambda: not stage.members[former].is_running)
        assert "does not begin where its logs end" in stage.members[former].output()
    else:
        stage.writer.routing._found[stage.place] = Found(stage.addresses[former])
        stage.write().result(60)
        assert stage.members[former].is_running
    stage.judge(set())


def test_an_answer_from_a_read_loses_what_was_acknowledged_f3(stage, is_broken):
    """The waiting statement is terminated, and the broker queries its flush once more."""
    if is_broken:
        break_flush(stage.pair.primary, ANSWER_FROM_A_READ)
    stage.pair.cut()
    written = stage.write()
    former = stage.waiting_flush()
    stage.pair.primary.terminate_waiting()
    if is_broken:
        written.result(60)
    else:
        wait_until(lambda: stage.waiting_flush() != former)
    stage.pair.fail_over()
    written.result(60)
    stage.judge({GONE, UNSEEN} if is_broken else set())


def test_an_asynchronous_standby_loses_what_was_acknowledged(stage, is_broken):
    """The standby receives no more, no commit waits for it, and it is promoted."""
    stage.pair.cut()
    if is_broken:
        stage.pair.primary.set(synchronous_standby_names="")
    written = stage.write()
    if is_broken:
        written.result(60)
    else:
        stage.waiting_flush()
    stage.pair.fail_over()
    written.result(60)
    stage.judge({GONE, UNSEEN} if is_broken else set())
