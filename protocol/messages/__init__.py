"""The generated messages, one module per API; a module is imported when its API is first asked for."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, cast

from barnabas.protocol.messages.registry import APIS, RECORDS

if TYPE_CHECKING:
    from barnabas.protocol.api import AnyApi, AnyRecordType, ApiEntry

ENTRIES: dict[int, ApiEntry] = {entry.key: entry for entry in APIS}
ALL_KEYS: tuple[int, ...] = tuple(ENTRIES)


@functools.cache
def api_for_key(key: int) -> AnyApi:
    """Import and return the Api with this key; KeyError if there is none."""
    module = ENTRIES[key].module
    return cast("AnyApi", _constant(module))


@functools.cache
def record_type(topic: str, key_type: int) -> AnyRecordType:
    """Import and return the record type of an internal topic by the int16 its keys start with.

    KeyError if ``topic`` has no records of this type.
    """
    return cast("AnyRecordType", _constant(RECORDS[topic][key_type]))


def _constant(module: str) -> object:
    return getattr(importlib.import_module(f"barnabas.protocol.messages.{module}"), module.upper())
