"""Whether a partition is led here still: asked of the store before an old answer could do harm."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.coordinating.leadership_check import LOOK_EVERY_MS, LeadershipCheck
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.broker.runtime.clock import ManualClock
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.offset_fetch import OFFSET_FETCH
from barnabas.storage.errors import IndexClosed
from barnabas.storage.replicated.log_index import PartitionState
from barnabas.storage.runtime.threads import new_queue
from tests.broker.data_plane import Named, Wire
from tests.broker.handlers.test_group_offsets import Client
from tests.broker.moves import Held, key_at, lead, led_cluster, log_of, seize
from tests.broker.raw_producer import RawProducer
from tests.requests import fetch_offsets_request
from tests.seeds import SEED
from tests.waiting import until, wait_until
from tests.worlds import world

__all__ = ["world"]

SESSION = 5
LEASE_S = 10
DATA, GROUP = Named("data"), key_at(0, "g")


class Rows:
    """The store, which answers each read when a test lets it."""

    def __init__(self) -> None:
        self.rows: dict[int, PartitionState] = {}
        self.reads: list[int] = []
        self._may_answer = new_queue()
        self._is_closed = False

    def led(self, partition_id: int, session: int, epoch: int) -> None:
        self.rows[partition_id] = PartitionState(session, epoch, 0, 0)

    def partition(self, partition_id: int) -> PartitionState | None:
        self.reads.append(partition_id)
        self._may_answer.get()
        if self._is_closed:
            raise IndexClosed
        return self.rows.get(partition_id)

    def answer(self, count: int = 1) -> None:
        for _ in range(count):
            self._may_answer.put(None)

    def close(self) -> None:
        self._is_closed = True
        self.answer(100)


class Checked:
    """One broker that leads partition 1 in epoch 3, as far as it knows."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.clock = ManualClock()
        self.failures: list[BaseException] = []
        self.flushes = 0
        self.host = SimpleNamespace(
            loop=asyncio.get_running_loop(),
            clock=self.clock,
            flush_answers=self._flush,
            fatal=self.failures.append,
        )
        self.logs = SimpleNamespace(logs={1: SimpleNamespace(leader_epoch=3)})
        self.session: int | None = SESSION
        self.may_serve = True
        self.told: list[tuple[object, bool]] = []
        self.check = LeadershipCheck(
            self.host, self.rows, self.logs, lambda: self.session, lambda: self.may_serve
        )
        self.rows.led(1, SESSION, 3)

    def _flush(self) -> None:
        self.flushes += 1

    def ask(self, who: object, partition_id: int = 1) -> None:
        self.check.check(partition_id, lambda is_led: self.told.append((who, is_led)))

    async def outcome(self) -> bool:
        """Send one check, and complete the read of the store."""
        before = len(self.told)
        self.ask("one")
        self.rows.answer()
        await until(lambda: len(self.told) > before)
        return self.told[-1][1]


@pytest.fixture
async def checked():
    found = Checked()
    yield found
    found.check.close()
    assert found.failures == []


class TestOutcomes:
    async def test_check_succeeds_for_current_leader_only(self, checked):
        assert await checked.outcome()
        assert checked.flushes == 1
        checked.rows.led(1, SESSION, 4)
        assert not await checked.outcome(), "it was led elsewhere in between"
        checked.rows.led(1, SESSION + 1, 3)
        assert not await checked.outcome(), "another session"
        checked.rows.led(1, SESSION, 3)
        assert await checked.outcome()
        checked.session = None
        assert not await checked.outcome(), "the session is over, and that is known already"
        checked.session = SESSION
        del checked.rows.rows[1]
        assert not await checked.outcome(), "deleted"
        checked.rows.led(1, SESSION, 3)
        checked.logs.logs.clear()
        assert not await checked.outcome(), "let go of"

    async def test_without_a_lease_the_store_is_not_asked(self, checked):
        checked.may_serve = False
        checked.ask("one")
        await until(lambda: checked.told)
        assert checked.told == [("one", False)]
        assert checked.rows.reads == []

    async def test_a_lease_that_ends_during_the_read(self, checked):
        checked.ask("one")
        await until(lambda: checked.rows.reads)
        checked.may_serve = False
        checked.rows.answer()
        await until(lambda: checked.told)
        assert checked.told == [("one", False)]

    async def test_leadership_checks_fail_when_lease_expires(self, checked):
        checked.ask("before")
        await until(lambda: checked.rows.reads)
        checked.ask("behind")
        checked.clock.advance(seconds=LOOK_EVERY_MS / 1000)
        assert checked.told == []
        checked.may_serve = False
        checked.clock.advance(seconds=LOOK_EVERY_MS / 1000)
        assert checked.told == [("before", False), ("behind", False)]
        checked.may_serve = True
        checked.ask("later")
        checked.rows.answer(2)
        await until(lambda: len(checked.told) == 3)
        assert checked.told[2] == ("later", True)

    async def test_failing_callback_does_not_delay_other_checks(self, checked, caplog):
        def fail(_is_led: bool) -> None:
            raise OSError("of who waits")

        checked.check.check(1, fail)
        checked.ask("behind")
        checked.rows.answer()
        await until(lambda: checked.told)
        assert checked.told == [("behind", True)]
        assert await checked.outcome(), "the next read begins"
        assert "of who waits" in caplog.text

    async def test_close_ends_read_without_callbacks(self, checked):
        checked.ask("one")
        await until(lambda: checked.rows.reads)
        checked.check.close()
        for _ in range(20):
            await asyncio.sleep(0)
        assert checked.told == []


class TestSharing:
    async def test_check_during_read_waits_for_next_read(self, checked):
        checked.ask("a")
        checked.ask("b")
        await until(lambda: checked.rows.reads == [1])
        for who in "cde":
            checked.ask(who)
        checked.rows.led(1, SESSION + 1, 4)  # The read under way has a and b, and not c.
        checked.rows.answer()
        await until(lambda: checked.rows.reads == [1, 1])
        assert [who for who, _ in checked.told] == ["a", "b"]
        checked.rows.answer()
        await until(lambda: len(checked.told) == 5)
        assert len(checked.rows.reads) == 2

    async def test_at_random(self, checked):
        """Each check gets one result, of a read that started after it and has ended."""
        random = Random(SEED)
        began: dict[int, int] = {}
        for number in range(200):
            partition_id = random.randrange(1, 4)
            began[number] = len(checked.rows.reads)
            checked.ask(number, partition_id)
            checked.rows.answer(random.randrange(1, 3))
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
        checked.rows.answer(1000)
        await until(lambda: len(checked.told) == 200)
        assert {Counter(who for who, _ in checked.told)[each] for each in range(200)} == {1}
        assert sum(is_led for _, is_led in checked.told) > 20
        assert len(checked.rows.reads) < 200, "they are shared"


@pytest.fixture(scope="module")
def cluster(world):
    with led_cluster({DATA.name: [0]}, brokers=2) as cluster:
        for each in cluster.brokers:
            each.port = each.address[1]
        yield cluster


class TestCoordinators:
    @pytest.fixture
    def brokers(self, cluster):
        lead(cluster, {DATA.name: [0]})
        return cluster.brokers

    @pytest.fixture
    def looks(self, brokers, monkeypatch):
        """The first broker hears of no other leader: it continues as if it led all."""
        looks = Held(monkeypatch, brokers[0].server._member._membership, "poll_once")
        wait_until(lambda: looks.calls)
        yield looks
        looks.release()

    def is_refused(self, client):
        (answer,) = client.ask(OFFSET_FETCH, fetch_offsets_request(GROUP), 9).groups
        return answer.error_code == ErrorCode.NOT_COORDINATOR

    def test_offsets_that_a_successor_may_have_moved_are_refused(self, cluster, brokers, looks):
        first, second = brokers
        with Client(first) as client, Client(second) as other:
            assert client.commit(GROUP, {("data", 0): 7}) == {0}
            assert client.fetch(GROUP) == {("data", 0): 7}
            seize(cluster, GROUP_OFFSETS, 0, 1)
            assert other.commit(GROUP, {("data", 0): 9}) == {0}
            assert log_of(first, GROUP_OFFSETS, 0) is not None
            assert self.is_refused(client)
            assert other.fetch(GROUP) == {("data", 0): 9}

    @pytest.mark.parametrize("is_checked", [True, False])
    def test_transaction_that_has_ended_here_is_not_taken_for_the_next_one(
        self, cluster, brokers, looks, is_checked, monkeypatch
    ):
        first, second = brokers
        if not is_checked:  # What would become of it.
            monkeypatch.setattr(first.server.transactions, "leadership_check", None)
        with Wire(first.address) as wire, Wire(second.address) as other:
            producer = RawProducer(wire, key_at(0, f"id-{is_checked}"), version=9)
            assert producer.add(DATA, 0) == 0
            request = producer.end_request(commit=True)
            assert wire.ask(END_TXN, request, 3).error_code == 0
            seize(cluster, TRANSACTION_STATE, 0, 1)
            producer.wire = other
            wait_until(lambda: producer.add(DATA, 0) == 0)  # The next one, of the same epoch.
            # By a client that still takes the first broker for the coordinator.
            answer = ErrorCode(wire.ask(END_TXN, request, 3).error_code)
            assert answer == (ErrorCode.NOT_COORDINATOR if is_checked else ErrorCode.NONE)

    def test_decision_with_a_record_asks_nothing(self, brokers, monkeypatch):
        with Wire(brokers[0].address) as wire:
            producer = RawProducer(wire, key_at(0, "record"), version=9)
            check = brokers[0].server.transactions.leadership_check
            monkeypatch.setattr(check, "check", lambda _partition_id, then: then(False))
            assert producer.add(DATA, 0) == 0
            assert producer.add(DATA, 0) == ErrorCode.NOT_COORDINATOR, "it is there already"

    def test_store_outage_longer_than_lease_refuses_reads(self, world, cluster, brokers):
        """Each of several groups has its answer: administrators ask so, members for their own."""
        with Client(brokers[0]) as client, Client(brokers[0]) as other:
            client.commit(GROUP, {("data", 0): 7})
            cluster.cut_from_store(0)
            began_s = world.now_s
            assert self.is_refused(client)
            assert 0 < world.now_s - began_s < LEASE_S
            request = fetch_offsets_request(GROUP, key_at(0, "other"))
            answers = other.ask(OFFSET_FETCH, request, 9).groups
            assert [each.error_code for each in answers] == [ErrorCode.NOT_COORDINATOR] * 2
            cluster.mend_to_store(0)
        cluster.wait_until_served()
        with Client(brokers[cluster.leader(GROUP_OFFSETS, 0)]) as client:
            assert client.fetch(GROUP) == {("data", 0): 7}
