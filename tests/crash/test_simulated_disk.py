"""Crashes after every single change of the disk, under random workloads.

One run: three lives of a broker on one simulated disk. After each counted operation, in recovery
too, disks are drawn as a power loss (or a kill) at that point may leave them, recovered, and
compared with the model. A failure prints the seed and the operation; run it again with
``BARNABAS_CRASH_SEED=<seed> pytest tests/crash/test_simulated_disk.py``.
"""

import os

import pytest

from tests.crash.crashes import CrashRun

SEEDS = (
    [int(os.environ["BARNABAS_CRASH_SEED"])] if "BARNABAS_CRASH_SEED" in os.environ else range(10)
)
POINTS_PER_SEED = 170


@pytest.mark.parametrize("seed", SEEDS)
def test_every_crash_leaves_a_prefix_that_holds_all_that_was_promised(seed):
    run = CrashRun(seed)
    run.run()
    assert run.points >= POINTS_PER_SEED, "the workload became too small to mean anything"
