"""Triggers of queries, checked before Spark refuses them.

Spark's own refusal names neither the pipeline nor the accepted values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from barnabas.spark_connector.refusals import WrongUse

TRIGGERS: Final = ("processingTime", "availableNow", "once", "continuous", "realTime")
_ACCEPTED: Final = (
    "use {'processingTime': '5 seconds'}, {'availableNow': True}, or for kind='stock' also"
    " {'realTime': '5 seconds'} or {'continuous': '1 second'}"
)
_IS_TRUE: Final = ("availableNow", "once")
_INTERVAL: Final = re.compile(
    r"\s*(interval\s+)?(\d+(\.\d*)?\s+(week|day|hour|minute|second|millisecond|microsecond)s?\s*)+",
    re.IGNORECASE,
)
"""Intervals that Spark accepts here; months and years have no fixed length."""


def check_trigger(trigger: Mapping[str, Any], *, is_exactly_once: bool) -> None:
    """Refuse an unknown trigger, or one with which the sink would not be exactly once."""
    if len(trigger) > 1 or not trigger.keys() <= set(TRIGGERS):
        raise WrongUse(f"the trigger {dict(trigger)} is none of Spark's: {_ACCEPTED}")
    if is_exactly_once:
        _refuse_without_batches(trigger)
    for name, value in trigger.items():
        if not _fits(name, value):
            raise WrongUse(f"the trigger {dict(trigger)} has a value that cannot be: {_ACCEPTED}")


def _refuse_without_batches(trigger: Mapping[str, Any]) -> None:
    if "realTime" in trigger:
        raise WrongUse(
            "real-time mode cannot be exactly once: Spark then writes records before it knows"
            " where their batch ends, and allows no sink but its own; use trigger processingTime,"
            " or kind='stock' for at least once"
        )
    if "continuous" in trigger:
        raise WrongUse(
            "the continuous trigger cannot be exactly once: it has no batches that a restart"
            " could repeat; use trigger processingTime, or kind='stock' for at least once"
        )


def _fits(name: str, value: object) -> bool:
    if name in _IS_TRUE:
        return value is True
    return isinstance(value, str) and _INTERVAL.fullmatch(value) is not None
