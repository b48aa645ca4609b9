"""`python -m tests.groups '{"library": "confluent", ...}'`: be a member until SIGTERM."""

from __future__ import annotations

import importlib
import json
import signal
import sys
import warnings

from tests.groups.member import Progress, Settings


def main() -> int:
    """Be a member until SIGTERM."""
    given = json.loads(sys.argv[1])
    settings = Settings(**{**given, "topics": tuple(given["topics"])})
    # The libraries' own warnings are not what is looked at here.
    warnings.simplefilter("ignore")
    library = importlib.import_module(f"tests.groups.member_{settings.library}")
    progress = Progress(settings)

    def stop(*_signal: object) -> None:
        progress.stopping = True

    signal.signal(signal.SIGTERM, stop)
    library.run(settings, progress)
    return 0


if __name__ == "__main__":
    sys.exit(main())
