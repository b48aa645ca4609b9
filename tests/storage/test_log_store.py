"""The store as a whole: when appends are delayed, and when they resume."""

from random import Random

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.store.log_position import checkpoint_of
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory
from barnabas.storage.store.store_parts import StoreSettings
from tests.storage.engines import InlineEngine
from tests.storage.stores import Host, batch, from_producer


class Throttled(Host):
    """A host that notes when its appenders are held back."""

    def boot(self):
        log = super().boot()
        self.held_back = False
        self.store.callbacks.on_backlogged = self._on_backlogged
        return log

    def _on_backlogged(self, backlogged):
        self.held_back = backlogged


def test_group_larger_than_the_journal_delays_no_append():
    """A checkpoint never recycles the file that is being written, so waiting would never end."""
    host = Throttled(
        settings=StoreSettings(journal_file_bytes=64 << 10, journal_max_bytes=128 << 10)
    )
    host.boot()
    host.append(batch(value=b"v" * 300_000))
    host.checkpoint()
    assert not host.held_back
    host.append(batch())
    assert host.log.next_offset == 2


def test_a_small_journal_is_checkpointed_before_it_is_full():
    """Producers would else stall until the next checkpoint that is due by time."""
    host = Throttled(
        settings=StoreSettings(journal_file_bytes=64 << 10, journal_max_bytes=256 << 10)
    )
    host.boot()
    for _ in range(40):
        host.append(batch(value=b"v" * 20_000))
        assert not host.held_back
    assert host.store.files is not None
    assert host.store.files.used_bytes <= 256 << 10


@pytest.mark.parametrize("end", [Host.kill, Host.shut_down])
@pytest.mark.parametrize("is_checkpointed", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_the_epoch_of_a_start_is_later_than_that_of_a_marker_in_any_log(
    end, is_checkpointed, number
):
    """D6: or the coordinator's own markers would be refused as those of an older one (M3)."""
    host = Host(topics=("topic", "other"))
    host.boot()
    log = host.store.get(number)
    log.append(from_producer(7, 0, transactional=True))
    log.append_marker(TransactionMarker(7, 0, coordinator_epoch=77, commit=True))
    log.append(from_producer(8, 0, transactional=True))
    log.append_marker(TransactionMarker(8, 0, coordinator_epoch=5, commit=True))
    host.step()
    if is_checkpointed:
        host.checkpoint()
    end(host)
    host.boot()
    assert {each.leader_epoch for each in host.store.logs.values()} == {78}
    assert host.store.leader_epoch == 78
    end(host)
    host.boot()
    assert host.store.leader_epoch == 78, "nothing was written in between: the caller remembers it"


def test_an_epoch_that_was_written_by_hand_is_not_exceeded():
    """A batch has no space for a later epoch; the highest epoch of a coordinator is exceeded."""
    host = Host()
    host.boot()
    for producer_id, epoch in ((7, 2**30 - 1), (8, 2**30), (9, 2**31 - 1)):
        host.append(from_producer(producer_id, 0, transactional=True))
        host.log.append_marker(
            TransactionMarker(producer_id, 0, coordinator_epoch=epoch, commit=False)
        )
        host.step()
    host.kill()
    host.boot()
    assert host.store.leader_epoch == 2**30


def test_new_data_directory_survives_a_power_loss_d1():
    for seed in range(5):
        disk = SimulatedFileSystem()
        lock_directory(LogStore(disk, "/var/lib/data", engine=InlineEngine(), now_ms=lambda: 0))
        assert disk.crash(Random(seed)).exists("/var/lib/data")


def test_checkpoint_has_a_log_start_that_is_not_durable_yet_d1():
    """The next start replays the journal from behind it."""
    host = Host()
    host.boot()
    host.append(batch(), batch(), batch())
    host.log.delete_records(2)
    assert host.log.log_start_offset == 0
    assert checkpoint_of(host.log).log_start_offset == 2
