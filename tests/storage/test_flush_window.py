"""Commit groups are collected for an object, by the rate at which records arrive."""

import pytest

from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.replicated.flush_uploads import UploadSettings
from barnabas.storage.runtime.clock import monotonic
from tests.storage.flushes import Stranger, assign
from tests.storage.journals import group_of
from tests.storage.test_flush_uploads import LARGE, Threaded, Uploaded
from tests.worlds import world

__all__ = ["world"]

WINDOW_S = 0.25
COLLECTING = UploadSettings(bytes_min=1_000, bytes_max=8_000, most=4, window_s=WINDOW_S)


class Collected(Uploaded):
    """A committer with a window, whose flushes and responses a test reads."""

    def __init__(self, settings=COLLECTING):
        super().__init__(settings=settings)
        self.offset = 0

    def arrive(self, *sizes):
        """Submit one batch of each size."""
        groups = []
        for size in sizes:
            groups.append(group_of(size, base_offset=self.offset, epoch=0))
            self.offset += 1
        self.commit(*groups)

    def wait(self, seconds):
        self.now_s += seconds
        self.commit()

    def fill(self):
        """Submit a full object, after which a window may begin."""
        self.arrive(8_000)
        self.settle()
        assert self.rows_and_objects()[-1] == "object"

    def settle(self):
        """Carry out all uploads."""
        for attempt in self.started():
            self.put(attempt)
        self.commit()

    def rows_and_objects(self):
        return ["row" if each.key is None else "object" for each in self.attempts]

    @property
    def collected_bytes(self):
        return self.committer._waiting_bytes


def test_records_that_arrive_slowly_leave_at_once_as_rows():
    collected = Collected()
    for _ in range(20):
        collected.arrive(150)
        assert collected.committer.due_in_s is None
        collected.wait(0.1)
    assert collected.rows_and_objects() == ["row"] * 20


def test_rate_is_that_of_the_last_second():
    collected = Collected()
    collected.fill()
    collected.now_s += 1.0
    collected.arrive(10)
    assert collected.rows_and_objects() == ["object", "row"]


def test_records_that_arrive_fast_are_collected_until_the_window_ends():
    collected = Collected()
    collected.fill()
    for _ in range(5):
        collected.arrive(400)
        collected.wait(0.04)
    assert collected.started() == []
    assert collected.committer.due_in_s == pytest.approx(0.05)
    collected.wait(0.05)
    (attempt,) = collected.started()
    collected.put(attempt)
    collected.commit()
    assert collected.rows_and_objects() == ["object", "object"]
    assert collected.end == 6
    assert collected.committer.due_in_s is None


def test_full_object_leaves_before_the_window_ends():
    collected = Collected()
    collected.fill()
    collected.arrive(3_000, 3_000)
    assert collected.started() == []
    collected.wait(0.1)
    collected.arrive(3_000)
    (attempt,) = collected.started()
    assert 6_000 < sum(map(len, attempt.upload.body)) < 8_000
    assert 3_000 < collected.collected_bytes < 6_000, "the rest has a window of its own"
    assert collected.committer.due_in_s == pytest.approx(WINDOW_S)


def test_flush_of_a_producer_that_waits_for_its_response_leaves_at_once():
    """The flush is large enough for an object, and no record joins it while it is collected."""
    collected = Collected()
    collected.fill()
    collected.arrive(2_000)
    assert collected.committer.due_in_s == pytest.approx(WINDOW_S)
    collected.wait(WINDOW_S)
    collected.settle()
    for _ in range(9):
        collected.now_s += 0.1
        collected.arrive(2_000)
        assert collected.committer.due_in_s is None
        collected.settle()
    assert collected.rows_and_objects() == ["object"] * 11


def test_windows_of_producers_that_all_wait_end_soon_after_the_last_of_them():
    collected = Collected()
    collected.fill()
    for length_s in (WINDOW_S, 0.04, 0.04, 0.04):
        for _ in range(5):
            collected.arrive(400)
            collected.wait(0.005)
        assert collected.started() == []
        assert collected.committer.due_in_s == pytest.approx(length_s - 0.025)
        collected.wait(length_s - 0.025)
        collected.settle()
    assert collected.rows_and_objects() == ["object"] * 5, "one flush has the records of all"
    collected.now_s += 1.0
    collected.fill()
    collected.arrive(2_000)
    assert collected.committer.due_in_s == pytest.approx(WINDOW_S), "others may produce since"


def test_windows_of_producers_that_all_wait_have_the_records_of_most():
    collected = Collected()
    collected.fill()
    collected.arrive(*[400] * 5)
    collected.wait(WINDOW_S)
    collected.settle()
    collected.arrive(400)
    collected.wait(WINDOW_S / 2)
    assert collected.started() == [], "fewer than half of those in the window before"
    collected.arrive(800)
    (attempt,) = collected.started()
    assert sum(map(len, attempt.upload.body)) >= 1_000


def test_windows_in_which_records_arrive_until_the_end_keep_their_length():
    collected = Collected()
    collected.fill()
    for _ in range(20):
        for _ in range(2):
            collected.arrive(600)
            collected.wait(0.13)
        collected.settle()
    assert collected.rows_and_objects() == ["object"] * 21


def test_useless_window_is_followed_by_none_for_a_longer_time_each():
    """A transaction that ends behind its records waits for one window."""
    collected = Collected()
    for pause_s in (1, 2, 4, 8, 16, 16):
        collected.fill()
        collected.arrive(10)
        assert collected.committer.due_in_s == pytest.approx(WINDOW_S)
        collected.wait(WINDOW_S)
        assert collected.rows_and_objects()[-1] == "row"
        collected.arrive(10)
        assert collected.rows_and_objects()[-2:] == ["row", "row"], "the next one leaves at once"
        collected.now_s += pause_s - 0.1
        collected.fill()
        collected.arrive(10)
        assert collected.rows_and_objects()[-2:] == ["object", "row"]
        collected.now_s += 0.1


def test_window_with_too_few_records_for_an_object_is_followed_by_none():
    """The records arrive until the end of the window."""
    collected = Collected()
    collected.fill()
    for _ in range(2):
        collected.arrive(10)
        collected.wait(0.13)
    assert collected.rows_and_objects() == ["object", "row"]
    collected.arrive(10)
    assert collected.rows_and_objects() == ["object", "row", "row"]


def test_window_that_fills_an_object_until_its_end_ends_the_pauses():
    collected = Collected()
    for pause_s in (1, 2, 4):
        collected.fill()
        collected.arrive(10)
        collected.wait(WINDOW_S)
        collected.now_s += pause_s
    collected.fill()
    collected.arrive(500)
    collected.wait(WINDOW_S / 2)
    collected.arrive(500)
    collected.wait(WINDOW_S / 2)
    collected.settle()
    assert collected.rows_and_objects()[-2:] == ["object", "object"]
    collected.arrive(10)
    collected.wait(WINDOW_S)
    collected.now_s += 1.0
    collected.fill()
    collected.arrive(10)
    assert collected.committer.due_in_s == pytest.approx(WINDOW_S)


def test_nothing_is_collected_while_uploads_may_not_begin():
    collected = Collected()
    collected.uploads.may_begin = lambda _session: False
    for _ in range(4):
        collected.arrive(LARGE)
        assert collected.committer.due_in_s is None
    assert collected.rows_and_objects() == ["row"] * 4


def test_window_of_no_length_collects_nothing():
    collected = Collected(UploadSettings(bytes_min=1_000, bytes_max=8_000, most=4))
    collected.arrive(LARGE)
    collected.settle()
    collected.arrive(10)
    assert collected.rows_and_objects() == ["object", "row"]


def test_group_without_records_waits_only_for_collected_ones():
    collected = Collected()
    collected.fill()
    before = len(collected.heard.events)
    collected.commit(CommitGroup())
    assert len(collected.heard.events) == before + 1
    collected.arrive(10)
    collected.commit(CommitGroup())
    assert len(collected.heard.events) == before + 1
    collected.wait(WINDOW_S)
    assert collected.heard.events[-1] == ("durable", 2)


def test_end_of_the_session_ends_the_window():
    collected = Collected()
    collected.fill()
    collected.arrive(10)
    collected.committer.end_session(collected.session)
    collected.commit(CommitGroup())
    assert collected.heard.events[-1] == ("lost",)


def test_refusal_forgets_what_is_collected():
    collected = Collected()
    collected.fill()
    collected.arrive(8_000)
    (attempt,) = collected.started()
    collected.arrive(10)
    assert collected.collected_bytes
    assign(collected.index, 1, Stranger(collected.index).session)
    collected.put(attempt)
    collected.commit()
    assert collected.heard.events[-1] == ("refused", 1, [1])
    assert not collected.collected_bytes
    collected.arrive(10)
    assert not collected.collected_bytes, "it was placed before the refusal was known"


def test_stop_does_not_wait_for_the_window():
    collected = Collected()
    collected.fill()
    collected.arrive(10)
    for _ in collected.committer.finish_by_step():
        pass
    assert collected.rows_and_objects() == ["object", "row"]


def test_window_ends_by_itself(world):
    threaded = Threaded(settings=COLLECTING)
    threaded.submit(group_of(8_000, epoch=0))
    threaded.heard.wait_for("durable", 1)
    begun_s = monotonic()
    threaded.submit(group_of(10, base_offset=1, epoch=0))
    threaded.heard.wait_for("durable", 2)
    assert WINDOW_S <= monotonic() - begun_s < WINDOW_S + 0.1
    threaded.threads.stop()
    assert not threaded.failures
