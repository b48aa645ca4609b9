"""Crashes after every change of the disk, under transactions that the real coordinators run.

After each operation on the disk, disks are drawn as a power loss may leave them then. Each must
open to logs that hold all invariants of transactions; and with no client there, the coordinators
must bring everything that was decided, or left open for too long, to its end. A failure prints its
seed: ``BARNABAS_CRASH_SEED=<seed> pytest tests/crash/test_transactions_on_simulated_disk.py``.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from barnabas.broker.coordination.marker_phase import MarkerPhase
from barnabas.broker.coordination.transactions import Transactions
from barnabas.broker.handlers.records.produce import ProduceHandler
from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.broker.testing.disk.simulated import Operation, SimulatedFileSystem
from barnabas.coordinator.transactions.commands import AddPartitions, EndTransaction, MarkersPlaced
from barnabas.coordinator.transactions.state import (
    State,
    transaction_of,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.log.transaction_marker import TransactionMarker
from tests.crash.amounts import seeds
from tests.crash.crashes import Keep
from tests.crash.transaction_life import PARTITIONS, TOPIC, Life, copy_of, new_metastore
from tests.crash.transaction_load import TIMEOUT_MS, Load

SEEDS = seeds(in_test=1, at_night=4)
LIVES = 3
STEPS_PER_LIFE = 300
SHARE = 0.3
POINTS_PER_SEED = 50
GROUP_BYTES = (1, 300, 4 << 20)
"""Maximum bytes of a commit group: with the smallest each group has one batch, so that a crash may
cut between any two of them."""


class TransactionCrashes:
    """One seed's lives; ``points`` counts the disks that were recovered and checked."""

    def __init__(self, seed: int, share: float = 1) -> None:
        """``share``: the share of the operations after which a crash is checked."""
        self.seed = seed
        self._share = share
        self.points = 0
        self.load = Load(Random(seed))
        self._random = Random(f"{seed} draws")
        self._metastore = new_metastore()
        self._disk = SimulatedFileSystem()
        self._now_ms = 1_000_000
        self._broken: BaseException | None = None

    async def run(self) -> None:
        """Run all lives; raises at the first violation."""
        for number in range(LIVES):
            life = Life(self._disk, self._metastore, self._now_ms)
            life.open()
            if number == 0:
                await self._make_topics(life)
            self._disk.after = self._crash_here
            for _ in range(STEPS_PER_LIFE):
                self.load.step(life)
                await asyncio.sleep(0)  # The catalogue fetches producer ids.
                self._now_ms = life.clock.now_ms()
                if self._broken is not None:
                    raise self._broken
            self._disk.after = None
            life.end()
            self._disk = self._disk.crash(self._random)
            self.load.die()
        self._metastore.close()

    async def _make_topics(self, life: Life) -> None:
        await life.catalogue.create_topic(TOPIC, PARTITIONS[TOPIC], {})
        await life.groups.ensure()
        await life.transactions.ensure()
        await life.catalogue.producer_ids.ensure()
        life.settle()

    def _crash_here(self, operation: Operation) -> None:
        if self._broken is not None or self._random.random() > self._share:
            return
        draw = Keep() if operation.number % 4 == 0 else self._random
        try:
            self.check(self._disk.crash(draw))
        except BaseException as error:  # noqa: BLE001  Storage would take it for an I/O error.
            where = f"{operation.name} {operation.path}"
            error.add_note(f"BARNABAS_CRASH_SEED={self.seed}, operation {operation.number} {where}")
            self._broken = error
        self.points += 1

    def check(self, disk: SimulatedFileSystem) -> None:
        """Start on a disk; judge what is found, then what becomes of it."""
        metastore = copy_of(self._metastore)
        life = Life(disk, metastore, self._now_ms)
        life.catalogue.producer_ids.peek = lambda: -1
        found = life.history()
        found.check()
        life.open()
        epoch = life.transactions.coordinator_epoch
        assert epoch > found.highest_coordinator_epoch, "a coordinator epoch comes again (D6)"
        life.drain(TIMEOUT_MS)
        ended = life.history()
        ended.check_complete()
        self.load.check(ended)
        self.load.check_offsets(life, ended)
        for topic, count in PARTITIONS.items():
            for index in range(count):
                log = life.log(topic, index)
                assert log.last_stable_offset == log.high_watermark, f"{log} is not stable (C6)"
        life.end()
        metastore.close()


async def crashes_of(seed: int, monkeypatch) -> TransactionCrashes:
    monkeypatch.setattr(
        "barnabas.storage.journal.journal._GROUP_BYTES", GROUP_BYTES[seed % len(GROUP_BYTES)]
    )
    run = TransactionCrashes(seed, SHARE)
    await run.run()
    return run


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_crash_leaves_transactions_that_end_whole(seed, monkeypatch):
    run = await crashes_of(seed, monkeypatch)
    ended = [each for each in run.load.written if each.told is not None]
    print(f"seed {seed}: {run.points} crashes, {len(ended)} transactions, {dict(run.load.refused)}")
    assert run.points >= POINTS_PER_SEED, "the workload became too small to mean anything"
    assert len(ended) > STEPS_PER_LIFE / 20
    assert run.load.plain.acknowledged


# ---------------------------------------------------------------- each guard taken away in its turn


async def first_violation(monkeypatch) -> str:
    """The message of the first seed's run that finds something; empty if none does."""
    for seed in range(6):
        try:
            await crashes_of(seed, monkeypatch)
        except AssertionError as error:
            return str(error)
    return ""


async def test_completion_before_the_markers_is_found_out(monkeypatch):
    def begin(phase: MarkerPhase, shard, key: str) -> None:
        machine = shard.machine
        transaction, owed = machine.transactions[key], machine.awaiting_markers(key)
        machine.change(MarkersPlaced(key, owed))
        phase._complete(shard, phase._completion(shard, key))
        for place in owed:
            marker = TransactionMarker(
                *transaction.producer,
                commit=transaction.commits,
                coordinator_epoch=shard.log.leader_epoch,
                transaction_version=transaction.transaction_version,
            )
            phase._markers.write(*place, marker)

    monkeypatch.setattr(MarkerPhase, "begin", begin)
    assert "(D5, M1)" in await first_violation(monkeypatch)


async def test_markers_before_the_decision_are_found_out(monkeypatch):
    decide = Transactions._run

    def decide_late(transactions, shard, key, command):
        if isinstance(command, EndTransaction):
            present = transactions.transaction(key)
            decision = shard.machine.decide(command, transactions.log.now())
            if present.state == State.ONGOING and decision.records:
                prepared = transaction_of(decision.records[0])
                marker = TransactionMarker(
                    *prepared.producer,
                    commit=prepared.commits,
                    coordinator_epoch=transactions.coordinator_epoch,
                    transaction_version=prepared.transaction_version,
                )
                for place in present.partitions:
                    transactions._markers._markers.write(*place, marker)
        return decide(transactions, shard, key, command)

    monkeypatch.setattr(Transactions, "_run", decide_late)
    assert "(C3)" in await first_violation(monkeypatch)


async def test_data_before_the_record_of_its_partition_is_found_out(monkeypatch):
    late: list[AddPartitions] = []

    def add_later(transactions, command):
        if any(each.topic == GROUP_OFFSETS for each in command.partitions):
            return add(transactions, command)
        late.append(command)
        return ErrorCode.NONE

    def append_first(handler, *arguments, **options):
        response = append_all(handler, *arguments, **options)
        while late:
            add(handler.transactions, late.pop())
        return response

    add, append_all = Transactions.add, ProduceHandler.append_all
    monkeypatch.setattr(Transactions, "add", add_later)
    monkeypatch.setattr(ProduceHandler, "append_all", append_first)
    assert "(P1)" in await first_violation(monkeypatch)
