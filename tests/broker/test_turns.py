"""Long work in slices of the loop's time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.broker.runtime import turns
from barnabas.broker.runtime.turns import next_turn, run_in_turns, turn_over


def noting(steps: list[str], name: str, count: int = 3) -> Iterator[None]:
    for number in range(count):
        steps.append(f"{name}{number}")
        yield


@pytest.fixture
def no_time(monkeypatch):
    """Slices that end with their first step."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0)
    monkeypatch.setattr(turns, "UPKEEP_SECONDS", 0)


async def test_steps_start_at_once_and_end_while_the_slice_lasts(monkeypatch):
    monkeypatch.setattr(turns, "UPKEEP_SECONDS", 60)
    steps: list[str] = []
    run_in_turns(asyncio.get_running_loop(), noting(steps, "a"))
    assert steps == ["a0", "a1", "a2"]


@pytest.mark.usefixtures("no_time")
async def test_upkeep_and_requests_share_one_slice_in_each_turn():
    loop, steps = asyncio.get_running_loop(), []

    async def work(name, turn):
        for number in range(3):
            await turn()
            steps.append(f"{name}{number}")

    tasks = [loop.create_task(work("b", next_turn)), loop.create_task(work("c", turn_over))]
    await asyncio.sleep(0)
    run_in_turns(loop, noting(steps, "a", 4))
    assert steps == ["a0"]
    counts = []
    while len(steps) < 10:
        before = len(steps)
        await asyncio.sleep(0)
        counts.append(len(steps) - before)
    assert max(counts) == 1
    await asyncio.gather(*tasks)
    assert [*zip(steps[1::3], steps[2::3], steps[3::3], strict=True)] == [
        (f"b{number}", f"c{number}", f"a{number + 1}") for number in range(3)
    ]
