"""Journals of clients become their operations, also after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.model import (
    COMMITTED,
    FAILED,
    MOVED,
    OK,
    POLL,
    SEEK,
    SEND,
    TRANSACTION,
    UNKNOWN,
    OffsetCommit,
    Operation,
    Read,
    Write,
)
from tests.workload.journal import Journal, file_journal, read_journals

SENT = Write("t", 0, "c.0", source="i")
ACKED = SENT._replace(offset=7)
INPUT = Read("s", 1, 3, "i")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "c.events"


@pytest.fixture
def journal(path) -> Journal:
    made = file_journal(str(path), "c")
    made.new_session()
    return made


def told(path: Path) -> Operation:
    (operation,) = read_journals([path])
    return operation


def test_a_whole_transaction(journal, path):
    number = journal.begin(TRANSACTION, "id", [INPUT])
    journal.write(number, [SENT])
    journal.acked(number, [ACKED])
    journal.offsets(number, [OffsetCommit("g", "s", 1, 4)])
    journal.ask(number)
    journal.finish(number, OK)
    found = told(path)
    assert (found.kind, found.process, found.producer) == (TRANSACTION, "c#1", "id")
    assert (found.outcome, found.writes, found.reads) == (OK, (ACKED,), (INPUT,))
    assert found.commits == (OffsetCommit("g", "s", 1, 4),)
    assert found.invoked_ns < found.asked_ns < found.completed_ns


def test_who_was_killed_before_it_asked_has_committed_nothing(journal, path):
    number = journal.begin(TRANSACTION, "id")
    journal.write(number, [SENT])
    assert (told(path).outcome, told(path).writes) == (FAILED, (SENT,))


def test_who_was_killed_after_it_asked_knows_nothing(journal, path):
    number = journal.begin(TRANSACTION, "id")
    journal.ask(number)
    assert (told(path).outcome, told(path).completed_ns) == (UNKNOWN, -1)


def test_an_abort_after_the_question_was_acknowledged(journal, path):
    number = journal.begin(TRANSACTION, "id")
    journal.ask(number)
    journal.finish(number, FAILED, "fell")
    assert (told(path).outcome, told(path).reason) == (FAILED, "fell")


def test_a_send_without_an_answer(journal, path):
    number = journal.begin(SEND)
    journal.write(number, [SENT])
    assert told(path).outcome == UNKNOWN


def test_what_a_reader_saw(journal, path):
    journal.poll([], COMMITTED)
    journal.poll([INPUT], COMMITTED)
    journal.moved([("s", 1)], SEEK)
    polled, moved = read_journals([path])
    assert (polled.kind, polled.reads, polled.isolation) == (POLL, (INPUT,), COMMITTED)
    assert (moved.kind, moved.moved, moved.reason) == (MOVED, (("s", 1),), SEEK)


def test_a_torn_last_line_is_left_out(journal, path):
    journal.poll([INPUT], COMMITTED)
    with path.open("a") as file:
        file.write('[123, "c#1", "po')
    assert told(path).kind == POLL


def test_clients_are_merged_by_time(tmp_path):
    first, second = (file_journal(str(tmp_path / name), name) for name in "ab")
    first.poll([INPUT], COMMITTED)
    second.poll([INPUT], COMMITTED)
    first.poll([INPUT], COMMITTED)
    history = read_journals(tmp_path / name for name in "ab")
    assert [operation.process for operation in history] == ["a", "b", "a"]
