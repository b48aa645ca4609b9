"""`python -m tests.interop.demo_exactly_once`: the scenarios of docs/exactly-once.md, live."""

import subprocess
import sys
from pathlib import Path

from tests.counterparts.barnabas_process import BarnabasProcess

REPOSITORY = Path(__file__).parents[2]


def main() -> int:
    """Start a broker, run the examples against it, hand on how they end."""
    with BarnabasProcess() as broker:
        command = [sys.executable, "-m", "examples.exactly_once", broker.bootstrap_servers]
        return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
