"""Where a test stops a sink, and that nothing stops without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from spark_connector import failpoints
from spark_connector.failpoints import VARIABLE, Failpoint, reach


@pytest.fixture(autouse=True)
def _from_the_first(monkeypatch):
    monkeypatch.setattr(failpoints, "_reached", type(failpoints._reached)())


def test_without_the_variable_nothing_happens(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    reach("C4-after")


def test_another_place_is_passed(monkeypatch):
    monkeypatch.setenv(VARIABLE, "C4-after:1:raise")
    reach("C4-before")
    with pytest.raises(Failpoint):
        reach("C4-after")


def test_it_takes_effect_at_the_chosen_time_and_only_then(monkeypatch):
    monkeypatch.setenv(VARIABLE, "C5-middle:3:raise")
    reach("C5-middle")
    reach("C5-middle")
    with pytest.raises(Failpoint, match="C5-middle"):
        reach("C5-middle")
    reach("C5-middle")


def test_kill_ends_the_process():
    program = "from spark_connector.failpoints import reach; reach('W1')"
    environment = {**os.environ, VARIABLE: "W1"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL


def test_pause_says_who_is_there_and_waits_for_the_word(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, f"C3:1:pause={tmp_path}")
    passed = threading.Event()

    def run():
        reach("C3")
        passed.set()

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 60
    while not (tmp_path / f"C3.{os.getpid()}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not passed.is_set()
    (tmp_path / "C3.go").touch()
    thread.join(60)
    assert passed.is_set()


def test_an_unknown_effect_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "C3:1:explode")
    with pytest.raises(ValueError, match="explode"):
        reach("C3")
