"""However much a broker holds, no turn of the loop belongs to the console for long.

The tests count the objects that are visited between two turns, and measure no time.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from barnabas.broker.api.client_seen import ClientSeen
from barnabas.broker.api.fetch_sessions import Asked, FetchPlan
from barnabas.broker.cluster.view import OneBroker
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.console import pacing
from barnabas.broker.console.application import Console
from barnabas.broker.console.encoding import ROWS_PER_PIECE
from barnabas.broker.console.pacing import UNITS_PER_TURN
from barnabas.broker.console.pages import worst
from barnabas.broker.console.pages.lag_history import GROUPS_MOST, LagHistory
from barnabas.broker.console.pages.spark_ledger import (
    LEDGER_TOPIC,
    QUERIES_MOST,
    LedgerEntry,
    LedgerState,
    SparkLedger,
)
from barnabas.broker.console.pages.worst import WorstFinder
from barnabas.broker.console.questions import Question
from barnabas.broker.console.routes import ROUTES
from barnabas.broker.coordination import transaction_events
from barnabas.broker.coordination.pipelines import Pipeline
from barnabas.broker.coordination.rebalances import Rebalances
from barnabas.broker.coordination.transaction_events import (
    NOTABLE_SLOTS,
    ROUTINE_SLOTS,
    TransactionEvents,
)
from barnabas.broker.http.messages.answer import Answer
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.broker.http.messages.request import Request
from barnabas.broker.metadata.topic import Partition, Topic
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.runtime.events import EventRing
from barnabas.broker.runtime.stage import Stage
from barnabas.broker.security.acls.access import OPEN
from barnabas.broker.security.session import NOBODY
from barnabas.broker.upkeep.cleaning import PASSES_REMEMBERED, CompactionPass
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.offset_table import CommittedOffset
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import State, Transaction
from barnabas.coordinator.transactions.state import TopicPartition as TransactionPartition
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchPartition
from barnabas.storage.counts import Histogram
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.producers import ProducerState
from barnabas.testing import Broker
from tests.broker.console.asking import HTTP

PARTITIONS, GROUPS, SHARDS = 10_000, 20_000, 50
IDS, CLIENTS = 5_000, 1_000


class Looks:
    """Counts looks since the last turn, and the most that there ever were."""

    def __init__(self):
        self.now = self.most = self.all = self.turns = 0

    def __call__(self):
        self.now += 1
        self.all += 1
        self.most = max(self.most, self.now)

    async def turn_over(self):
        self.now = 0
        self.turns += 1


class Log:
    """A log that counts who looks at where it ends."""

    log_start_offset = 3
    last_stable_offset = 90
    size_bytes = 1000
    leader_epoch = 1
    segments = (None,)
    topic, partition = "", 0

    def __init__(self, looks):
        self._looks = looks
        self.producers = ProducerState()

    @property
    def high_watermark(self):
        self._looks()
        return 100


class Names(dict):
    """A shard's groups, counted when their state is looked up."""

    def __init__(self, looks, names):
        super().__init__(names)
        self._looks = looks

    def get(self, name, default=None):
        self._looks()
        return super().get(name, default)


def topic_of(name, count, looks):
    topic = Topic(name, b"x" * 16, {}, LogConfig())
    topic.partitions = [Partition(topic, index, index, Log(looks)) for index in range(count)]
    return topic


def shard_of(number, looks):
    shard = GroupShard(GroupConfig())
    for at in range(number, GROUPS, SHARDS):
        committed = CommittedOffset(50, -1, "", 0, -1, b"x" * 16, at)
        shard.offsets.put(f"group-{at:06}", "many-0", at % 100, committed)
    shard.groups = Names(looks, shard.groups)
    return shard


def transactions_of(number):
    shard = TransactionShard()
    everywhere = frozenset(TransactionPartition("large", index) for index in range(PARTITIONS))
    for at in range(number, IDS, SHARDS):
        state, partitions = (State.ONGOING, everywhere) if at % 100 == 0 else (State.EMPTY, ())
        found = Transaction(f"id-{at:06}", at, 0, 60_000, state, partitions, 1)
        shard.transactions[found.transactional_id] = found
        if partitions:
            shard.open[found.transactional_id] = found
    return shard


def events_of(looks):
    """Return a full list of transaction events that counts each visit."""
    events = TransactionEvents(0)
    client = transaction_events.Client("client", "/127.0.0.1")
    for number in range(ROUTINE_SLOTS + NOTABLE_SLOTS):
        found = Transaction(f"id-{number:06}", number, 0, 60_000, State.ONGOING, frozenset(), 1)
        events.refused(found, client, 1_700_000_000_000)

    def newest_first():
        for each in TransactionEvents.newest_first(events):
            looks()
            yield each

    return SimpleNamespace(newest_first=newest_first, complete_since_ms=0, is_complete=True)


class Client(SimpleNamespace):
    """A connection that counts the reads of its recent APIs."""

    @property
    def apis(self):
        self.looks()
        return frozenset((1, 12)) if self.number % 2 else frozenset((1,))


def connections_of(looks):
    """Connections, each of which reads a hundred partitions in a session."""
    connections = []
    for number in range(CLIENTS):
        connection = Client(
            looks=looks,
            number=number,
            seen=ClientSeen(),
            client_id=f"client-{number % 100}",
            peer=f"10.0.0.1:{number}",
            peer_host="10.0.0.1",
            listener=SimpleNamespace(name="PLAINTEXT"),
            session=NOBODY,
            since_ms=0,
            requests=7,
            refusals=0,
            received_bytes=1000,
            sent_bytes=2000,
            last_api="Fetch",
            idle_ms=3,
            pauses=1,
        )
        asked = [
            Asked(f"many-{number % 100}", b"", FetchPartition(each, fetch_offset=60))
            for each in range(100)
        ]
        connection.seen.fetches(1, FetchPlan(asked, None, incremental=False))
        connections.append(connection)
    return connections


@pytest.fixture(scope="module")
def crowd():
    """A broker with 20,000 partitions, as many groups, and transactional ids."""
    looks = Looks()
    topics = [topic_of(f"many-{number}", 100, looks) for number in range(PARTITIONS // 100)]
    topics.append(topic_of("large", PARTITIONS, looks))
    topics.append(topic_of(LEDGER_TOPIC, 1, looks))
    by_name = {topic.name: topic for topic in topics}
    shards = [shard_of(number, looks) for number in range(SHARDS)]
    ids = [transactions_of(number) for number in range(SHARDS)]

    async def durable(refusals):
        """Raise what a broker raises if a flush was refused since the request came."""
        if refusals != found.groups.refusals:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def machine_of(group_id):
        return shards[int(group_id.rpartition("-")[2]) % SHARDS]

    def transaction(key):
        return ids[int(key.rpartition("-")[2]) % SHARDS].transactions.get(key)

    def of_id(key):
        """Return the sink of an id, with a group that has read a partition."""
        return SimpleNamespace(group=f"group-{int(key.rpartition('-')[2]):06}")

    def partition(name, index):
        return by_name[name].partitions[index]

    coordinator = {
        "is_loading": False,
        "is_coordinator": lambda: True,
        "refusal": lambda _: 0,
        "log": SimpleNamespace(unreadable=[]),
    }
    tasks = []

    def spawn(coroutine, name):
        tasks.append(asyncio.get_running_loop().create_task(coroutine, name=name))

    found = SimpleNamespace(
        answer_memory=AnswerMemory(),
        looks=looks,
        spawn=spawn,
        stage=Stage.LISTENING,
        failure=None,
        node_id=1,
        view=OneBroker(1, None, lambda: 1),
        clock=ManualClock(1_700_000_000_000),
        config=BrokerConfig(),
        cluster_id="",
        history=None,
        events=EventRing(ManualClock()),
        sockets=SimpleNamespace(connections=connections_of(looks), is_listening=True),
        scrubber=SimpleNamespace(describe_damage=lambda: None),
        cluster_warnings=dict,
        cleaner=SimpleNamespace(latest=[CompactionPass(0, "large", 0, 2, 1)] * PASSES_REMEMBERED),
        logs=SimpleNamespace(
            root="/data",
            logs={
                (topic.name, each.index): each.log for topic in topics for each in topic.partitions
            },
            file_system=SimpleNamespace(total_bytes=lambda _: 9, free_bytes=lambda _: 5),
            full=False,
            free_bytes=5,
            files=None,
            journal_bytes=0,
            journal=SimpleNamespace(backlog_bytes=0),
            flush_times=Histogram(),
            flush_batches=Histogram(shift=0),
            duplicates=0,
        ),
        catalogue=SimpleNamespace(
            topics=by_name,
            topic=by_name.get,
            partition=partition,
            configs=SimpleNamespace(),
            view=OneBroker(1, None, lambda: 1),
        ),
        groups=SimpleNamespace(
            machines=shards,
            machine_of=machine_of,
            rebalances=Rebalances(0),
            durable=durable,
            refusals=0,
            **coordinator,
        ),
        transactions=SimpleNamespace(
            machines=ids,
            transaction=transaction,
            clients=SimpleNamespace(of=lambda _: None),
            events=events_of(looks),
            pipelines=SimpleNamespace(all=list, of_id=of_id),
            **coordinator,
        ),
    )
    return found


async def read_ledger(_ledger, _topic):
    """Return as many queries as are kept, each with the largest topic as its source."""
    entries = {
        (f"sink-{number}", "query"): LedgerEntry(
            f"sink-{number}", "query", 50, number, 1, sources=("large", "many-0")
        )
        for number in range(QUERIES_MOST)
    }
    return LedgerState(100, entries)


ASKED = [
    (("topics",), {"sort": "-size_bytes", "limit": "1000"}),
    (("topics",), {"sort": "topic"}),
    (("topics", "large", "partitions"), {"sort": "-blocked_offsets", "limit": "1000"}),
    (("topics", "large", "producers"), {"limit": "1000"}),
    (("topics", "many-0", "groups"), {"sort": "-lag", "limit": "1000"}),
    (("groups",), {"sort": "group", "limit": "1000"}),
    (("groups",), {"sort": "-members", "filter": "GROUP-0"}),
    (("groups",), {"sort": "-lag_blocked", "limit": "1000"}),
    (("groups",), {"state": "Stable"}),
    (("groups", "group-000007"), {}),
    (("groups", "group-000007", "history"), {}),
    (("transactions",), {"sort": "-start_time_ms", "limit": "1000"}),
    (("transactions",), {"open": "true"}),
    (("transactions", "id-000100"), {"limit": "1000"}),
    (("blocked-partitions",), {"sort": "-blocked_offsets", "limit": "1000"}),
    (("transaction-events",), {"limit": "1000"}),
    (("ended-transactions",), {}),
    (("clients",), {"sort": "-received_bytes_per_s", "limit": "1000"}),
    (("clients",), {"filter": "nobody"}),
    (("readers",), {"sort": "-lag", "limit": "1000"}),
    (("events",), {"limit": "1000"}),
    (("pipelines",), {}),
    (("spark-queries",), {"limit": "1000"}),
    (("overview",), {}),
    (("storage",), {}),
    (("settings",), {}),
]


@pytest.mark.parametrize(("parts", "query"), ASKED, ids="/".join)
async def test_no_turn_is_long(crowd, monkeypatch, parts, query):
    looks = crowd.looks
    looks.now = looks.most = looks.all = looks.turns = 0
    monkeypatch.setattr(pacing, "turn_over", looks.turn_over)
    monkeypatch.setattr(worst, "PATIENCE_SECONDS", 60)
    monkeypatch.setattr(SparkLedger, "read", read_ledger)
    request = Request("GET", ("api", "v1", *parts), query)
    answer = await Console(crowd).answer(request, OPEN)
    assert (answer.status, type(answer)) == (200, Answer)
    # A partition is visited at most three times for its units, and a row as often.
    assert looks.most <= UNITS_PER_TURN
    if looks.all > UNITS_PER_TURN:
        assert looks.turns > 0
    for piece in answer.body:
        assert piece.count('"transactional_id":') <= 11 * ROWS_PER_PIECE


OF_COORDINATORS = [
    ("groups",),
    ("groups", "group-000007"),
    ("transactions",),
    ("transactions", "id-000100"),
    ("blocked-partitions",),
    ("transaction-events",),
    ("ended-transactions",),
    ("topics", "large", "producers"),
    ("pipelines",),
    ("spark-queries",),
    ("overview",),
]


@pytest.mark.parametrize("parts", OF_COORDINATORS, ids="/".join)
async def test_flush_that_is_refused_while_a_page_reads_makes_it_unavailable(
    crowd, monkeypatch, parts
):
    spend = pacing.Pace.spend

    async def refuse(pace, units=1):
        crowd.groups.refusals += 1
        await spend(pace, units)

    monkeypatch.setattr(pacing.Pace, "spend", refuse)
    monkeypatch.setattr(SparkLedger, "read", read_ledger)
    pipeline = Pipeline("group-000007")
    monkeypatch.setattr(crowd.transactions.pipelines, "all", lambda: [pipeline])
    answer = await Console(crowd).answer(Request("GET", ("api", "v1", *parts), {}), OPEN)
    assert answer.status == 503


async def test_no_turn_of_measuring_lag_is_long(crowd, monkeypatch):
    looks, widest = crowd.looks, f"group-{GROUPS}"
    monkeypatch.setattr(pacing, "turn_over", looks.turn_over)
    offsets = crowd.groups.machine_of(widest).offsets
    for index in range(PARTITIONS):
        offsets.put(widest, "large", index, CommittedOffset(5, -1, "", 0, -1, b"x" * 16, index))
    lags = LagHistory()
    question = Question(crowd, WorstFinder(), lags, OPEN)
    try:
        for group_id in (widest, *(f"group-{number:06}" for number in range(GROUPS_MOST - 1))):
            lags.view(question, group_id)
        looks.now = looks.most = looks.all = looks.turns = 0
        await lags._measure_all(question)
        assert looks.all >= PARTITIONS + GROUPS_MOST - 1
        assert looks.most <= UNITS_PER_TURN
        (point,) = await lags.of(question, widest)
        assert (point.lag, point.lag_blocked) == (95 * PARTITIONS, 10 * PARTITIONS)
    finally:
        for index in range(PARTITIONS):
            offsets.remove(widest, "large", index)


async def test_units_are_counted_and_turns_taken(monkeypatch):
    looks = Looks()
    monkeypatch.setattr(pacing, "turn_over", looks.turn_over)
    pace = pacing.Pace()
    for _ in range(10 * UNITS_PER_TURN):
        await pace.spend()
        looks()
    assert looks.most == UNITS_PER_TURN
    assert looks.turns == 9


def test_every_list_is_asked_in_here():
    lists = {route.template.split("/")[3] for route in ROUTES if "items" in str(route.shape)}
    assert lists <= {parts[0] for parts, _ in ASKED}


async def test_many_who_ask_at_once_share_the_turns():
    """The slices of all requests together are one for each turn of the loop."""
    async with Broker(config=HTTP) as broker:
        loop = broker.server.loop
        looks = Looks()

        def turn():
            looks.now = 0
            looks.turns += 1
            if not is_over:
                loop.call_soon(turn)

        is_over = False

        async def ask():
            pace = pacing.Pace()
            for _ in range(5 * UNITS_PER_TURN):
                await pace.spend()
                looks()

        asking = [loop.create_task(ask()) for _ in range(20)]
        turn()
        for each in asking:
            await each
        is_over = True
        # The first slice of each runs before any waiting.
        assert looks.all == 100 * UNITS_PER_TURN
        assert looks.turns >= 80
