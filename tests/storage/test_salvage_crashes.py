"""Crashes of the repairs in test_salvage.py, after operations of the simulated disk.

``make crash`` has them after every operation (tests/crash/test_salvage_crashes.py).
"""

from random import Random

import pytest

from barnabas.storage.errors import Corrupt
from barnabas.storage.repair.check import verify
from barnabas.storage.repair.repair import cut_out, find_damage
from barnabas.storage.repair.salvage import Salvage
from tests.crash.crashes import Keep
from tests.storage.stores import Host
from tests.storage.test_repair import no_pace
from tests.storage.test_salvage import (
    WIDE,
    assert_starts,
    filled,
    lose_journal,
    written_in_two_topics,
)

REPAIR_STRIDE, JOURNAL_STRIDE = 2, 9
"""Number of operations from one crash to the next; a repair has few."""
LOSSES = ("kill", "power")


def crash_during_repair(loss, stride):
    """Crash a repair; a start then refuses as before, or starts, and a repair can begin again."""
    host, before = filled(WIDE)
    path = host.log.active.log_path
    host.kill()
    host.flip(path, 70)
    host.disk.open(path).fdatasync()
    images = []

    def after(operation):
        if operation.number % stride:
            return
        draw = Keep(operation.number) if loss == "kill" else Random(operation.number)
        images.append(host.disk.crash(draw))

    salvage = Salvage()
    host.disk.after = after
    log = host.boot(salvage)
    found = list(find_damage(log, no_pace))
    log.roll(host.store.journal.group_for(0))
    host.checkpoint()
    list(cut_out(log, found))
    host.step()
    host.checkpoint()
    host.disk.after = None
    outcomes = set()
    for image in images:
        again = Host(WIDE, disk=image.crash(Keep()))
        again.boots = host.boots
        outcomes.add(outcome(again))
        again = Host(WIDE, disk=image)
        again.boots = host.boots
        log = again.boot(Salvage())
        left = list(find_damage(log, no_pace))
        assert left in ([], found)
        if left:
            if left[0].segment == log.active.base_offset:
                log.roll(again.store.journal.group_for(0))
            again.checkpoint()
            list(cut_out(log, left))
            again.step()
            again.checkpoint()
        assert_starts(again, before, found)
    assert outcomes >= {"refused", "whole"}


def outcome(host):
    try:
        log = host.boot()
    except Corrupt:
        return "refused"
    return "damaged" if list(find_damage(log, no_pace)) else "whole"


def crash_during_journal_repair(loss, stride):
    """Crash a start that drops the damaged end of the journal; the next one refuses, or starts."""
    host = written_in_two_topics()
    lose_journal(host, "flipped")
    images = []

    def after(operation):
        if operation.number % stride:
            return
        draw = Keep(operation.number) if loss == "kill" else Random(operation.number)
        images.append(host.disk.crash(draw))

    host.disk = host.disk.crash(Keep())
    host.disk.after = after
    salvage = Salvage()
    end = host.boot(salvage).next_offset
    host.shut_down()
    host.disk.after = None
    outcomes = set()
    for image in images:
        again = Host(WIDE, disk=image.crash(Keep()), topics=("first", "second"))
        again.boots = host.boots
        try:
            again.boot()
            outcomes.add("starts")
        except Corrupt:
            outcomes.add("refused")
            again = Host(WIDE, disk=image, topics=("first", "second"))
            again.boots = host.boots
            again.boot(Salvage())
        assert [log.next_offset for log in again.store.logs.values()] == [end, end]
        assert [verify(log) for log in again.store.logs.values()] == [[], []]
    assert outcomes == {"starts", "refused"}


@pytest.mark.parametrize("loss", LOSSES)
def test_crash_during_repair_leaves_a_log_that_can_be_repaired(loss):
    crash_during_repair(loss, REPAIR_STRIDE)


@pytest.mark.parametrize("loss", LOSSES)
def test_crash_during_journal_repair_loses_no_topic(loss):
    crash_during_journal_repair(loss, JOURNAL_STRIDE)
