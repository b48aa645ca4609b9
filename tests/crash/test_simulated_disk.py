"""Crashes after every single change of the disk, under random workloads.

One run: three lives of a broker on one simulated disk. After each counted operation, in recovery
too, disks are drawn as a power loss (or a kill) at that point may leave them, recovered, and
compared with the model. A failure prints the seed and the operation; run it again with
``BARNABAS_CRASH_SEED=<seed> pytest tests/crash/test_simulated_disk.py``.
"""

from random import Random

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from tests.crash.amounts import seeds
from tests.crash.checker import check_recovery
from tests.crash.crashes import CrashRun, Keep
from tests.crash.workload import Workload

SEEDS = seeds(in_test=2, at_night=10)
POINTS_PER_SEED = 170


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_crash_leaves_a_prefix_that_holds_all_that_was_promised(seed):
    run = CrashRun(seed)
    run.run()
    assert run.points >= POINTS_PER_SEED, "the workload became too small to mean anything"


def test_a_disk_that_lies_about_syncs_is_found():
    """A checker that never fails proves nothing; ``make mutants`` has faults of the broker."""
    with pytest.raises(AssertionError, match="BARNABAS_CRASH_SEED"):
        CrashRun(0, lying=True).run()


def test_the_journal_is_not_recycled_before_the_checkpoint_is_durable():
    """Append far more than the free files hold while a checkpoint waits for its syncs."""
    workload = Workload(SimulatedFileSystem(), Random(1))
    workload.boot()
    for number in range(12):
        workload.large()
        if number == 4:
            workload.store.checkpoint()
        for _ in range(2):  # The second brings nothing more.
            workload.engine.turn()
        workload.engine.commit()
        workload.engine.write()
    check_recovery(
        workload.disk.crash(Keep()),
        workload.model,
        workload.specs,
        workload.now_ms,
        Random(1),
        again=False,
    )
