"""Cost of an open page, for seconds; `make browser-soak` measures for longer."""

from __future__ import annotations

from confluent_kafka import Producer
from playwright.sync_api import expect

from tests.browser.console_broker import producing
from tests.browser.cost import NOTE_LONG_TASKS, share_of, watch
from tests.browser.looking import state_of
from tests.interop.administration import create

SECONDS = 2
HEAP_MOST_BYTES = 30_000_000
RUNAWAY_SHARE = 0.5
"""A share far above a hundredth, even on a busy machine."""
RECORDS = 1000
ROWS_AT_ONCE = 20
"""More would keep the page from answering for 50 ms."""
COUNT_ROWS = """
window.drawn = [];
new MutationObserver((mutations) => {
  const added = mutations.flatMap((each) => [...each.addedNodes]);
  const rows = added.flatMap((each) =>
    each.matches?.("tr[data-row]") ? [each] : [...(each.querySelectorAll?.("tr[data-row]") ?? [])]);
  if (rows.length) window.drawn.push(rows.length);
}).observe(document, { childList: true, subtree: true });
"""
"""An init script: how many rows each change of the page has drawn."""


NEWER = 90
LOOK_WHERE_A_ROW_GOES = """
async (newer) => {
  const kept = document.querySelector("tr[data-row]");
  const place = () => [...document.querySelectorAll("tr[data-row]")].indexOf(kept);
  while (place() >= 0 && place() < newer) await new Promise((done) => setTimeout(done, 20));
  return place();
}
"""
"""Whether the newest row stays the same one while newer rows arrive. The page itself checks it: a
tail keeps a limited number of rows, and a request from outside may arrive after the row has left.
"""


def test_an_open_page_costs_little(page, own_broker, say):
    alone = share_of(own_broker, SECONDS)
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(own_broker.url)
    expect(state_of(page)).to_have_text("● Live")
    cost = watch(page, own_broker, SECONDS)
    say(f"an open Now page, {cost}; without it {alone:.2%}")
    assert cost.broker_share - alone < RUNAWAY_SHARE
    assert cost.heap_bytes < HEAP_MOST_BYTES


def test_many_records_are_drawn_some_at_a_time_and_once(page, broker, topic, say):
    create(broker.bootstrap_servers, topic, partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic, f'{{"order": {number}}}', f"key-{number}")
    assert producer.flush(30) == 0
    page.add_init_script(NOTE_LONG_TASKS + COUNT_ROWS)
    page.goto(f"{broker.url}/topics/{topic}/records")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(100)
    for shown in range(200, RECORDS + 1, 100):
        # Not by its role: looking for that among a thousand rows is a long task itself.
        page.locator(".looked button", has_text="Continue").click()
        expect(rows).to_have_count(shown)
    tasks = [round(each) for each in page.evaluate("window.longTasks")]
    say(f"{RECORDS} records by pages, long tasks: {tasks} ms")
    drawn = page.evaluate("window.drawn")
    assert max(drawn) <= ROWS_AT_ONCE
    assert sum(drawn) == RECORDS, "a row was drawn again"
    # The last row is laid out only when it is visible.
    rows.last.scroll_into_view_if_needed()
    expect(rows.last).to_contain_text("key-0")
    expect(rows.last).to_be_in_viewport()


def test_a_live_tail_leaves_rows_as_they_are(page, broker, topic, say):
    create(broker.bootstrap_servers, topic, partitions=1)
    page.add_init_script(NOTE_LONG_TASKS + COUNT_ROWS)
    with producing(broker, topic):
        page.goto(f"{broker.url}/topics/{topic}/records?follow=1")
        rows = page.locator("tr[data-row]")
        expect(rows.nth(60)).to_be_visible()
        assert page.evaluate(LOOK_WHERE_A_ROW_GOES, NEWER) >= NEWER
    assert max(page.evaluate("window.drawn")) <= ROWS_AT_ONCE
    tasks = [round(each) for each in page.evaluate("window.longTasks")]
    say(f"a live tail, long tasks: {tasks} ms")


def test_a_task_that_is_long_is_noticed(page, broker):
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(broker.url)
    page.evaluate("window.longTasks.length = 0")
    page.evaluate("setTimeout(() => { const end = Date.now() + 200; while (Date.now() < end); })")
    page.wait_for_function("() => window.longTasks.some((each) => each >= 150)")


def test_hidden_page_sends_no_requests(page, broker, topic):
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
