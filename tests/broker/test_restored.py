"""Producer ids and leader epochs of a restored directory, beside those that its original used."""

import pytest

from barnabas.broker.metadata.restored import advance_counters, era_start
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore

NOW_MS = 1_795_000_000_000
IDS_PER_S = 1_000_000
"""More than a broker can give out: every thousand takes a commit."""


@pytest.fixture
def metastore():
    store = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg")
    yield store
    store.close()


def counters(metastore):
    return metastore.load().next_producer_id, metastore.boot_epoch


def test_each_restore_begins_above_all_that_was_used_before_it(metastore):
    used_ids, used_epochs = 5000, 12
    for second in (0, 1, 3, 100, 10_000_000):
        advance_counters(metastore, NOW_MS + second * 1000)
        ids, epoch = counters(metastore)
        assert ids >= used_ids
        assert second < 2 or epoch > used_epochs
        # What a broker uses until a later second that a restore may come in.
        used_ids, used_epochs = ids + IDS_PER_S, epoch


def test_two_restores_of_one_backup_have_nothing_in_common(metastore):
    """The second one knows nothing of the first."""
    advance_counters(metastore, NOW_MS)
    first = counters(metastore)
    other = SqliteMetaStore.open(MEMORY, node_id=1, new_cluster_id="oKlTPFF2TkSvFtAbxy0nMg")
    advance_counters(other, NOW_MS + 2000)
    second = counters(other)
    other.close()
    assert second[0] - first[0] >= 2 * IDS_PER_S
    assert second[1] > first[1]


@pytest.mark.parametrize("next_producer_id", [0, 999, 5000, (5 << 24) - 1, 5 << 24])
def test_clock_that_was_set_back_still_leaves_a_wide_gap(metastore, next_producer_id):
    metastore.raise_producer_ids(next_producer_id)
    advance_counters(metastore, 0)
    ids, epoch = counters(metastore)
    assert ids - next_producer_id >= 16 * IDS_PER_S
    assert epoch >= 1 << 16


def test_counters_stay_in_the_range_of_their_readers_for_years(metastore):
    advance_counters(metastore, NOW_MS)
    ids, epoch = counters(metastore)
    assert ids < 2**53
    assert epoch < 2**30


def test_era_starts_at_the_first_id_after_a_restore(metastore):
    assert era_start(0) == era_start(1) == era_start(5000) == 0
    advance_counters(metastore, NOW_MS)
    first = metastore.load().next_producer_id
    block = metastore.allocate_producer_ids()
    assert block.start == first == era_start(block.stop)
    assert metastore.allocate_producer_ids().start > era_start(block.stop)
