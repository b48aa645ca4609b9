"""Crashes at every step of a swap while logs are compacted.

Like ``test_simulated_disk.py``, with compacted topics, tombstones, and passes that go on between
appends, rolls, checkpoints and deletions: a crash at any moment of a swap leaves the old segments
or the new ones. Every change that has to do with a swap is a point to crash at, of the others each
tenth. Run one seed again with ``BARNABAS_CRASH_SEED=<seed>``.
"""

import os

import pytest

from barnabas.storage import segment_swap
from barnabas.storage.simulated import Operation, SimulatedFileSystem
from tests.crash import compaction
from tests.crash.compaction import CompactingWorkload, check_compacted
from tests.crash.crashes import CrashRun

SEEDS = (
    [int(os.environ["BARNABAS_CRASH_SEED"])] if "BARNABAS_CRASH_SEED" in os.environ else range(2)
)
_OF_A_SWAP = ("rename", "unlink", "sync_directory")


class CompactionRun(CrashRun):
    """A run that looks closely at what compaction does to the disk."""

    steps_per_life = 100

    def __init__(self, seed: int) -> None:
        super().__init__(seed, workload=CompactingWorkload, check=check_compacted)

    def _crash_here(self, operation: Operation) -> None:
        of_a_swap = ".cleaned" in operation.path or operation.name in _OF_A_SWAP
        if of_a_swap or operation.number % 10 == 0:
            super()._crash_here(operation)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_crash_leaves_the_old_segments_or_the_new_ones(seed):
    run = CompactionRun(seed)
    run.run()
    assert run.workload.groups_taken > 3, "too little was compacted"
    assert run.points > 100, "the workload became too small to mean anything"


def first_violation() -> str:
    """The message of the first seed's run that finds something; empty if none does."""
    for seed in range(4):
        try:
            CompactionRun(seed).run()
        except AssertionError as error:
            return str(error)
    return ""


def test_new_segments_that_are_not_synced_are_found_out(monkeypatch):
    sync = SimulatedFileSystem.sync

    def forget(disk, inode, path):
        if ".cleaned" not in path:
            sync(disk, inode, path)

    monkeypatch.setattr(SimulatedFileSystem, "sync", forget)
    assert first_violation()


def test_a_recovery_that_leaves_a_swap_half_done_is_found_out(monkeypatch):
    monkeypatch.setattr(segment_swap, "finish", lambda swap, directory: None)
    assert first_violation()


def test_a_swap_that_does_not_wait_for_its_checkpoint_is_found_out(monkeypatch):
    take_over = compaction.take_over

    def at_once(log, group):
        taken = take_over(log, group)
        for pending in log.cleaning.pending:
            segment_swap.finish(pending.swap, log.directory)
        return taken

    monkeypatch.setattr(compaction, "take_over", at_once)
    assert "is corrupt" in first_violation()
