"""What leaves for the leaders of other partitions, when, and what their answers lead to.

Each rule names the mutant of ``remote_markers.py`` or ``marker_phase.py`` that turns its test red.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from random import Random

import pytest

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.coordination import marker_phase, remote_markers
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.peers.interface import Failure
from barnabas.broker.topics.topic_names import TRANSACTION_STATE
from barnabas.coordinator.transactions.commands import AddPartitions
from barnabas.coordinator.transactions.state import CLASSIC, TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.broker.moving_shards import IDS, SHARDS
from tests.broker.owing_life import (
    AT_SECOND,
    AT_THIRD,
    HERE,
    SECOND,
    THIRD,
    OwingLife,
    Question,
)
from tests.broker.several import EPOCH
from tests.crash.transaction_life import TOPIC, batches_of
from tests.history.logs import partition_history
from tests.seeds import SEED

NONE = ErrorCode.NONE
E = ErrorCode
KEY, OTHER = IDS
PARTS, RUNS = 6, 10
REFUSALS = [
    E.NOT_LEADER_OR_FOLLOWER,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.INVALID_PRODUCER_EPOCH,
    E.TRANSACTION_COORDINATOR_FENCED,
    E.INVALID_REQUEST,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.KAFKA_STORAGE_ERROR,
    E.REQUEST_TIMED_OUT,
    E.UNKNOWN_SERVER_ERROR,
]


@pytest.fixture
def life() -> Iterator[OwingLife]:
    """A broker with a producer for each transactional id."""
    made = OwingLife()
    for key in IDS:
        made.init(key)
    made.settle()
    yield made
    made.end()


def index_of(key: str) -> int:
    return java_hash(key) % SHARDS


def placed(life: OwingLife, key: str = KEY, *partitions: int, commit: bool = True) -> None:
    """Decide a transaction; nothing of that is durable yet."""
    life.add(key, *(partitions or (HERE, AT_SECOND, AT_THIRD)))
    life.settle()
    life.end_transaction(key, commit=commit)


def decided(life: OwingLife, key: str = KEY, *partitions: int, commit: bool = True) -> None:
    placed(life, key, *partitions, commit=commit)
    life.come_to_rest()
    assert life.state(key).is_decided
    life.check()


def is_complete(life: OwingLife, key: str = KEY) -> bool:
    life.come_to_rest()
    life.check()
    return life.state(key).is_idle


# ------------------------------------------------------------------------------ what a request says


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_whose_it_is_and_which_partition_it_is_for(life, commit):
    decided(life, commit=commit)
    transaction = life.transactions.transaction(KEY)
    assert {each.node_id for each in life.pending} == {SECOND, THIRD}
    for question, index in zip(life.pending, (AT_SECOND, AT_THIRD), strict=True):
        (marker,) = question.request.markers
        assert (marker.producer_id, marker.producer_epoch) == transaction.producer
        assert marker.transaction_result == commit
        assert marker.transaction_version == CLASSIC
        shard = life.transactions.log.shard_of(KEY)
        assert marker.coordinator_epoch == shard.log.leader_epoch
        (topic,) = marker.topics
        assert (topic.name, topic.partition_indexes) == (TOPIC, [index])
        assert topic.topic_id == life.catalogue.topics[TOPIC].topic_id
        assert topic.leader_epoch == EPOCH


# ------------------------------------------------------------------------------ in which order (R2)


def test_nothing_leaves_before_the_decision_is_durable_r2(life):
    """Mutant: ``is_durable=True`` for every debt."""
    placed(life)
    for _ in range(20):
        life.turns()
        life.clock.advance(milliseconds=1_000)
    assert life.peers.asked == []
    assert life.log(TOPIC, HERE).next_offset == 1, "here it is placed behind the decision"
    life.settle()
    assert life.peers.asked == []
    life.turns()
    assert len(life.pending) == 2


def test_who_decides_is_answered_before_the_markers_are_r4(life):
    life.add(KEY, AT_SECOND)
    life.settle()
    ended = life.end_transaction(KEY, commit=True)
    life.turns()
    assert ended.answers == []
    life.settle()
    assert ended.answer.error == NONE
    life.come_to_rest()
    assert life.question.node_id == SECOND
    waiting = life.add(KEY, AT_SECOND)
    life.come_to_rest()
    assert waiting.answers == []
    life.question.answer()
    life.come_to_rest()
    assert waiting.answer.error == NONE


def test_a_transaction_is_complete_when_all_have_answered_r3(life):
    """Mutant: ``answered`` completes whatever is still owed."""
    decided(life)
    life.asked_of(THIRD).answer()
    assert not is_complete(life)
    assert life.owed(KEY) == [AT_SECOND]
    life.asked_of(SECOND).answer()
    assert is_complete(life)
    life.pass_ms(10_000)
    assert len(life.peers.asked) == 2
    assert life.transactions.remote_markers.owed_by_node() == {}


def test_a_marker_here_that_cannot_be_written_yet_is_waited_for_r3(life):
    life.markers.is_delayed = True
    decided(life)
    for question in life.pending:
        question.answer()
    assert not is_complete(life)
    assert life.owed(KEY) == [HERE]
    life.markers.is_delayed = False
    life.pass_ms(100)
    assert is_complete(life)
    assert len(life.peers.asked) == 2, "what was answered is not asked again"


def test_a_completion_that_cannot_be_written_is_tried_again(life):
    decided(life)
    log = life.transactions.log.shard_of(KEY).log
    log.closed = True
    for question in life.pending:
        question.answer()
    assert not is_complete(life)
    assert life.owed(KEY) == []
    log.closed = False
    life.pass_ms(100)
    assert is_complete(life)


def test_a_partition_nobody_leads_is_waited_for(life):
    life.lead(AT_SECOND, NO_NODE)
    decided(life, KEY, AT_SECOND)
    life.pass_ms(1_000)
    assert life.peers.asked == []
    life.lead(AT_SECOND, THIRD)
    life.pass_ms(1_000)
    life.asked_of(THIRD).answer()
    assert is_complete(life)


# --------------------------------------------------------------------------- answers, in each state


@pytest.mark.parametrize("code", [*REFUSALS, None], ids=lambda code: code.name if code else "none")
def test_what_is_refused_is_asked_again_for_ever(life, code, caplog):
    caplog.set_level(logging.WARNING)
    decided(life)
    life.asked_of(THIRD).answer()
    for _ in range(30):
        life.asked_of(SECOND).answer(but={AT_SECOND: code})
        assert not is_complete(life)
        assert life.pending == [], "after a pause"
        life.pass_ms(1_000)
        assert life.question.markers == {(KEY, AT_SECOND)}
    name = E.UNKNOWN_SERVER_ERROR.name if code is None else code.name
    assert f"id={KEY} missing=1 attempts=1 reason={TOPIC}-1 at broker {SECOND}: {name}" in (
        caplog.text
    )
    assert life.transactions.remote_markers.owed_by_node() == {SECOND: 1}
    life.question.answer()
    assert is_complete(life)


@pytest.mark.parametrize("failure", Failure)
def test_a_broker_that_does_not_answer_is_asked_again_for_ever(life, failure, caplog):
    caplog.set_level(logging.WARNING)
    decided(life)
    life.asked_of(THIRD).answer()
    for pause_ms in [*range(100, 1_001, 100), *[1_000] * 4]:
        life.asked_of(SECOND).fail(failure)
        assert not is_complete(life)
        life.pass_ms(pause_ms - 1)
        assert life.pending == []
        life.pass_ms(2)
        assert life.question.markers == {(KEY, AT_SECOND)}
    lines = [each for each in caplog.messages if f"a broker node={SECOND}" in each]
    assert len(lines) == 4, "one for each power of two"
    assert f"markers=1 id={KEY} attempts=1 reason={failure.name}: as the test says" in lines[0]
    life.question.answer()
    assert is_complete(life)


def test_who_pauses_is_sent_nothing_new_either(life):
    """Mutant: what comes meanwhile is sent at once."""
    decided(life, KEY, AT_SECOND)
    life.question.fail(Failure.UNREACHABLE)
    decided(life, OTHER, AT_SECOND)
    assert life.pending == []
    life.pass_ms(100)
    assert life.question.markers == {(KEY, AT_SECOND), (OTHER, AT_SECOND)}


@pytest.mark.parametrize("code", [NONE, *REFUSALS, E.UNKNOWN_TOPIC_OR_PARTITION])
@pytest.mark.parametrize("comes_back", [False, True])
def test_what_is_answered_after_the_shard_was_lost_is_ignored_r6(life, code, comes_back):
    """Mutant: ``forget`` does not end the debts."""
    decided(life)
    late = life.pending
    life.lose(TRANSACTION_STATE, index_of(KEY))
    life.check()
    if comes_back:
        life.gain(TRANSACTION_STATE, index_of(KEY))
        life.come_to_rest()
        assert life.owed(KEY) == [AT_SECOND, AT_THIRD]
    for question in late:
        question.answer(code)
    life.come_to_rest()
    life.check()
    if not comes_back:
        life.pass_ms(60_000)
        assert life.pending == []
        return
    assert life.owed(KEY) == [AT_SECOND, AT_THIRD], "they were asked by who had lost it"
    for question in life.pending:
        question.answer()
    assert is_complete(life)


def test_who_has_lost_the_shard_sends_nothing_more_r6(life):
    """Mutant: ``forget`` leaves what waits, or a timer. In each state there is."""
    decided(life, KEY, AT_SECOND, AT_THIRD)
    life.asked_of(SECOND).fail(Failure.LOST)  # It pauses.
    life.asked_of(THIRD).answer(E.NOT_LEADER_OR_FOLLOWER)  # A timer runs.
    life.lose(TRANSACTION_STATE, index_of(KEY))
    sent = len(life.peers.asked)
    life.pass_ms(60_000)
    assert len(life.peers.asked) == sent
    life.check()


def test_a_shard_that_is_lost_before_its_decision_is_durable_r6(life):
    placed(life)
    life.lose(TRANSACTION_STATE, index_of(KEY))
    life.pass_ms(60_000)
    assert life.peers.asked == []
    life.check()


def test_what_waits_behind_a_request_goes_with_its_shard_r6(life):
    decided(life, KEY, AT_SECOND)
    decided(life, OTHER, AT_SECOND)
    assert life.question.markers == {(KEY, AT_SECOND)}, "one at a time"
    life.lose(TRANSACTION_STATE, index_of(OTHER))
    life.question.answer()
    life.pass_ms(60_000)
    assert life.pending == []
    assert is_complete(life)


def test_a_broker_that_ends_sends_nothing_more(life):
    decided(life, KEY, AT_SECOND, AT_THIRD)
    decided(life, OTHER, AT_SECOND)
    life.asked_of(THIRD).fail(Failure.CLOSED)
    late = life.asked_of(SECOND)
    life.transactions.close()
    late.answer()
    sent = len(life.peers.asked)
    life.pass_ms(60_000)
    assert len(life.peers.asked) == sent
    assert life.state(KEY).is_decided


def test_after_a_gain_all_is_sent_again(life):
    decided(life)
    life.asked_of(SECOND).answer()
    assert life.owed(KEY) == [AT_THIRD]
    life.lose(TRANSACTION_STATE, index_of(KEY))
    life.asked_of(THIRD).fail(Failure.LOST)
    life.gain(TRANSACTION_STATE, index_of(KEY))
    life.come_to_rest()
    life.pass_ms(1_000)
    assert {each.node_id for each in life.pending} == {SECOND, THIRD}
    for question in life.pending:
        question.answer()
    assert is_complete(life)
    markers = partition_history(batches_of(life.log(TOPIC, HERE)), (TOPIC, HERE)).markers
    assert len(markers) == 2, "here, too: what is known of markers is in memory only"


# ------------------------------------------------------------------------------ who leads it by now


@pytest.mark.parametrize("failure", [Failure.LATE, Failure.UNKNOWN_NODE])
def test_whoever_leads_it_by_now_is_asked(life, failure):
    decided(life, KEY, AT_SECOND)
    life.lead(AT_SECOND, THIRD)
    life.question.fail(failure)
    life.pass_ms(100)
    life.pass_ms(100)
    assert life.question.node_id == THIRD
    assert life.transactions.remote_markers.owed_by_node() == {THIRD: 1}
    life.question.answer()
    assert is_complete(life)


def test_a_broker_that_is_gone_keeps_nothing_that_has_another_leader(life, monkeypatch):
    """All that waits for it is looked at when it pauses; mutant: only what is tried next."""
    monkeypatch.setattr(remote_markers, "MARKERS_PER_REQUEST_MAX", 1)
    life.lead(AT_THIRD, SECOND)
    for key in IDS:
        decided(life, key, AT_SECOND, AT_THIRD)
    life.asked_of(SECOND).fail(Failure.UNREACHABLE)
    life.lead(AT_THIRD, THIRD)
    life.pass_ms(100)
    life.pass_ms(100)
    found = set()
    while len(life.pending) > 1:
        found |= life.asked_of(THIRD).markers
        life.asked_of(THIRD).answer()
        life.come_to_rest()
    assert found == {(key, AT_THIRD) for key in IDS}
    for _ in IDS:
        assert life.question.node_id == SECOND
        life.question.answer()
        life.come_to_rest()
    assert all(is_complete(life, key) for key in IDS)


# -------------------------------------------------------------------- many transactions, and limits


def test_one_request_at_a_time_with_all_that_waits(life):
    decided(life, KEY, AT_SECOND)
    decided(life, OTHER, AT_SECOND, AT_THIRD)
    assert life.asked_of(SECOND).markers == {(KEY, AT_SECOND)}
    life.asked_of(SECOND).answer(E.NOT_LEADER_OR_FOLLOWER)
    life.come_to_rest()
    assert life.asked_of(SECOND).markers == {(OTHER, AT_SECOND)}
    life.pass_ms(1_000)
    assert life.asked_of(SECOND).markers == {(OTHER, AT_SECOND)}
    life.asked_of(SECOND).answer()
    life.asked_of(THIRD).answer()
    assert is_complete(life, OTHER)
    assert life.question.markers == {(KEY, AT_SECOND)}
    life.question.answer()
    assert is_complete(life)


def test_what_is_decided_in_one_turn_is_sent_together(life):
    for key in IDS:
        life.add(key, AT_SECOND)
    life.settle()
    for key in IDS:
        life.end_transaction(key, commit=True)
    life.come_to_rest()
    assert life.question.markers == {(key, AT_SECOND) for key in IDS}
    life.question.answer(but={AT_SECOND: NONE})
    assert all(is_complete(life, key) for key in IDS)


@pytest.mark.parametrize(
    ("limit", "value"), [("MARKERS_PER_REQUEST_MAX", 1), ("REQUEST_BYTES_MAX", 1)]
)
def test_a_request_is_limited(life, monkeypatch, limit, value):
    monkeypatch.setattr(remote_markers, limit, value)
    life.lead(AT_THIRD, SECOND)
    for key in IDS:
        decided(life, key, AT_SECOND, AT_THIRD)
    for count in range(4):
        assert len(life.question.markers) == 1, count
        life.question.answer()
        life.come_to_rest()
    assert all(is_complete(life, key) for key in IDS)


def test_markers_of_later_turns(life, monkeypatch):
    """Some refused, before all are sent: nothing is written twice, nothing is left out."""
    monkeypatch.setattr(marker_phase, "MARKERS_PER_TURN", 1)
    life.markers.is_delayed = True
    placed(life)
    life.settle()
    assert life.peers.asked == []
    life.turn()
    life.markers.is_delayed = False
    life.come_to_rest()
    life.asked_of(SECOND).answer(E.NOT_LEADER_OR_FOLLOWER)
    life.asked_of(THIRD).answer()
    life.pass_ms(1_000)
    life.asked_of(SECOND).answer()
    assert is_complete(life)
    markers = partition_history(batches_of(life.log(TOPIC, HERE)), (TOPIC, HERE)).markers
    assert len(markers) == 1


def test_an_attempt_waits_for_the_later_turns_of_the_one_before(life, monkeypatch):
    """Mutant: what is refused meanwhile is tried again at once, and the rest is written twice."""
    monkeypatch.setattr(marker_phase, "MARKERS_PER_TURN", 1)
    asyncio.run(life.catalogue.create_topic("last", 1, {}))
    life.come_to_rest()
    places = frozenset({TopicPartition(TOPIC, AT_SECOND), TopicPartition("last", 0)})
    life.transactions.add(AddPartitions(KEY, *life.producers[KEY], places, CLASSIC))
    life.settle()
    life.end_transaction(KEY, commit=True)
    life.settle()
    assert len(life.later) == 2, "the rest is written, and a request is sent"
    life.later.pop()()
    life.question.answer(E.NOT_LEADER_OR_FOLLOWER)
    life.clock.advance(milliseconds=100)
    life.come_to_rest()
    life.pass_ms(1_000)
    life.question.answer()
    assert is_complete(life)
    markers = partition_history(batches_of(life.log("last", 0)), ("last", 0)).markers
    assert len(markers) == 1


# ------------------------------------------------------------------------ topics that are not there


class Absent:
    """A topic that the catalogue shows again, or does not, when it has asked the MetaStore."""

    def __init__(self, life: OwingLife) -> None:
        self.life = life
        self.is_shown = True
        self.comes_back = False
        self.refusal: KafkaError | None = None
        self.looks = 0
        self._partition = life.catalogue.partition
        life.catalogue.partition = self._look  # type: ignore[method-assign]
        life.catalogue.catch_up = self.catch_up  # type: ignore[method-assign]

    def _look(self, topic, index):
        return self._partition(topic, index) if self.is_shown else None

    async def catch_up(self) -> None:
        self.looks += 1
        if self.refusal is not None:
            raise self.refusal
        self.is_shown = self.is_shown or self.comes_back


@pytest.fixture
def absent(life):
    return Absent(life)


@pytest.mark.parametrize("when", ["before", "asked", "refused", "away"])
def test_the_metastores_word_ends_the_debt_r8(life, absent, when):
    if when == "before":
        life.add(KEY, AT_SECOND)
        life.settle()
        absent.is_shown = False
        life.end_transaction(KEY, commit=True)
        life.come_to_rest()
    else:
        decided(life, KEY, AT_SECOND)
        absent.is_shown = False
        if when == "asked":
            life.question.answer(E.UNKNOWN_TOPIC_OR_PARTITION)
        elif when == "refused":
            life.question.answer(E.NOT_LEADER_OR_FOLLOWER)
        else:
            life.question.fail(Failure.LATE)
            life.catalogue.topics_version += 1
        life.pass_ms(100)
    assert is_complete(life)
    assert absent.looks == 1


def test_what_is_only_not_known_yet_is_owed_r8(life, absent):
    """Mutant: what is not known here counts as deleted."""
    life.add(KEY, HERE, AT_SECOND)
    life.settle()
    absent.is_shown = False
    absent.comes_back = True
    life.end_transaction(KEY, commit=True)
    life.come_to_rest()
    assert not is_complete(life)
    life.pass_ms(100)
    assert life.question.markers == {(KEY, AT_SECOND)}
    life.question.answer()
    assert is_complete(life)


def test_what_only_its_leader_does_not_know_yet_is_owed_r8(life, absent):
    """Mutant: UNKNOWN_TOPIC_OR_PARTITION of a peer ends the debt."""
    decided(life, KEY, AT_SECOND)
    for looks in range(1, 4):
        life.question.answer(E.UNKNOWN_TOPIC_OR_PARTITION)
        assert not is_complete(life)
        assert absent.looks == looks
        life.pass_ms(1_000)
    life.question.answer()
    assert is_complete(life)


def test_a_metastore_that_cannot_be_asked_ends_no_debt_r8(life, absent, caplog):
    life.add(KEY, AT_SECOND)
    life.settle()
    absent.is_shown = False
    absent.refusal = KafkaError(E.KAFKA_STORAGE_ERROR)
    life.end_transaction(KEY, commit=True)
    life.come_to_rest()
    for _ in range(3):
        life.pass_ms(1_000)
        assert not is_complete(life)
    assert "the MetaStore cannot be asked, KAFKA_STORAGE_ERROR" in caplog.text
    absent.refusal = None
    life.pass_ms(1_000)
    assert is_complete(life)


# ---------------------------------------------------------------------------------------- at random


class Judge:
    """Whether what is complete was answered: by those who were asked since the shard is here."""

    def __init__(self, life: OwingLife) -> None:
        self.life = life
        self.owed: dict[str, set[int]] = {}
        """The partitions elsewhere of each transaction that is decided."""
        self.answered: dict[str, set[int]] = {key: set() for key in IDS}
        self.since: dict[str, int] = dict.fromkeys(IDS, 0)
        """How many requests had left when the shard was lost last."""
        self.completed = 0

    def answers(self, question: Question) -> None:
        """Credit what a request without errors has brought."""
        number = self.life.peers.asked.index(question)
        for key, index in question.markers:
            if number >= self.since[key]:
                self.answered[key].add(index)

    def loses(self, key: str) -> None:
        self.answered[key].clear()
        self.since[key] = len(self.life.peers.asked)

    def look(self) -> None:
        """Look at what the last step has led to."""
        nodes = [each.node_id for each in self.life.pending]
        assert len(nodes) == len(set(nodes)), "one request at a time for each broker"
        for transaction in self.life.transactions.all:
            key = transaction.transactional_id
            if transaction.state.is_decided:
                partitions = {each.partition for each in transaction.partitions}
                self.owed[key] = partitions - {HERE}
            elif key in self.owed:
                assert self.owed.pop(key) <= self.answered[key], "all have answered"
                self.answered[key].clear()
                self.completed += 1


def step(life: OwingLife, judge: Judge, chance: Random) -> None:
    """One of the things that can happen."""
    key = chance.choice(IDS)
    index = index_of(key)
    is_here = life.transactions.log.shard_at(index) is not None
    drawn = chance.random()
    if drawn < 0.2 and is_here:
        life.add(key, *chance.sample(range(3), chance.randint(1, 3)))
    elif drawn < 0.35 and is_here:
        life.end_transaction(key, commit=chance.random() < 0.5)
    elif drawn < 0.65 and life.pending:
        question = chance.choice(life.pending)
        outcome = chance.random()
        if outcome < 0.6:
            judge.answers(question)
            question.answer()
        elif outcome < 0.8:
            question.answer(chance.choice(REFUSALS))
        else:
            question.fail(chance.choice(list(Failure)))
    elif drawn < 0.75:
        life.clock.advance(milliseconds=chance.choice([10, 100, 1_000]))
    elif drawn < 0.8:
        life.lead(chance.choice([AT_SECOND, AT_THIRD]), chance.choice([SECOND, THIRD]))
    elif drawn < 0.83 and is_here:
        life.lose(TRANSACTION_STATE, index)
        judge.loses(key)
    elif drawn < 0.88 and not is_here:
        life.gain(TRANSACTION_STATE, index)
    elif drawn < 0.94:
        life.settle()
    else:
        life.come_to_rest()


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_happens_each_transaction_ends_with_all_its_markers(part):
    """Answers of every kind, shards and leaders that move; then all is well again."""
    seeds = range(SEED + part * RUNS, SEED + (part + 1) * RUNS)
    completed = 0
    for seed in seeds:
        print(f"seed of this run: {seed}")
        completed += run(seed)
    assert completed, "a transaction was decided and completed in one of the runs"


def run(seed: int) -> int:
    """Return how many transactions were decided and completed."""
    life = OwingLife()
    try:
        return run_of(life, Random(seed))
    finally:
        life.end()


def run_of(life: OwingLife, chance: Random) -> int:
    for key in IDS:
        life.init(key)
    life.settle()
    judge = Judge(life)
    for _ in range(200):
        step(life, judge, chance)
        judge.look()
    for key in IDS:
        if life.transactions.log.shard_at(index_of(key)) is None:
            life.gain(TRANSACTION_STATE, index_of(key))
    for _ in range(20):
        life.pass_ms(1_000)
        for question in life.pending:
            judge.answers(question)
            question.answer()
        judge.look()
    life.check()
    assert judge.owed == {}
    return judge.completed
