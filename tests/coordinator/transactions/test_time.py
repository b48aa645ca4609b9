"""Timeouts and expiry, and clocks that are moved (C12, C13, T1)."""

from __future__ import annotations

import pytest

from barnabas.coordinator.decision import Record
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    EndTransaction,
    Expire,
    InitProducer,
    TimerExpired,
)
from barnabas.coordinator.transactions.partitions import PARTITIONS_MAX
from barnabas.coordinator.transactions.shard import TransactionShard
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    NEVER_MS,
    TRANSACTIONS_V2,
    State,
    TopicPartition,
    Transaction,
    timeout_timer,
)
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.transactions.run import Run
from tests.coordinator.transactions.states import P0, P1

TIMEOUT_MS = 10_000
WEEK_MS = 7 * 24 * 3600 * 1000
HOUR_MS = 3600 * 1000
YEAR_MS = 365 * 24 * HOUR_MS
JUMPS = [-YEAR_MS, -HOUR_MS, 0, HOUR_MS, YEAR_MS]


def begun(run, timeout_ms=TIMEOUT_MS):
    outcome = run.do(InitProducer(run.key, timeout_ms, fresh_producer_id=run.fresh()))
    return outcome.producer_id, outcome.producer_epoch


def opened(run, timeout_ms=TIMEOUT_MS, transaction_version=TRANSACTIONS_V2):
    producer = begun(run, timeout_ms)
    run.do(AddPartitions(run.key, *producer, frozenset({P0}), transaction_version))
    return producer


@pytest.mark.parametrize("jump_ms", JUMPS)
@pytest.mark.parametrize("transaction_version", [CLASSIC, TRANSACTIONS_V2])
def test_timeout_is_independent_of_the_wall_clock_c12_t1(jump_ms, transaction_version):
    run = Run()
    opened(run, transaction_version=transaction_version)
    run.pass_time(TIMEOUT_MS - 1, jump_ms)
    assert not run.due()
    run.pass_time(1)
    assert run.due()
    assert run.known().state == State.COMPLETE_ABORT
    assert run.known().last_update_ms >= run.history[0].last_update_ms


def test_more_partitions_do_not_prolong_it():
    run = Run()
    producer = opened(run)
    start_ms = run.known().start_ms
    run.pass_time(TIMEOUT_MS - 1)
    run.do(AddPartitions(run.key, *producer, frozenset({P1}), TRANSACTIONS_V2))
    assert run.known().start_ms == start_ms
    run.pass_time(1)
    assert run.due()


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_after_a_restart_it_has_the_rest_of_its_time(jump_ms):
    run = Run()
    opened(run)
    run.pass_time(4_000, jump_ms)
    run.restart()
    (left_ms,) = (at - run.tick_ms for at in run.timers.values())
    # A clock that was moved while the broker was down counts, but only within the bounds.
    expected = {0: 6_000}.get(jump_ms, TIMEOUT_MS if jump_ms < 0 else 0)
    assert left_ms == expected


def test_a_transaction_without_a_timeout_is_never_timed():
    run = Run()
    opened(run, NEVER_MS)
    assert not run.timers
    run.restart()
    assert not run.timers
    before = run.known()
    run.do(TimerExpired(timeout_timer(run.key), run.fresh()))
    assert run.known() == before


def test_decided_transaction_does_not_time_out_c12():
    run = Run()
    producer = opened(run)
    run.withhold()
    run.do(EndTransaction(run.key, *producer, commit=True, transaction_version=TRANSACTIONS_V2))
    run.pass_time(YEAR_MS)
    assert not run.due()
    run.do(TimerExpired(timeout_timer(run.key), run.fresh()))
    assert run.known().state == State.PREPARE_COMMIT
    run.write_markers()
    assert run.known().state == State.COMPLETE_COMMIT


# ----------------------------------------------------------------------------------------- expiry


def expire(run, idle_ms=WEEK_MS):
    run.do(Expire(run.key, idle_ms))
    return run.transaction is None


def test_an_id_is_forgotten_when_it_was_idle_for_long_c13():
    run = Run()
    producer = begun(run)
    run.pass_time(WEEK_MS - 1)
    assert not expire(run)
    run.pass_time(1)
    assert expire(run)
    run.restart()
    add = AddPartitions(run.key, *producer, frozenset({P0}), CLASSIC)
    assert run.do(add).error == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert begun(run)[0] != producer[0]


def test_open_or_decided_transactions_are_not_expired_c13():
    run = Run()
    producer = opened(run, NEVER_MS)
    run.pass_time(10 * WEEK_MS)
    assert not expire(run)
    run.withhold()
    run.do(EndTransaction(run.key, *producer, commit=False, transaction_version=CLASSIC))
    run.pass_time(10 * WEEK_MS)
    assert not expire(run)
    run.write_markers()
    assert not expire(run)
    run.pass_time(WEEK_MS)
    assert expire(run)


@pytest.mark.parametrize("jump_ms", JUMPS)
@pytest.mark.parametrize("used_after", [False, True])
def test_wall_clock_jump_expires_no_id_t1(jump_ms, used_after):
    run = Run()
    begun(run)
    run.pass_time(HOUR_MS, jump_ms)
    if used_after:
        begun(run)
    run.pass_time(WEEK_MS - HOUR_MS - 1)
    assert not expire(run)


# ----------------------------------------------------------------------------------------- limits


def test_a_transaction_has_a_limit_of_partitions():
    run = Run()
    producer = begun(run)
    many = frozenset(TopicPartition("t", number) for number in range(PARTITIONS_MAX))
    assert run.do(AddPartitions(run.key, *producer, many, CLASSIC)).error == ErrorCode.NONE
    more = AddPartitions(run.key, *producer, frozenset({P0}), CLASSIC)
    assert run.do(more).error == ErrorCode.INVALID_REQUEST
    assert run.known().partitions == many


# ------------------------------------------------------------------------------------- quarantine


@pytest.mark.parametrize("state", [State.DEAD, State.PREPARE_EPOCH_FENCE])
def test_a_state_that_no_record_may_have_is_refused(state):
    shard = TransactionShard()
    read = shard.record(Transaction("t", 1, 0, TIMEOUT_MS, state))._replace(meaning=None)
    with pytest.raises(ValueError, match=state.name):
        shard.apply(read, 0)
    assert not shard.transactions


def test_a_later_record_ends_the_quarantine():
    shard = TransactionShard()
    good = shard.record(Transaction("t", 1, 0, TIMEOUT_MS, State.ONGOING, frozenset({P0})))
    for later in (good, Record(good.kind, good.key, None)):
        shard.apply(good, 0)
        shard.quarantine("t")
        assert shard.quarantined == {"t"}
        assert not shard.transactions
        assert not shard.keys()
        shard.apply(later, 1)
        assert not shard.quarantined
