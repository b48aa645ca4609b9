"""Waits for whatever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def wait_for_first(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of some is over, however it ends; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in tasks:
            each.cancel()
