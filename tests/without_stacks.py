"""A pytest plugin: asyncio's development mode without the stacks that nobody is going to read.

For each callback, future and task it would note where that was made, by looking at the sources of
ten frames and more: most of the work of a broker that has many. What it checks stays checked: that
nobody calls into a loop from another thread, that every coroutine is awaited, that transports are
closed. `python -X dev -m pytest` of one test notes the stacks as well.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from typing import Any

_extract = traceback.StackSummary.extract
_NOT_NOTED = [("not noted", 0, "not noted", "")] * 2
"""uvloop shows the last frame of a handle's, and a task leaves out its last one first."""


def _extract_for_readers(
    frames: Iterable[Any], *, lookup_lines: bool = True, **options: Any
) -> traceback.StackSummary:
    """What is shown at once has its lines looked up; asyncio and uvloop put that off."""
    if lookup_lines:
        return _extract(frames, **options)
    return traceback.StackSummary.from_list(_NOT_NOTED)


traceback.StackSummary.extract = _extract_for_readers  # type: ignore[assignment, method-assign]
# Futures and tasks are written in C and ask for whatever is the default: of the current frame, all.
traceback.extract_stack.__defaults__ = (None, 0)
