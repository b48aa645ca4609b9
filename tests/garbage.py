"""The garbage collector in tests.

Tests never call `gc.unfreeze`: it would return everything to the collector that the tests are made
of (see tests/conftest.py), for as long as the process lives.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.broker.daemon import COLLECTOR_THRESHOLDS

NEVER = 1 << 30


@contextmanager
def collector_of_a_daemon() -> Iterator[None]:
    """Collect garbage as a daemon does, among new objects: older ones are frozen there."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*COLLECTOR_THRESHOLDS[:2], NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
