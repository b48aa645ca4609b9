"""Shapes of both tables, on two brokers: by processor time and memory, as an ordinary user.

`make attack` and `make nightly` send every shape, `make test` a part: see `size.drawn`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.attack.process import AttackedBroker
from tests.attack.shapes.apis import APIS
from tests.attack.shapes.building import Row
from tests.attack.shapes.measure import Meter
from tests.attack.shapes.routes import HTTP
from tests.attack.shapes.size import drawn
from tests.attack.shapes.world import running

SLOWEST_SHOWN = 5


def problems_of(table: dict[str, Row], directory: Path, say: Any, *, is_http: bool) -> list[str]:
    """Send shapes of a table to a new broker; return the limits that were exceeded."""
    costs = {}
    with running(directory / "broker") as (broker, world):
        meter = Meter(broker, world)
        for key, shape in drawn(table):
            name = f"{key}: {shape.name}"
            try:
                costs[name] = meter.cost_of(shape, is_http=is_http)
            except OSError as error:
                assert not died(broker), f"{name}: the broker died: {broker.output()}"
                raise AssertionError(f"{name}: {error!r}") from error
        meter.close()
        complaints = broker.complaints()
    slowest = sorted(costs, key=lambda name: costs[name].held_ms, reverse=True)[:SLOWEST_SHOWN]
    say("\n  ".join([f"{len(costs)} shapes", *(f"{name}: {costs[name]}" for name in slowest)]))
    found = [f"{name}: {each}" for name, cost in costs.items() for each in cost.problems]
    return found + [f"logged: {each}" for each in complaints]


def died(broker: AttackedBroker) -> bool:
    """Whether the broker's process ended."""
    return not broker.is_running


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_request_of_a_user_holds_the_loop_or_memory(tmp_path, say):
    assert problems_of(APIS, tmp_path, say, is_http=False) == []


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_http_request_of_a_user_holds_the_loop_or_memory(tmp_path, say):
    assert problems_of(HTTP, tmp_path, say, is_http=True) == []
