"""Errors that asyncio finds in development mode, without the stacks that it records there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.checkout import PYTHONPATH, ROOT

PROGRAM = """
import asyncio, json, threading, traceback, warnings
import uvloop
{plugin}

async def forgotten():
    pass

async def main():
    loop, found = asyncio.get_running_loop(), []

    def call_from_another_thread():
        try:
            loop.call_soon(print)
        except RuntimeError as error:
            found.append(str(error))

    thread = threading.Thread(target=call_from_another_thread)
    thread.start()
    thread.join()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        forgotten()
    found += [each.category.__name__ for each in warned]
    await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))
    handle = loop.call_soon(int)
    noted = (handle, loop.create_future(), asyncio.current_task())
    assert all(map(repr, noted)), "a handle that is slow is shown in a warning"
    frames = [
        sum(frame.lineno > 0 for frame in each._source_traceback) for each in noted]
    print(json.dumps([found, frames, "in main" in traceback.format_stack()[-1]]))

with asyncio.Runner(loop_factory={factory}) as runner:
    runner.run(main())
"""


def ran(factory: str, plugin: str) -> tuple[list[str], int, list[int]]:
    """Return the errors found, the number of open objects, and the recorded frames of each kind."""
    program = PROGRAM.format(factory=factory, plugin=plugin)
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found, frames, is_shown_whole = json.loads(ended.stdout)
    assert is_shown_whole, "of a test that hangs nobody would see where"
    return found, ended.stderr.count("ResourceWarning: unclosed"), frames


@pytest.mark.parametrize("factory", ["asyncio.new_event_loop", "uvloop.new_event_loop"])
def test_the_same_is_found_and_no_frame_is_noted(factory):
    found, left_open, frames = ran(factory, plugin="")
    assert ran(factory, plugin="import tests.without_stacks") == (found, left_open, [0, 0, 0])
    assert all(frames)
    thread, never_awaited = found
    assert thread.startswith("Non-thread-safe operation invoked on an event loop")
    assert never_awaited == "RuntimeWarning"
    assert left_open > 0
