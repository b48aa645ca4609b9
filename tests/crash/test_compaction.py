"""Crashes at every step of a swap while logs are compacted.

Like ``test_simulated_disk.py``, with compacted topics, tombstones, and passes that continue between
appends, rolls, checkpoints and deletions: a crash at any moment of a swap leaves the old segments
or the new ones. Every change that has to do with a swap is a point to crash at, of the others each
tenth. Run one seed again with ``BARNABAS_CRASH_SEED=<seed>``.
"""

import pytest

from barnabas.broker.testing.disk.simulated import Operation
from tests.crash.amounts import seeds
from tests.crash.compaction import CompactingWorkload, check_compacted
from tests.crash.crashes import CrashRun

SEEDS = seeds(in_test=1, at_night=2)
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_crash_leaves_the_old_segments_or_the_new_ones(seed):
    run = CompactionRun(seed)
    run.run()
    assert run.workload.groups_taken > 3, "too little was compacted"
    assert run.points > 100, "the workload became too small to mean anything"
