"""Several stores on one log index, with threads; and each rule of the flush broken in turn."""

from dataclasses import replace

import pytest

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.storage.replicated.log_index import Outcome
from tests.real.storage.flush_cluster import FailoverCluster, FlushCluster, ReplicatedIndex
from tests.seeds import SEED

STEPS = 250
SEEDS = range(SEED, SEED + 10)


@pytest.mark.parametrize("kind", [FlushCluster, FailoverCluster])
@pytest.mark.parametrize("number", range(3))
async def test_acknowledged_batches_exist_once_after_random_faults(kind, number, tmp_path):
    cluster = kind(SEED + number, tmp_path)
    await cluster.run(STEPS)
    assert cluster.refusals, "nothing has happened"


# ------------------------------------------------------------------------- what must be found out


async def is_found_out(path, index, kind=FlushCluster):
    """Whether one of the seeds shows that something is wrong with what ``index`` makes."""
    for seed in SEEDS:
        try:
            await kind(seed, path / str(seed), index()).run(STEPS)
        except AssertionError:
            return True
    return False


class NothingCompared(MemoryIndex):
    def _led_elsewhere(self, session, flush):
        return frozenset()


class EachItemForItself(MemoryIndex):
    def commit_flush(self, session, flush):
        answer = super().commit_flush(session, flush)
        if answer.outcome is Outcome.REFUSED:
            kept = [each for each in flush.items if each.partition_id not in answer.refused]
            with self._lock:
                self._write(replace(flush, items=kept, starts=()))
        return answer


class CountsNothing(MemoryIndex):
    def commit_flush(self, session, flush):
        with self._lock:
            self._sessions[session].next_flushes[flush.lane] = flush.number
        return super().commit_flush(session, flush)


class KnownByAPlainRead(ReplicatedIndex):
    def answers_at_once(self, is_known):
        return is_known


class AnsweredBeforeTheStandby(ReplicatedIndex):
    def answers_at_once(self, is_known):
        return True


@pytest.mark.parametrize("index", [NothingCompared, EachItemForItself, CountsNothing])
async def test_an_index_that_breaks_a_rule_is_found_out(index, tmp_path):
    assert await is_found_out(tmp_path, index)


@pytest.mark.parametrize("index", [KnownByAPlainRead, AnsweredBeforeTheStandby])
async def test_an_answer_that_a_failover_takes_back_is_found_out(index, tmp_path):
    assert await is_found_out(tmp_path, index, FailoverCluster)


class InOtherOrder:
    """A proxy of a store's runner that submits each second group before the first."""

    def __init__(self, genuine):
        self.genuine = genuine
        self.held = None

    def submit(self, group):
        if self.held is None:
            self.held = group
            return
        self.genuine.submit(group)
        self.genuine.submit(self.held)
        self.held = None

    def commit_inline(self, group, meanwhile):
        return self.genuine.commit_inline(group, meanwhile)

    def stop(self):
        self.genuine.stop()


class OutOfOrderCluster(FlushCluster):
    def runner(self, node):
        return InOtherOrder(super().runner(node))


async def test_flushes_out_of_order_are_found_out(tmp_path):
    assert await is_found_out(tmp_path, MemoryIndex, OutOfOrderCluster)
