"""The four scenarios of docs/exactly-once.md print what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.exactly_once.__main__ import DEMONSTRATIONS

pytestmark = pytest.mark.timeout(600)
REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "exactly-once.md"
LETTERS = "ABCD"
TIMEOUT_S = 180


def shown(letter: str) -> str:
    """Return the output of a scenario on the page."""
    (block,) = re.findall(rf"```text\n({letter}\. .*?)```", PAGE.read_text(), re.DOTALL)
    return block


@pytest.fixture(scope="module")
def printed(transactional_broker):
    """Return the output of each scenario; they run side by side and have topics of their own."""
    command = [sys.executable, "-m", "examples.exactly_once"]
    running = {
        name: subprocess.Popen(
            [*command, transactional_broker.bootstrap_servers, name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        for name in DEMONSTRATIONS
    }
    try:
        yield {name: process.communicate(timeout=TIMEOUT_S) for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


@pytest.mark.parametrize(("letter", "name"), list(zip(LETTERS, DEMONSTRATIONS, strict=True)))
def test_a_scenario_prints_what_the_page_shows(printed, letter, name):
    output, errors = printed[name]
    assert (output, errors) == (shown(letter), "")
