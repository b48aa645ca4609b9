"""What an open page costs, for seconds; `make browser-soak` looks for longer."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.console_broker import producing
from tests.browser.cost import NOTE_LONG_TASKS, share_of, watch
from tests.browser.looking import state_of

SECONDS = 4
HEAP_MOST_BYTES = 30_000_000
RUNAWAY_SHARE = 0.5
"""Nothing that a busy machine could make of a hundredth."""


def test_an_open_page_costs_little(page, own_broker, say):
    alone = share_of(own_broker, SECONDS)
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(own_broker.url)
    expect(state_of(page)).to_have_text("● Live")
    cost = watch(page, own_broker, SECONDS)
    say(f"an open Now page, {cost}; without it {alone:.2%}")
    assert cost.broker_share - alone < RUNAWAY_SHARE
    assert cost.heap_bytes < HEAP_MOST_BYTES


def test_a_task_that_is_long_is_noticed(page, broker):
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(broker.url)
    page.evaluate("window.longTasks.length = 0")
    page.evaluate("setTimeout(() => { const end = Date.now() + 200; while (Date.now() < end); })")
    page.wait_for_function("() => window.longTasks.some((each) => each >= 150)")


def test_a_page_that_nobody_sees_asks_for_nothing(page, broker, topic):
    page.goto(broker.url)
    expect(state_of(page)).to_have_text("● Live")
    with producing(broker, topic):
        # What a browser says of a page behind another one.
        page.evaluate(
            "() => { Object.defineProperty(document, 'hidden', { value: true });"
            " document.dispatchEvent(new Event('visibilitychange')); }"
        )
        expect(state_of(page)).not_to_have_text("● Live")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(3000)
    assert asked == []
