"""`python -m tests.workload.run_client '{"role": "writer", ...}'`: run a client until SIGTERM."""

from __future__ import annotations

import logging
import sys
import warnings

from tests.workload.client import ProcessClient
from tests.workload.settings import Settings


def main() -> int:
    """Run a client until SIGTERM."""
    settings = Settings.from_json(sys.argv[1])
    # The libraries' own warnings are not what is tested here.
    warnings.simplefilter("ignore")
    for library in ("kafka", "aiokafka", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    ProcessClient(settings).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
