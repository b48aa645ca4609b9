"""Crashes of repairs, after every operation of the simulated disk."""

import pytest

from tests.products import for_the_night
from tests.storage.test_salvage_crashes import (
    LOSSES,
    crash_during_journal_repair,
    crash_during_repair,
)


@for_the_night(
    beside="tests/storage/test_salvage_crashes.py"
    "::test_crash_during_repair_leaves_a_log_that_can_be_repaired"
)
@pytest.mark.parametrize("loss", LOSSES)
def test_crash_during_repair_at_any_operation_leaves_a_log_that_can_be_repaired(loss):
    crash_during_repair(loss, 1)


@for_the_night(
    beside="tests/storage/test_salvage_crashes.py::test_crash_during_journal_repair_loses_no_topic"
)
@pytest.mark.parametrize("loss", LOSSES)
def test_crash_during_journal_repair_at_any_operation_loses_no_topic(loss):
    crash_during_journal_repair(loss, 1)
