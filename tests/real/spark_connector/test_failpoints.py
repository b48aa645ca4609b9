"""Failpoints of a sink, and no effect without one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from barnabas.spark_connector.failpoints import VARIABLE, Failpoint, reach


@pytest.fixture
def directory(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def test_without_the_variable_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "C4-after").write_text("raise")
    reach("C4-after")
    assert (tmp_path / "C4-after").exists()


def test_only_the_armed_place_takes_effect_and_only_once(directory):
    (directory / "C4-after").write_text("raise")
    reach("C4-before")
    with pytest.raises(Failpoint, match="C4-after"):
        reach("C4-after")
    reach("C4-after")


def test_kill_ends_the_process(directory):
    (directory / "W1").write_text("kill")
    program = "from barnabas.spark_connector.failpoints import reach; reach('W1')"
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL


def test_pause_says_who_is_there_and_waits_for_the_word(directory):
    (directory / "C3").write_text("pause")
    passed = threading.Event()

    def run():
        reach("C3")
        passed.set()

    thread = threading.Thread(target=run)
    thread.start()
    reached = directory / f"C3.{thread.native_id}"
    deadline = time.monotonic() + 60
    while not reached.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not passed.wait(0.05)
    reached.unlink()
    assert passed.wait(60)
    thread.join()


def test_the_word_may_come_as_soon_as_it_is_said_who_is_there(directory, monkeypatch):
    """However long the process then needs for its next step."""
    rename = Path.rename

    def rename_and_be_late(path, target):
        rename(path, target).unlink()

    monkeypatch.setattr(Path, "rename", rename_and_be_late)
    (directory / "C3").write_text("pause")
    reach("C3")
    assert not list(directory.iterdir())


def test_an_unknown_effect_is_refused(directory):
    (directory / "C3").write_text("explode")
    with pytest.raises(ValueError, match="explode"):
        reach("C3")
