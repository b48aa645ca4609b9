"""Run pytest on a copy of the sources, and judge its result."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from tests.checkout import ROOT

LIMIT_S: Final = 900
"""Limit of a command. Each test has a shorter limit, which ends a test that hangs."""
_FAILED: Final = re.compile(r"^(FAILED|ERROR) (tests/.*?)(?: - .*)?$", re.MULTILINE)
_LIMIT_OF_TEST: Final = re.compile(r"Timeout \(?>[\d.]+s")
_TESTS_FAILED: Final = 1
"""Status of pytest: tests were run, and some of them failed."""
_OPTIONS: Final = ("--quiet", "--exitfirst", "-p", "no:cacheprovider", "--override-ini=pythonpath=")


class Outcome(Enum):
    """Result of a command."""

    GREEN = "green"
    RED = "red"
    RED_BY_LIMIT = "red, by the time limit of a test"
    RED_IN_SET_UP = "red, in the set-up of a test"
    HUNG = "hung"
    """The limit of the command ended it, and no limit of a test."""
    NOT_RUN = "not run"
    """Pytest ran no test, or did not end by itself."""


class Run(NamedTuple):
    """One run of a command."""

    outcome: Outcome
    failed: str
    """The first test that failed."""
    seconds: float
    output: str


def run(command: str, tree: Path) -> Run:
    """Run pytest with arguments, on the sources of a directory, up to the first failure.

    A set-up that fails is tried once more: a free port may be taken by then, which proves nothing.
    """
    result = _run_once(command, tree)
    return _run_once(command, tree) if result.outcome is Outcome.RED_IN_SET_UP else result


def _run_once(command: str, tree: Path) -> Run:
    environment = {
        # A compiled build would be started in place of the copy.
        **{name: value for name, value in os.environ.items() if name != "BARNABAS_PACKAGES"},
        "PYTHONPATH": f"{tree}{os.pathsep}{ROOT}",
        "BARNABAS_SOURCES": str(tree),
        "HYPOTHESIS_PROFILE": "unshrunk",
    }
    began_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *_OPTIONS, *command.split()],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return Run(Outcome.HUNG, "", time.monotonic() - began_s, output)
    found = _FAILED.search(output)
    failed = found[2] if found else ""
    outcome = outcome_of(process.returncode, output)
    return Run(outcome, failed, time.monotonic() - began_s, output)


def outcome_of(status: int, output: str) -> Outcome:
    """Judge the exit status and the output of pytest."""
    if status == 0:
        return Outcome.GREEN
    if status != _TESTS_FAILED:
        return Outcome.NOT_RUN
    if _LIMIT_OF_TEST.search(output):
        return Outcome.RED_BY_LIMIT
    found = _FAILED.search(output)
    return Outcome.RED_IN_SET_UP if found and found[1] == "ERROR" else Outcome.RED
