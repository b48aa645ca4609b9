"""Acknowledged records survive all faults of the servers: none is lost, torn or duplicated.

Controls show that the judge would see it: it also runs with one of the rules broken.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import pytest

from barnabas.storage.replicated.log_index import FlushAnswer, IndexMisused, Outcome
from tests.counterparts.postgresql_servers import Pair
from tests.postgresql.broken_flushes import ANSWER_FROM_A_READ, NO_COMPARE, WAITING, break_flush
from tests.postgresql.flushing import History, Writer, violations
from tests.postgresql.nemesis import torment
from tests.postgresql.whole_index import WholeIndex
from tests.products import case
from tests.seeds import SEED
from tests.waiting import WAIT_S, wait_until

CONTROLS = [case(False, in_test=True), case(True, in_test=False)]
"""Whether a rule is broken on purpose, which the judge must see."""
ROUNDS = 7
"""Each kind of what can happen once."""


def test_under_all_that_happens_every_flush_is_whole_in_order_and_once():
    with Pair() as pair:
        history = torment(pair, ROUNDS, SEED)
        assert violations(pair.primary, history) == []
    assert {each.outcome for each in history.attempts} >= {Outcome.COMMITTED, Outcome.REFUSED}
    assert history.packed > 0


# ------------------------------------------------------------------------------ broken on purpose


class PerItem(WholeIndex):
    """Commits what it can of a flush, each item by itself."""

    number = 0

    def commit_flush(self, session, flush):
        refused = set()
        for item in flush.items:
            single = type(flush)(flush.lane, self.number, [item], payload=flush.payload)
            answer = super().commit_flush(session, single)
            self.number += answer.outcome is Outcome.COMMITTED
            refused |= answer.refused
        return FlushAnswer(Outcome.REFUSED if refused else Outcome.COMMITTED, frozenset(refused))


@pytest.fixture
def history():
    return History()


@contextmanager
def writers(pair, history, count=2, **options):
    """Writers of which the first one leads two partitions."""
    with ExitStack() as stack:
        made = []
        for node_id in range(count):
            made.append(Writer(pair.url, node_id, f"{SEED}.{node_id}", history, **options))
            stack.callback(made[-1].index.close)
        for partition_id in range(2):
            made[0].index.add_partition(partition_id)
            made[0].take(partition_id)
        yield made


@contextmanager
def flushing(writer):
    """A flush of both partitions, whose answer comes on a thread."""
    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(writer.flush, [0, 1])
        except BaseException:
            writer.index.close()
            raise


@pytest.mark.parametrize("broken", CONTROLS)
def test_an_answer_from_a_read_loses_what_was_acknowledged_f3(pair, history, broken):
    # So patient that an attempt fails by what happens here alone.
    with writers(pair, history, 1, patience_s=WAIT_S) as (writer,):
        if broken:
            break_flush(pair.primary, ANSWER_FROM_A_READ)
        writer.flush([0, 1])
        pair.cut()
        with flushing(writer) as answer:
            pair.primary.wait_for(WAITING)
            failed = writer.index.attempts_failed
            pair.primary.terminate_waiting()
            # The next attempt finds it committed, as far as can be seen.
            wait_until(lambda: writer.index.attempts_failed > failed)
            wait_until(lambda: answer.done() or pair.primary.execute(WAITING) == [(True,)])
            assert answer.done() == broken
            pair.fail_over()
            assert answer.result() is Outcome.COMMITTED
    assert bool(violations(pair.primary, history)) == broken


@pytest.mark.parametrize("broken", CONTROLS)
def test_without_the_compare_two_lead_f1(pair, history, broken):
    with writers(pair, history) as (former, present):
        if broken:
            break_flush(pair.primary, NO_COMPARE)
        present.take(1)
        former.flush([0, 1])
        with suppress(IndexMisused):
            present.flush([1])
    assert bool(violations(pair.primary, history)) == broken


@pytest.mark.parametrize("broken", CONTROLS)
def test_committing_item_by_item_tears_a_flush_f1(pair, history, broken):
    index = PerItem if broken else WholeIndex
    with writers(pair, history, index=index, uploads=0) as (former, present):
        present.take(1)
        assert former.flush([0, 1]) is Outcome.REFUSED
    assert bool(violations(pair.primary, history)) == broken


@pytest.mark.parametrize("broken", CONTROLS)
def test_an_asynchronous_standby_loses_what_was_acknowledged(pair, history, broken):
    with writers(pair, history, 1) as (writer,):
        pair.cut()
        if broken:
            pair.primary.set(synchronous_standby_names="")
        with flushing(writer) as answer:
            # A commit that started before the whole server knew the settings waits until it does.
            wait_until(
                lambda: answer.done() if broken else pair.primary.execute(WAITING) == [(True,)]
            )
            pair.fail_over()
            assert answer.result() is Outcome.COMMITTED
    assert bool(violations(pair.primary, history)) == broken
