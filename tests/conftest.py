"""Settings that all tests share."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# No deadline in either: the machine that runs the tests may be busy with others.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("deterministic", derandomize=True, max_examples=50, **_COMMON)
settings.register_profile("exhaustive", max_examples=5000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_configure() -> None:
    """Let programs that a test starts be interrupted, also where this one runs in the background.

    A shell lets what it starts there ignore SIGINT, and whoever is started inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
