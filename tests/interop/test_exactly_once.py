"""The four scenarios of docs/exactly-once.md print what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.exactly_once.__main__ import DEMONSTRATIONS

pytestmark = pytest.mark.timeout(200)
REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "exactly-once.md"
LETTERS = "ABCD"


def shown(letter: str) -> str:
    """Return what the page shows of a scenario."""
    (block,) = re.findall(rf"```text\n({letter}\. .*?)```", PAGE.read_text(), re.DOTALL)
    return block


@pytest.mark.parametrize(("letter", "name"), list(zip(LETTERS, DEMONSTRATIONS, strict=True)))
def test_a_scenario_prints_what_the_page_shows(transactional_broker, letter, name):
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "examples.exactly_once",
            transactional_broker.bootstrap_servers,
            name,
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=REPOSITORY,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == shown(letter)
