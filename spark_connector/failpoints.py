"""Places at which a test stops a sink, by files in the directory `BARNABAS_SPARK_FAILPOINTS`.

A file there with the name of a place arms it; the first process to come by takes the file away and
does what is in it: `kill` itself (SIGKILL), `raise`, or `pause`. It pauses as long as there is the
file `place.THREAD`, which says that it is there: a test has time to end the whole Spark driver,
whose Python worker this may be, or the broker, or to start another driver. Without the variable a
place is one look into the environment.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

VARIABLE = "BARNABAS_SPARK_FAILPOINTS"
LOOK_S = 0.01


class Failpoint(Exception):
    """Raised where `raise` was wanted."""


def reach(place: str) -> None:
    """Be at this place; go on unless a test has armed it."""
    directory = os.environ.get(VARIABLE)
    if directory is not None:
        _take(Path(directory), place)


def _take(directory: Path, place: str) -> None:
    taken = directory / f"{place}.{threading.get_native_id()}"
    try:
        # Opened first: once it has its new name, a test may take it away at any moment.
        with (directory / place).open() as armed:
            (directory / place).rename(taken)
            effect = armed.read().strip()
    except FileNotFoundError:
        return
    if effect != "pause":
        taken.unlink()
    if effect == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif effect == "raise":
        raise Failpoint(f"the failpoint {place} was armed")
    elif effect == "pause":
        while taken.exists():
            time.sleep(LOOK_S)
    else:
        raise ValueError(f"the failpoint {place} has the unknown effect {effect!r}")
