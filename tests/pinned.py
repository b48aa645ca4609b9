"""A pytest plugin: each worker of xdist stays on one core.

The threads of a World take turns, and a broker's threads do with its loop: between two cores each
turn costs the waking of the other. For tests that start no processes, which would stay there, too.
"""

from __future__ import annotations

import os

_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker:
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(_worker.removeprefix("gw")) % len(_cores)]})
