"""`python -m tests.torture.run_client '{"role": "writer", ...}'`: be a client until SIGTERM."""

from __future__ import annotations

import json
import logging
import sys
import warnings

from tests.torture.client import Client
from tests.torture.readers import read
from tests.torture.settings import Settings
from tests.torture.transformers import transform
from tests.torture.writers import send, write

ROLES = {"writer": write, "sender": send, "transformer": transform, "reader": read}


def main() -> int:
    """Be a client until SIGTERM."""
    settings = Settings(**json.loads(sys.argv[1]))
    # The libraries' own warnings are not what is looked at here.
    warnings.simplefilter("ignore")
    for library in ("kafka", "aiokafka", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    ROLES[settings.role](Client(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
