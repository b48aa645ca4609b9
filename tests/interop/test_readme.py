"""The README's example does what the README says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess

README = Path(__file__).parents[2] / "README.md"


def test_the_example_runs():
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert "localhost:9092" in example
    with BarnabasProcess() as broker:
        program = example.replace("localhost:9092", broker.bootstrap_servers)
        for times in (1, 2):
            finished = subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            assert finished.stdout.strip() == str([b"one order, once"] * times)
