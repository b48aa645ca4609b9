"""Each guard of the storage removed in turn: the crash suite must go red (mutation gate).

A checker that has never gone red proves nothing.
"""

from random import Random

import pytest

from barnabas.storage.errors import Corrupt
from barnabas.storage.journal import Journal
from barnabas.storage.journal_files import JournalFiles
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.log_store import LogStore
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.segment import Segment
from barnabas.storage.simulated import SimulatedFile, SimulatedFileSystem
from tests.crash.checker import Violation, check_recovery
from tests.crash.crashes import CrashRun, Keep
from tests.crash.workload import SETTINGS, Workload

SEEDS = range(8)


def first_violation(seeds=SEEDS, **options) -> str:
    """The message of the first seed's run that finds something; empty if none does."""
    for seed in seeds:
        try:
            CrashRun(seed, **options).run()
        except AssertionError as error:
            return str(error)
    return ""


def test_a_disk_that_lies_about_syncs_is_found_out():
    assert first_violation(lying=True)


def test_an_acknowledgement_before_the_commit_is_found_out(monkeypatch):
    def submit(store, group, *, alone):
        del alone
        store._runner.submit(group)
        store.engine.call(lambda: store._groups_became_durable(1))

    monkeypatch.setattr(LogStore, "_submit", submit)
    monkeypatch.setattr(LogStore, "durable", lambda store, groups: None)
    assert "(D1, D2)" in first_violation()


def test_a_commit_on_the_loop_that_is_not_synced_is_found_out(monkeypatch):
    def finish(files, placed):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SimulatedFile, "fdatasync", lambda file: None)
            return original(files, placed)

    original = JournalFiles.finish
    monkeypatch.setattr(JournalFiles, "finish", finish)
    assert first_violation()


def test_a_commit_on_the_loop_that_overtakes_others_is_found_out(monkeypatch):
    def end_turn(journal):
        journal._close_group(alone=True)

    monkeypatch.setattr(Journal, "_end_turn", end_turn)
    assert first_violation()


def test_a_duplicate_that_does_not_wait_for_its_original_is_found_out(monkeypatch):
    monkeypatch.setattr(PartitionLog, "_durability_of", lambda log, last_offset: None)
    assert "(D1, D2)" in first_violation()


def test_a_checkpoint_that_syncs_no_segment_is_found_out(monkeypatch):
    monkeypatch.setattr(Segment, "sync", lambda segment: None)
    assert "is corrupt" in first_violation()


def test_a_checkpoint_that_syncs_no_directory_is_found_out(monkeypatch):
    monkeypatch.setattr(LogDirectory, "sync", lambda directory, names: None)
    assert "is corrupt" in first_violation()


def the_journal_goes_round_during_a_checkpoint():
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


def test_the_journal_is_not_recycled_before_the_checkpoint_is_durable():
    the_journal_goes_round_during_a_checkpoint()


def test_a_journal_recycled_before_the_checkpoint_is_durable_is_found_out(monkeypatch):
    checkpoint = LogStore.checkpoint

    def releasing(store, *arguments, **options):
        store.journal.add_operation(lambda: store.files.release(store.files.next_sequence))
        checkpoint(store, *arguments, **options)

    monkeypatch.setattr(LogStore, "checkpoint", releasing)
    with pytest.raises((Corrupt, Violation)):
        the_journal_goes_round_during_a_checkpoint()


def test_torn_groups_taken_for_whole_ones_are_found_out(monkeypatch):
    monkeypatch.setattr("barnabas.storage.journal_format._body_is_good", lambda entry: True)
    assert first_violation()


def test_a_checkpoint_that_forgets_a_log_start_on_its_way_is_found_out(monkeypatch):
    delete = PartitionLog.delete_records

    def delete_records(log, offset):
        group = delete(log, offset)
        log.journaled_start_offset = 0
        return group

    monkeypatch.setattr(PartitionLog, "delete_records", delete_records)
    # One run in six has a log start on its way while a checkpoint begins.
    assert "(D1, D2)" in first_violation(range(40))


def test_files_removed_while_the_checkpoint_names_them_are_found_out(monkeypatch):
    drop = PartitionLog.drop_segments_below_start

    def drop_at_once(log):
        drop(log)
        for segment in log.take_dropped_segments():
            log._journal.add_operation(segment.remove)

    monkeypatch.setattr(PartitionLog, "drop_segments_below_start", drop_at_once)
    assert "is corrupt" in first_violation()


def test_a_mark_that_is_ahead_of_the_disk_is_found_out(monkeypatch):
    place = JournalFiles._place

    def marked_first(files, *group):
        placed = place(files, *group)
        files._mark.advance(files.next_sequence)
        return placed

    monkeypatch.setattr(JournalFiles, "_place", marked_first)
    assert "was durable" in first_violation(range(20))


def test_a_journal_file_that_is_named_before_it_is_there_is_found_out(monkeypatch):
    create = JournalFiles._create

    def named_first(files):
        number = files._files[-1].number + 1 if files._files else 0
        files._mark.name_files({**files._mark.files, number: SETTINGS.journal_file_bytes})
        return create(files)

    monkeypatch.setattr(JournalFiles, "_create", named_first)
    assert "the file is missing" in first_violation()
