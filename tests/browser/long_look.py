"""`make browser-soak`: a page stays open for long, beside 10,000 partitions and a producer.

Its name keeps it out of the ordinary tests. The figures are for people, and depend on what else the
machine does; asserted is what does not: memory stays flat.
"""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import producing
from tests.browser.cost import NOTE_LONG_TASKS, share_of, watch
from tests.browser.looking import state_of
from tests.interop.administration import create

DURATION_S = float(os.environ.get("DURATION", "600"))
PARTS = 10
PARTITIONS = 10_000
HEAP_MOST_BYTES = 30_000_000
GROWTH_MOST = 1.3

pytestmark = pytest.mark.timeout(DURATION_S + 600)


@pytest.mark.parametrize("path", ["/", "/topics"])
def test_memory_stays_flat(page, own_broker, say, path):
    create(own_broker.bootstrap_servers, "wide", partitions=PARTITIONS)
    create(own_broker.bootstrap_servers, "busy", partitions=1)
    with producing(own_broker, "busy"):
        say(f"{path}, nobody looks: broker {share_of(own_broker, 20):.2%} of a core")
        page.add_init_script(NOTE_LONG_TASKS)
        page.goto(own_broker.url + path)
        expect(state_of(page)).to_have_class("mark good")
        # The plots of ten minutes are full of points by themselves only after ten minutes.
        costs = [watch(page, own_broker, DURATION_S / PARTS) for _ in range(PARTS)]
    for cost in costs:
        say(f"{path}, {cost}")
    heaps = [cost.heap_bytes for cost in costs]
    assert max(heaps) < HEAP_MOST_BYTES
    assert max(heaps[-3:]) < GROWTH_MOST * max(heaps[PARTS // 2 - 3 : PARTS // 2])
