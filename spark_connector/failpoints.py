"""Places at which a test stops a sink, by files in the directory `BARNABAS_SPARK_FAILPOINTS`.

A file with the name of a place arms it. The first process that reaches the place renames the file
and performs its content: `kill` itself (SIGKILL), `raise`, or `pause`. A process that pauses
continues when the test deletes `place.THREAD`, the renamed file. Meanwhile the test can end the
broker, or the Spark driver that this Python worker belongs to, or start another driver. Without the
variable, a place costs one lookup in the environment.
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
    """Raised at a place whose effect is `raise`."""


def reach(place: str) -> None:
    """Perform the effect of a place if a test has armed it."""
    directory = os.environ.get(VARIABLE)
    if directory is not None:
        _take(Path(directory), place)


def _take(directory: Path, place: str) -> None:
    taken = directory / f"{place}.{threading.get_native_id()}"
    try:
        # Open before the rename: a test can delete the renamed file at any moment.
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
