"""Places at which a test stops a sink: `BARNABAS_SPARK_FAILPOINT=name[:count[:effect]]`.

The count says at which time in this process the place takes effect (1, the first, by default). The
effects are `kill` (SIGKILL for this process, the default), `raise`, and `pause=DIRECTORY`: a file
`DIRECTORY/name.PID` says that the process is there, and it goes on as soon as there is a file
`DIRECTORY/name.go`. Whoever kills a Spark driver does it there, from outside, since a place may lie
in a Python worker. Without the variable a place is one look into the environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

VARIABLE = "BARNABAS_SPARK_FAILPOINT"
LOOK_S = 0.01
_reached: Counter[str] = Counter()


class Failpoint(Exception):
    """Raised by the effect `raise`."""


def reach(name: str) -> None:
    """Be at this place; go on unless a test has chosen it."""
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return
    wanted, _, rest = chosen.partition(":")
    count, _, effect = rest.partition(":")
    if name != wanted:
        return
    _reached[chosen] += 1
    if _reached[chosen] == int(count or 1):
        _take_effect(name, effect or "kill")


def _take_effect(name: str, effect: str) -> None:
    kind, _, directory = effect.partition("=")
    if kind == "pause":
        _pause(name, Path(directory))
    elif kind == "raise":
        raise Failpoint(f"the failpoint {name} was asked for")
    elif kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        raise ValueError(f"{VARIABLE}: the effect {effect!r} is not known")


def _pause(name: str, directory: Path) -> None:
    (directory / f"{name}.{os.getpid()}").touch()
    while not (directory / f"{name}.go").exists():
        time.sleep(LOOK_S)
