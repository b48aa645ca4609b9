"""Epochs: assigned ones, exhausted ones, and retries after a lost response.

Names of Apache Kafka's issues stand where its arithmetic was once wrong.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from barnabas.coordinator.decision import decode_record
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    TimerExpired,
)
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    LARGEST_CLIENT_EPOCH,
    LARGEST_EPOCH,
    NEVER_MS,
    TRANSACTIONS_V2,
    State,
    Transaction,
    timeout_timer,
)
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.transactions.run import TOPIC, Run
from tests.coordinator.transactions.states import P0, TIMEOUT_MS

E = ErrorCode
GENERATIONS = [CLASSIC, TRANSACTIONS_V2]


def init(run, expected=(-1, -1)):
    command = InitProducer(
        run.key,
        TIMEOUT_MS,
        *expected,
        fresh_producer_id=run.fresh(),
        oldest_producer_id=run.oldest_id,
    )
    return run.do(command)


def began(run, expected=(-1, -1)):
    """InitProducerId as a client does it: asked again while the broker is busy with its answer."""
    for _ in range(3):
        outcome = init(run, expected)
        if outcome.error != E.CONCURRENT_TRANSACTIONS:
            break
    assert outcome.error == E.NONE
    return outcome.producer_id, outcome.producer_epoch


def add(run, producer, generation=TRANSACTIONS_V2):
    return run.do(AddPartitions(run.key, *producer, frozenset({P0}), generation)).error


def end(run, producer, *, commit=True, generation=TRANSACTIONS_V2):
    return run.do(EndTransaction(run.key, *producer, commit, generation, run.fresh()))


def ended(run, producer, *, commit=True, generation=TRANSACTIONS_V2):
    outcome = end(run, producer, commit=commit, generation=generation)
    assert outcome.error == E.NONE
    if generation == CLASSIC:
        return producer
    return outcome.producer_id, outcome.producer_epoch


def time_out(run):
    run.pass_time(TIMEOUT_MS)
    assert run.due()


def at_epoch(epoch, *, state=State.EMPTY, version=TRANSACTIONS_V2, partitions=frozenset()):
    run = Run(version)
    run.plant(
        Transaction(run.key, 1000, epoch, TIMEOUT_MS, state, partitions, start_ms=run.wall_ms)
    )
    run.restart()
    return run, (1000, epoch)


# ------------------------------------------------------------------------------------------- bumps


def test_bumps_are_exact_c10():
    """KAFKA-19367: InitProducerId over an open transaction bumped twice."""
    for version, expected, bumps in ((1, False, 2), (2, False, 2), (2, True, 1)):
        run = Run(version)
        producer = began(run)
        generation = TRANSACTIONS_V2 if version == 2 else CLASSIC
        add(run, producer, generation)
        after = began(run, producer if expected else (-1, -1))
        assert after == (producer[0], producer[1] + bumps), (version, expected)


def test_an_old_producer_that_names_itself_is_fenced_after_the_classic_fence():
    run = Run(1)
    producer = began(run)
    add(run, producer, CLASSIC)
    assert init(run, producer).error == E.CONCURRENT_TRANSACTIONS
    assert init(run, producer).error == E.PRODUCER_FENCED


@pytest.mark.parametrize("generation", GENERATIONS)
def test_bumps_of_ends_c10(generation):
    run = Run()
    producer = began(run)
    for number in range(4):
        add(run, producer, generation)
        after = ended(run, producer, commit=bool(number % 2), generation=generation)
        assert after == (producer[0], producer[1] + (generation == TRANSACTIONS_V2))
        producer = after
    assert began(run) == (producer[0], producer[1] + 1)


def test_generations_may_change_between_transactions():
    run = Run()
    producer = began(run)
    for generation in (CLASSIC, TRANSACTIONS_V2, CLASSIC, CLASSIC, TRANSACTIONS_V2):
        assert add(run, producer, generation) == E.NONE
        producer = ended(run, producer, generation=generation)
    assert producer == (1000, 2)


def test_fencing_again_while_markers_are_missing_bumps_nothing_kafka_9666_16570():
    for version in (1, 2):
        run = Run(version)
        producer = began(run)
        add(run, producer, CLASSIC)
        run.withhold()
        for _ in range(5):
            assert init(run).error == E.CONCURRENT_TRANSACTIONS
        assert run.known().producer_epoch == producer[1] + 1
        run.write_markers()
        assert began(run) == (producer[0], producer[1] + 2)


def test_an_append_that_fails_bumps_nothing_kafka_9666():
    run = Run(1)
    producer = began(run)
    add(run, producer, CLASSIC)
    for _ in range(5):  # Decided, but not appended: the decision is not applied.
        run.shard.decide(InitProducer(run.key, TIMEOUT_MS, fresh_producer_id=run.fresh()), run.now)
    assert began(run) == (producer[0], producer[1] + 2)


# ----------------------------------------------------------------------------- restored directories


def restored_at_epoch(epoch):
    run, producer = at_epoch(epoch)
    run.oldest_id = producer[0] + 1
    return run, producer


@pytest.mark.parametrize("expected", [False, True])
def test_id_of_before_a_restore_is_exchanged_at_the_next_begin(expected):
    """The original may have given its next epoch to a producer that still runs."""
    run, producer = restored_at_epoch(5)
    claim = producer if expected else (-1, -1)
    new = began(run, claim)
    assert new == (1001, 0)
    assert add(run, (producer[0], 6)) == E.INVALID_PRODUCER_ID_MAPPING
    run.restart()
    if expected:  # The response was lost: the request is repeated.
        assert began(run, claim) == new
        for other in (4, 6):
            assert init(run, (producer[0], other)).error == E.PRODUCER_FENCED
    assert began(run, new) == (1001, 1)
    assert init(run, producer).error == E.PRODUCER_FENCED


@pytest.mark.parametrize("generation", GENERATIONS)
def test_open_transaction_of_before_a_restore_is_aborted_first(generation):
    run, producer = restored_at_epoch(5)
    add(run, producer, generation)
    assert init(run).error == E.CONCURRENT_TRANSACTIONS
    assert run.known().state == State.COMPLETE_ABORT
    assert began(run) == (1001, 0)


def test_prepared_transaction_of_before_a_restore_gets_another_id():
    run, writer = restored_at_epoch(5)
    add(run, writer)
    command = InitProducer(run.key, TIMEOUT_MS, keep_prepared=True, oldest_producer_id=1001)
    assert run.do(command).error == E.COORDINATOR_LOAD_IN_PROGRESS
    outcome = run.do(replace(command, fresh_producer_id=run.fresh()))
    assert (outcome.producer_id, outcome.producer_epoch) == (1001, 0)
    assert (outcome.ongoing_producer_id, outcome.ongoing_epoch) == writer
    after = ended(run, (1001, 0))
    assert run.known().producer == after


def test_id_of_before_a_restore_waits_for_a_fresh_one():
    run, _ = restored_at_epoch(5)
    command = InitProducer(run.key, TIMEOUT_MS, oldest_producer_id=1001)
    assert run.do(command).error == E.COORDINATOR_LOAD_IN_PROGRESS
    assert run.known().producer == (1000, 5)


# ---------------------------------------------------------------------------------- used up epochs


@pytest.mark.parametrize("expected", [False, True])
def test_the_last_epoch_rotates_the_producer_id(expected):
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH)
    new = began(run, producer if expected else (-1, -1))
    assert new == (1001, 0)
    assert run.known().previous_producer_id == producer[0]
    assert run.known().last_epoch == (LARGEST_CLIENT_EPOCH if expected else -1)
    # The answer was lost: the same request again is recognised, unless it named nothing.
    run.restart()
    if expected:
        assert began(run, producer) == new
    else:
        assert init(run, producer).error == E.PRODUCER_FENCED
        assert began(run) == (1001, 1)


def test_the_epoch_before_the_last_does_not_rotate():
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH - 1)
    assert began(run) == (producer[0], LARGEST_CLIENT_EPOCH)


def test_v1_fence_may_use_the_largest_epoch_but_hands_it_out_never_c11():
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH, version=1)
    add(run, producer, CLASSIC)
    assert init(run).error == E.CONCURRENT_TRANSACTIONS
    assert run.known().producer == (producer[0], LARGEST_EPOCH)
    assert began(run) == (1001, 0)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_timeout_at_the_last_epoch_lets_the_producer_begin_again(generation):
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH)
    add(run, producer, generation)
    time_out(run)
    assert run.known().state == State.COMPLETE_ABORT
    assert run.known().producer == (1001, 0)
    assert end(run, producer, generation=CLASSIC).error == E.INVALID_PRODUCER_ID_MAPPING
    assert began(run, producer) == (1001, 0)


def test_producer_with_the_next_id_waits_for_completion_kafka_18575_18654():
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH)
    add(run, producer)
    run.withhold()
    new = ended(run, producer)
    assert new == (1001, 0)
    assert run.known().producer == (producer[0], LARGEST_EPOCH)
    assert add(run, new) == E.CONCURRENT_TRANSACTIONS
    assert end(run, new, commit=False).error == E.CONCURRENT_TRANSACTIONS
    assert init(run, new).error == E.CONCURRENT_TRANSACTIONS
    assert end(run, producer).error == E.CONCURRENT_TRANSACTIONS
    run.restart()
    assert run.known().producer == (producer[0], LARGEST_EPOCH)
    run.write_markers()
    assert add(run, new) == E.NONE


def test_the_retry_of_the_end_that_rotated_is_recognised_kafka_18660_20310():
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH)
    add(run, producer)
    new = ended(run, producer)
    for _ in range(2):
        assert ended(run, producer) == new
        run.restart()
    assert end(run, producer, commit=False).error == E.INVALID_TXN_STATE
    assert began(run, producer) == new


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_with_the_largest_epoch_can_end_kafka_20090(commit):
    run, producer = at_epoch(LARGEST_EPOCH, state=State.ONGOING, partitions=frozenset({P0}))
    new = ended(run, producer, commit=commit)
    assert new == (1001, 0)
    assert run.known().producer == new
    assert add(run, new) == E.NONE


def test_transaction_at_the_largest_epoch_can_be_fenced_kafka_20090():
    run, producer = at_epoch(LARGEST_EPOCH, state=State.ONGOING, partitions=frozenset({P0}))
    time_out(run)
    assert run.known().producer == (1001, 0)
    run, producer = at_epoch(
        LARGEST_EPOCH, state=State.ONGOING, partitions=frozenset({P0}), version=1
    )
    time_out(run)
    assert run.known().producer == producer
    assert began(run) == (1001, 0)


def keep(run, expected=(-1, -1)):
    """Pin what is open (KIP-939)."""
    command = InitProducer(
        run.key, NEVER_MS, *expected, keep_prepared=True, fresh_producer_id=run.fresh()
    )
    return run.do(command)


def kept(run, expected=(-1, -1)):
    outcome = keep(run, expected)
    assert outcome.error == E.NONE
    return outcome.producer_id, outcome.producer_epoch


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_keep_prepared_at_the_last_epoch_gets_another_id_c11(generation, commit):
    run, writer = at_epoch(LARGEST_CLIENT_EPOCH)
    add(run, writer)
    first = kept(run)
    run.restart()
    owner = kept(run, first)
    assert (first, owner) == ((1001, 0), (1001, 1))
    assert keep(run, first).error == E.PRODUCER_FENCED
    for zombie in (writer, first):
        assert end(run, zombie, commit=commit, generation=generation).error == E.PRODUCER_FENCED
    assert add(run, writer, generation) == E.PRODUCER_FENCED
    assert add(run, owner, generation) == E.INVALID_TXN_STATE
    run.withhold()
    after = ended(run, owner, commit=commit, generation=generation)
    assert after == (1001, 1 + (generation == TRANSACTIONS_V2))
    # The markers follow the data, with an epoch that these do not have.
    assert run.known().producer == (writer[0], LARGEST_EPOCH)
    assert end(run, owner, commit=commit, generation=generation).error == E.CONCURRENT_TRANSACTIONS
    run.restart()
    run.write_markers()
    assert run.known().producer == after
    assert ended(run, owner, commit=commit, generation=generation) == after
    for zombie in (writer, first):
        assert init(run, zombie).error == E.PRODUCER_FENCED
    assert add(run, after, generation) == E.NONE


@pytest.mark.parametrize("commit", [True, False])
def test_keep_prepared_keeps_its_id_after_a_lower_level(commit):
    """Version 0 of the record has no room for that id: a restart would not know it."""
    run, writer = at_epoch(LARGEST_CLIENT_EPOCH)
    add(run, writer, CLASSIC)
    owner = kept(run)
    run.version = 0
    run.restart()
    run.withhold()
    ended(run, owner, commit=commit, generation=CLASSIC)
    run.restart()
    assert run.known().next_producer_id == owner[0]
    run.write_markers()
    run.restart()
    assert run.known().producer == owner
    assert add(run, owner, CLASSIC) == E.NONE


@pytest.mark.parametrize("version", [1, 2])
def test_prepared_transaction_at_the_last_epoch_can_be_fenced(version):
    run, writer = at_epoch(LARGEST_CLIENT_EPOCH, version=version)
    add(run, writer, TRANSACTIONS_V2 if version == 2 else CLASSIC)
    owner = kept(run)
    assert init(run, writer).error == E.PRODUCER_FENCED
    assert began(run) == (owner[0], 2)
    assert end(run, owner).error == E.PRODUCER_FENCED


def test_the_epochs_of_who_keeps_a_transaction_end_too_c11():
    run, writer = at_epoch(3)
    add(run, writer)
    kept(run)
    run.plant(run.known()._replace(next_epoch=LARGEST_CLIENT_EPOCH))
    owner = kept(run, (writer[0], LARGEST_CLIENT_EPOCH))
    assert owner == (1001, 0)
    assert ended(run, owner) == (1001, 1)
    assert run.known().producer == (1001, 1)


def test_commands_are_retriable_without_a_fresh_producer_id():
    """The next block of ids is on its way to the disk; nothing may change meanwhile."""
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH)
    assert run.do(InitProducer(run.key, TIMEOUT_MS)).error == E.COORDINATOR_LOAD_IN_PROGRESS
    add(run, producer)
    before = run.known()
    refused = [
        InitProducer(run.key, TIMEOUT_MS),
        InitProducer(run.key, NEVER_MS, keep_prepared=True),
        EndTransaction(run.key, *producer, commit=True, transaction_version=TRANSACTIONS_V2),
        EndTransaction(run.key, *producer, commit=False, transaction_version=TRANSACTIONS_V2),
    ]
    for command in refused:
        assert run.do(command).error == E.COORDINATOR_LOAD_IN_PROGRESS
    timer = timeout_timer(run.key)
    run.timers.clear()
    run.do(TimerExpired(timer))
    assert run.timers == {timer: run.tick_ms + 1000}
    assert run.known() == before
    assert Run().do(InitProducer("t", TIMEOUT_MS)).error == E.COORDINATOR_LOAD_IN_PROGRESS


# --------------------------------------------------------------------------- lost answers, restarts


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("first", range(32_762, 32_767))
def test_every_request_is_repeated_over_the_rotation_c8(first, restarts):
    """Every answer is lost once, and the broker restarts between any two steps."""
    run, producer = at_epoch(first)

    def again(request):
        answer = request()
        if restarts:
            run.restart()
        assert request() == answer
        if restarts:
            run.restart()
        return answer

    for number in range(5):
        before = producer
        assert again(partial(add, run, before)) == E.NONE
        producer = again(partial(ended, run, before, commit=bool(number % 2)))
        assert run.known().producer == producer
        assert producer in {(before[0], before[1] + 1), (1001, 0)}
    bumped = again(partial(began, run, producer))
    assert bumped == (producer[0], producer[1] + 1)
    assert len({each.producer_id for each in run.history if each}) == 2


class CrashError(Exception):
    """The broker ends."""


class Fragile(Run):
    """A run that ends once, before or after a certain record, before the record is applied."""

    crash_at = -1
    is_durable = False

    def append(self, record):
        if len(self.log) == self.crash_at:
            self.crash_at = -1
            if self.is_durable:
                super().append(record)
            raise CrashError
        super().append(record)


def four_transactions(run, producer):
    """A client that repeats what it got no answer to; its producer in the end."""

    def ask(request, *arguments, **options):
        try:
            return request(run, *arguments, **options)
        except CrashError:
            run.restart()
            return request(run, *arguments, **options)

    for commit in (True, False, True, True):
        assert ask(add, producer) == E.NONE
        producer = ask(ended, producer, commit=commit)
    return ask(began, producer)


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("first", [0, *range(LARGEST_CLIENT_EPOCH - 5, LARGEST_CLIENT_EPOCH + 1)])
def test_a_crash_at_any_record_changes_nothing_for_the_client_c8(first, is_durable):
    def run_with_crash_at(number):
        run = Fragile()
        run.is_durable = is_durable
        run.plant(Transaction(run.key, 1000, first, TIMEOUT_MS))
        run.crash_at = number
        producer = four_transactions(run, (1000, first))
        assert run.crash_at == -1
        return [each.state for each in run.history if each], producer[1], len(run.log)

    whole = run_with_crash_at(-1)
    assert whole[2] == 14
    for number in range(1, whole[2]):
        assert run_with_crash_at(number)[1] == whole[1], number


def test_the_last_epoch_is_in_the_record_kafka_20357():
    run = Run()
    producer = began(run)
    bumped = began(run, producer)
    run.restart()
    assert began(run, producer) == bumped
    decoded = decode_record(TOPIC, *run.log[-1])
    assert decoded is not None
    assert decoded.value.last_producer_epoch == producer[1]


def test_a_commit_repeated_after_the_timeout_is_fenced_kafka_20785():
    run = Run()
    producer = began(run)
    add(run, producer)
    time_out(run)
    assert run.known().state == State.COMPLETE_ABORT
    assert end(run, producer, commit=True).error == E.PRODUCER_FENCED
    # The abort that the application asks for next is what has happened already.
    assert ended(run, producer, commit=False) == (producer[0], producer[1] + 1)


def test_a_late_commit_does_not_commit_the_next_transaction_kafka_17754():
    run = Run()
    producer = began(run)
    add(run, producer)
    second = ended(run, producer, commit=False)
    add(run, second)
    assert end(run, producer, commit=True).error == E.PRODUCER_FENCED
    assert run.known().state == State.ONGOING


def test_fenced_producer_gets_no_success_for_a_later_commit():
    run = Run()
    zombie = began(run)
    add(run, zombie)
    producer = began(run)
    add(run, producer, CLASSIC)
    ended(run, producer, generation=CLASSIC)
    fenced = (producer[0], producer[1] - 1)
    for commit in (True, False):
        assert end(run, fenced, commit=commit).error == E.PRODUCER_FENCED
        assert end(run, zombie, commit=commit).error == E.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_of_every_level_are_read_back(version):
    run = Run(version)
    producer = began(run)
    for commit in (True, False):
        add(run, producer, CLASSIC)
        run.restart()
        ended(run, producer, commit=commit, generation=CLASSIC)
        run.restart()
    assert began(run) == (producer[0], producer[1] + 1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_kip_890_client_of_a_lower_level_survives_a_restart(version):
    """A client that knew the broker before it was set to a lower level."""
    run, producer = at_epoch(LARGEST_CLIENT_EPOCH, version=version)
    add(run, producer)
    run.withhold()
    new = ended(run, producer)
    run.restart()
    assert run.known().next_producer_id == new[0]
    run.write_markers()
    run.restart()
    assert run.known().producer == new
    assert ended(run, producer) == new
