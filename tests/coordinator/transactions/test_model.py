"""Any sequence of requests, lost answers, repetitions, delays, failures and crashes (S P C M L O).

Producers live as long as the test: a fenced producer continues with its old identity. Every
request may be sent again at any time, with the bytes it had. An answer waits until all that was
placed before it is durable, or is never heard, and then the crash may take what it was about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from barnabas.coordinator.transactions.commands import AddPartitions, EndTransaction, InitProducer
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    LARGEST_CLIENT_EPOCH,
    TRANSACTIONS_V2,
    TopicPartition,
    Transaction,
)
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.transactions.judge import COMMITTED, ONGOING, Judge
from tests.coordinator.transactions.world import OFFSETS, PLACES, Stated, World

E = ErrorCode
TIMEOUT_MS = 500
PRODUCERS_MAX = 4
NEVER_SENT_S11 = {E.DUPLICATE_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID}


@dataclass
class Producer:
    """A client: what it believes to be."""

    key: str
    identity: tuple[int, int]
    is_v2: bool
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    added: set[TopicPartition] = field(default_factory=set)
    """Partitions of the present transaction; a client of protocol v1 adds them itself."""
    written: list[int] = field(default_factory=list)
    """Values of the present transaction that were acknowledged in partitions of it."""

    def begin(self) -> None:
        """Forget the last transaction."""
        self.added.clear()
        self.written.clear()

    def is_in_transaction(self, place: TopicPartition) -> bool:
        return self.is_v2 or place in self.added


keys = st.sampled_from(["x", "y"])
places = st.sampled_from(PLACES)
heard = st.sampled_from([True, True, True, False])


class Transactions(RuleBasedStateMachine):
    """Clients and a broker."""

    producers: Bundle[Producer] = Bundle("producers")
    requests: Bundle[Any] = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.value = 0
        self.durable = 0
        self.promised: dict[int, bool] = {}
        """The outcome of each value that a client has received: committed or aborted."""
        self.acknowledged: set[int] = set()
        self.started = 0

    @initialize(version=st.sampled_from([1, 2]), epoch=st.sampled_from([0, 0, 32_764, 32_765]))
    def begin(self, version, epoch):
        self.world = World(version)
        if epoch:  # An id that was used for long.
            self.world.next_id = 2
            for number in (0, epoch):
                old = Transaction("x", 1, number, TIMEOUT_MS)
                self.world.place(Stated(*self.world.shard.record(old).encode()))
        self.deliver()

    def deliver(self) -> None:
        """An answer is on its way to a client: all that was placed is durable."""
        self.durable = len(self.world.journal)

    # ------------------------------------------------------------------------------------- clients

    @precondition(lambda self: self.started < PRODUCERS_MAX)
    @rule(target=producers, key=keys, is_v2=st.booleans())
    def start_producer(self, key, is_v2):
        self.started += 1
        producer = Producer(key, (-1, -1), is_v2)
        self.init(producer, heard=True)
        return producer

    @rule(producer=producers, many=st.lists(places, min_size=1, max_size=3), offset=st.booleans())
    def work(self, producer, many, offset):
        """Write to some partitions, and commit offsets."""
        if not producer.is_v2:
            self.add_now(producer, frozenset({*many, OFFSETS} if offset else many))
        for place in many:
            self.produce_next(producer, place)
        if offset:
            self.commit_next(producer)

    @rule(producer=producers, many=st.lists(places, min_size=1, max_size=3), offset=st.booleans())
    def whole_transaction(self, producer, many, offset):
        """Initialize if necessary, work, and commit."""
        if self.world.transaction(producer.key) is None:
            self.init(producer, heard=True)
        self.work(producer, many, offset)
        self.end_now(producer, commit=True, heard=True)

    @rule(producer=producers, many=st.lists(places, max_size=1), commit=st.booleans())
    def both_outcomes(self, producer, many, commit):
        """Work, or initialize and do nothing; end the transaction; request the other outcome."""
        if many:
            self.work(producer, many, offset=False)
        else:
            self.init(producer, heard=True)
        self.end_now(producer, commit=commit, heard=True)
        self.end_now(producer, commit=not commit, heard=True)

    @rule(producer=producers, heard=heard, names_itself=st.booleans())
    def begin_again(self, producer, heard, names_itself):
        self.init(producer, producer.identity if names_itself else (-1, -1), heard=heard)

    def init(self, producer, expected=(-1, -1), *, heard):
        found = self.ask_init(producer.key, expected)
        if found.error or not heard:
            return
        self.deliver()
        assert found.producer_epoch <= LARGEST_CLIENT_EPOCH, "C11"
        producer.identity = (found.producer_id, found.producer_epoch)
        producer.sequences.clear()
        producer.begin()

    def ask_init(self, key, expected):
        fresh = self.world.next_id
        found = self.world.execute(
            InitProducer(key, TIMEOUT_MS, *expected, fresh_producer_id=fresh)
        )
        if not found.error:
            assert not Judge(self.world.journal).open_of(key), "C5"
        return found

    @rule(
        target=requests, producer=producers, many=st.sets(places, min_size=1), offsets=st.booleans()
    )
    def add_partitions(self, producer, many, offsets):
        return self.add_now(producer, frozenset(many | {OFFSETS} if offsets else many))

    def add_now(self, producer, added):
        command = AddPartitions(producer.key, *producer.identity, added, CLASSIC)

        def request():
            return self.world.execute(command).error

        if not request():
            self.deliver()
            producer.added |= added
        return request

    @rule(target=requests, producer=producers, place=places, heard=heard, gap=st.integers(-1, 1))
    def produce(self, producer, place, heard, gap):
        sequence = max(0, producer.sequences.get(place, 0) + gap)
        return self.produce_now(producer, place, sequence, heard=heard)

    def produce_next(self, producer, place):
        self.produce_now(producer, place, producer.sequences.get(place, 0), heard=True)

    def produce_now(self, producer, place, sequence, *, heard):
        self.value += 1
        value, key, identity = self.value, producer.key, producer.identity
        version = 12 if producer.is_v2 else 11

        def request():
            code, is_repeated = self.world.produce(key, identity, place, sequence, value, version)
            assert code not in NEVER_SENT_S11
            return code, is_repeated

        code, is_repeated = request()
        if heard and not code:
            self.deliver()
            producer.sequences[place] = max(producer.sequences.get(place, 0), sequence + 1)
            if not is_repeated:
                self.acknowledged.add(value)
                if producer.is_in_transaction(place):
                    producer.written.append(value)
        return request

    @rule(target=requests, producer=producers, heard=heard)
    def commit_offset(self, producer, heard):
        return self.commit_next(producer, heard=heard)

    def commit_next(self, producer, *, heard=True):
        self.value += 1
        value, key, identity = self.value, producer.key, producer.identity

        def request():
            fates = Judge(self.world.journal).fates
            if value in fates:
                return None  # As often as it likes: the same offset again is a new commit.
            version = 5 if producer.is_v2 else 4
            return self.world.commit_offset(key, identity, value, version)

        if request() == E.NONE and heard:
            self.deliver()
            self.acknowledged.add(value)
            if producer.is_in_transaction(OFFSETS):
                producer.written.append(value)
        return request

    @rule()
    def commit_plainly(self):
        self.value += 1
        self.world.commit_offset("", None, self.value, 0)

    @rule(target=requests, producer=producers, commit=st.booleans(), heard=heard)
    def end(self, producer, commit, heard):
        return self.end_now(producer, commit=commit, heard=heard)

    def end_now(self, producer, *, commit, heard):
        key, identity, is_v2 = producer.key, producer.identity, producer.is_v2

        def request():
            transaction_version = TRANSACTIONS_V2 if is_v2 else CLASSIC
            fresh = self.world.next_id
            found = self.world.execute(
                EndTransaction(key, *identity, commit, transaction_version, fresh)
            )
            if not found.error:
                self.was_decided(identity, commit)
            return found

        found = request()
        if heard and not found.error:
            self.deliver()
            for value in producer.written:
                assert self.promised.setdefault(value, commit) == commit, "C3"
            producer.begin()
            if is_v2:
                assert found.producer_epoch <= LARGEST_CLIENT_EPOCH, "C11"
                producer.identity = (found.producer_id, found.producer_epoch)
                producer.sequences.clear()
        else:
            producer.begin()  # It knows nothing of its transaction any more.
        # A delayed end by a producer of v1 may end its next transaction (KAFKA-17754).
        return request if is_v2 else multiple()

    def was_decided(self, identity, commit):
        """Check that the last decision in the log is the one that a client has received (C4)."""
        decisions = Judge(self.world.journal).decisions
        with_bump = (identity[0], identity[1] + 1)
        last = {decisions[each][-1] for each in (identity, with_bump) if each in decisions}
        assert commit in last, "C4"

    @rule(request=requests)
    def send_again(self, request):
        request()

    @rule(request=consumes(requests))
    def send_for_the_last_time(self, request):
        request()

    # -------------------------------------------------------------------------------------- broker

    @rule(place=st.sampled_from([*PLACES, OFFSETS]))
    def withhold(self, place):
        """Markers for a partition cannot be written for some time."""
        self.world.withheld.add(place)

    @rule()
    def heal(self):
        self.world.heal()

    @rule(
        what=st.sampled_from(["wait", "time out", "clock back", "clock forward", "expire", "sync"]),
        key=keys,
    )
    def pass_time(self, what, key):
        hour_ms = 3_600_000
        if what == "expire":
            self.world.expire(key)
        elif what == "sync":
            self.deliver()
        else:
            jump_ms = {"clock back": -hour_ms, "clock forward": hour_ms}.get(what, 0)
            self.world.pass_time(TIMEOUT_MS if what == "time out" else 50, jump_ms)

    @rule(part=st.floats(0, 1))
    def crash(self, part):
        """Crash with any prefix that contains all acknowledged entries."""
        unsynced = len(self.world.journal) - self.durable
        self.world.crash(self.durable + round(part * unsynced))
        self.deliver()

    # -------------------------------------------------------------------------------------- always

    @invariant()
    def the_journal_is_in_order(self):
        judge = Judge(self.world.journal)
        judge.compare(self.world)
        for value, commit in self.promised.items():
            assert judge.fates.get(value) in {commit, None}, "C4"
        assert self.acknowledged <= judge.fates.keys(), "S3"

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.world.heal()
        self.world.pass_time(TIMEOUT_MS, 0)
        judge = Judge(self.world.journal)
        judge.compare(self.world)
        assert not [each for each in judge.ids.values() if each.state in {ONGOING, 2, 3}], "C6"
        assert not judge.pending, "O3"
        assert None not in judge.fates.values(), "C6"
        for value, commit in self.promised.items():
            assert judge.fates[value] == commit, "C4"
        assert all(each.state in {0, COMMITTED, 5} for each in judge.ids.values())


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(stateful_step_count=60)
