"""Failpoints: the content of their file, and no cost without one."""

from __future__ import annotations

import pytest

from barnabas.broker.runtime import failpoints
from barnabas.broker.runtime.failpoints import Failpoints, parse


class Journal:
    """Everything is durable here."""

    flushes = 0

    def newest_group(self):
        return None

    def flush(self):
        self.flushes += 1


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("", {}),
        ("\n", {}),
        ("EndTransaction:keep", {("EndTransaction", 1): "keep"}),
        ("A:sync,Marker#2:lose\n", {("A", 1): "sync", ("Marker", 2): "lose"}),
    ],
)
def test_failpoint_text_is_parsed(text, actions):
    assert parse(text) == actions


@pytest.mark.parametrize("text", ["A", "A:", ":keep", "A:die", "A#:x", "A#two:keep", "A:keep;B"])
def test_invalid_failpoint_text_is_refused(text):
    with pytest.raises(ValueError, match="is not point"):
        parse(text)


def test_points_are_counted_from_the_last_change_of_the_file(tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr(failpoints.os, "kill", lambda *_how: ended.append("ended"))
    path = tmp_path / "failpoints"
    path.write_text("")
    points, journal = Failpoints(path), Journal()
    points.reached("A", journal)
    path.write_text("A#2:keep,B:sync")
    points.reached("A", journal)
    points.reached("B", journal)
    assert (ended, journal.flushes) == ([], 1)
    points.reached("A", journal)
    assert (ended, journal.flushes) == (["ended"], 2)
    points.reached("A", journal)
    path.write_text("A:lose")
    points.reached("A", journal)
    assert (ended, journal.flushes) == (["ended", "ended"], 2)


def test_failpoints_are_off_by_default():
    assert failpoints.ARMED is None
