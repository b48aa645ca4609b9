"""`python -m tests.torture.run_client '{"role": "writer", ...}'`: be a client until SIGTERM."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings

from tests.torture.client import Client
from tests.torture.settings import Settings

ROLES = {
    "writer": ("writers", "write"),
    "sender": ("senders", "send"),
    "transformer": ("transformers", "transform"),
    "reader": ("readers", "read"),
}


def main() -> int:
    """Be a client until SIGTERM."""
    settings = Settings.from_json(sys.argv[1])
    # The libraries' own warnings are not what is looked at here.
    warnings.simplefilter("ignore")
    for library in ("kafka", "aiokafka", "asyncio"):
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    module, function = ROLES[settings.role]
    getattr(importlib.import_module(f"tests.torture.{module}"), function)(Client(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
