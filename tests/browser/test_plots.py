"""Plots: labels of axes and captions can be read, in wide windows and in narrow ones."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import expect

from tests.browser.console_broker import producing
from tests.browser.looking import screenshot, state_of
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.products import case
from tests.seeds import SEED
from tests.waiting import wait_until

# What is drawn as text since a canvas was emptied the last time: [text, left, right, middle].
NOTE_TEXTS = """
window.drawn = new Map();
const context = CanvasRenderingContext2D.prototype;
const { clearRect, fillText } = context;
context.clearRect = function (...given) {
  window.drawn.set(this.canvas, []);
  return clearRect.apply(this, given);
};
context.fillText = function (text, x, y, ...rest) {
  const width = this.measureText(text).width;
  const at = this.getTransform().transformPoint({ x, y });
  const before = { left: 0, start: 0, center: width / 2, right: width, end: width };
  const left = at.x - before[this.textAlign];
  if (!window.drawn.has(this.canvas)) window.drawn.set(this.canvas, []);
  window.drawn.get(this.canvas).push([text, left, left + width, at.y]);
  return fillText.call(this, text, x, y, ...rest);
};
"""
LABELS = """
() => [...window.drawn].filter(([canvas]) => canvas.isConnected && canvas.closest("figure.plot"))
  .map(([canvas, texts]) => [canvas.closest("figure").querySelector(".title").textContent, texts])
"""
# Where a caption's parts are, in pixels: [title, lines of the title, width of the figure, width of
# the words, whether the button is beside the title].
CAPTIONS = """
() => [...document.querySelectorAll("figcaption")].map((caption) => {
  const parts = [".title", ".words", "button"];
  const [title, words, button] = parts.map((each) => caption.querySelector(each));
  const range = document.createRange();
  range.selectNodeContents(title);
  const box = title.getBoundingClientRect(), press = button?.getBoundingClientRect() ?? box;
  const lines = new Set([...range.getClientRects()].map((each) => each.top)).size;
  const isBeside = press.top < box.bottom && box.top < press.bottom;
  const width = words.getBoundingClientRect().width;
  return [title.textContent, lines, caption.clientWidth, width, isBeside];
})
"""
LEAST_GAP = 0.4
"""Minimum gap after a label, as a share of its width: the fonts of other systems are wider."""


@pytest.fixture
def busy(own_broker):
    """A broker with something on each plot."""
    create(own_broker.bootstrap_servers, "orders", partitions=1)
    with (
        producing(own_broker, "orders", pause_s=0.2),
        TransactionClient(own_broker, "shop") as client,
    ):
        client.begin("invoicing-1", "orders", 0)
        yield own_broker


def overlaps(labels):
    """Pairs of labels of one line that are too near to each other."""
    rows = {}
    for text, left, right, middle in labels:
        rows.setdefault(round(middle), []).append((left, right, text))
    return [
        (one[2], other[2])
        for row in rows.values()
        for one, other in zip(sorted(row), sorted(row)[1:], strict=False)
        if other[0] - one[1] < LEAST_GAP * (one[1] - one[0])
    ]


def assert_axes_can_be_read(page, plots):
    labels = page.evaluate(LABELS)
    assert len(labels) >= plots
    for title, texts in labels:
        assert sum(":" in text for text, *_ in texts) >= 2, f"{title} has hardly a time: {texts}"
        assert overlaps(texts) == [], title
        on_the_left = [text for text, *_ in texts if ":" not in text]
        assert len(set(on_the_left)) == len(on_the_left), f"{title}: {on_the_left}"


def assert_captions_are_whole(page):
    captions = page.evaluate(CAPTIONS)
    assert captions
    for title, lines, figure, words, is_beside in captions:
        assert lines == 1, f"{title} wraps"
        assert words > 0.9 * figure, f"{title}: its words have {words} of {figure} pixels"
        assert is_beside, f"the button of {title} is in a line of its own"


@pytest.mark.parametrize(
    ("width", "height"),
    [
        case(1440, 900, in_test=True),
        case(1280, 900, in_test=False),
        case(390, 844, in_test=False),
        case(320, 800, in_test=True),
    ],
)
def test_labels_and_captions_of_now_can_be_read(page, busy, width, height):
    page.add_init_script(NOTE_TEXTS)
    page.set_viewport_size({"width": width, "height": height})
    page.goto(busy.url)
    expect(state_of(page)).to_contain_text("Live")
    opened = page.get_by_role("figure").filter(has_text="Open transactions")
    expect(opened).to_contain_text("1, at most 1")
    wait_until(lambda: page.evaluate("window.drawn.size") >= 10, "all plots are drawn")
    expect(page.get_by_text("Journal sync times")).to_be_visible()
    assert_axes_can_be_read(page, 10)
    assert_captions_are_whole(page)
    opened.scroll_into_view_if_needed()
    screenshot(page, f"plots-{width}")


SPANS_S = [75, 100, 130, 200, 400, 600, 7200, 21_600]
"""Lengths of the history, whose labels have different units and steps."""


@pytest.mark.parametrize(
    ("width", "spans_s"),
    [
        case(1440, SPANS_S, in_test=False),
        case(390, SPANS_S, in_test=False),
        case(390, random.Random(SEED).sample(SPANS_S, 2), in_test=True),
    ],
)
def test_labels_of_every_span_can_be_read(page, busy, width, spans_s):
    page.add_init_script(NOTE_TEXTS)
    page.set_viewport_size({"width": width, "height": 900})
    left_s = list(spans_s)

    def stretch(route):
        """Move the start of the history back, as if the broker had run for that long."""
        answer = route.fetch().json()
        times = list(map(int, answer["times_ms"]))
        if len(times) > 1:
            factor = 1000 * left_s[0] / (times[-1] - times[0])
            answer["times_ms"] = [round(times[-1] - factor * (times[-1] - each)) for each in times]
        route.fulfill(json=answer)

    page.route("**/api/v1/history?*", stretch)
    page.goto(busy.url)
    records = page.get_by_role("figure").filter(has_text="Records in")
    expect(records).to_contain_text("at most")
    while left_s:
        page.reload()
        expect(records).to_contain_text("at most")
        wait_until(lambda: page.evaluate("window.drawn.size") >= 10, "all plots are drawn")
        assert_axes_can_be_read(page, 10)
        left_s.pop(0)


def test_lines_of_one_plot_have_a_legend(page, busy):
    page.goto(busy.url)
    figure = page.get_by_role("figure").filter(has_text="Bytes")
    expect(figure.locator(".words")).to_contain_text("; out ")
    samples = figure.locator("svg.sample line")
    expect(samples).to_have_count(2)
    dashes = [each.get_attribute("stroke-dasharray") for each in samples.all()]
    assert dashes == [None, "6 3"]
    # The colours are those of the lines.
    colours = samples.evaluate_all("(all) => all.map((each) => getComputedStyle(each).stroke)")
    assert len(set(colours)) == 2
    single = page.get_by_role("figure").filter(has_text="Records in")
    expect(single.locator("svg.sample")).to_have_count(0)
    page.goto(f"{busy.url}/transactions")
    ended = page.locator("figure.plot").filter(has_text="Ended")
    expect(ended.locator("svg.sample")).to_have_count(4)
    dashes = ended.locator("svg.sample line").evaluate_all(
        "(all) => all.map((each) => each.getAttribute('stroke-dasharray'))"
    )
    assert len(set(dashes)) == 4


def test_plots_of_a_topic_on_a_phone_can_be_read(page, busy):
    page.add_init_script(NOTE_TEXTS)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{busy.url}/topics/orders")
    figure = page.get_by_role("figure").filter(has_text="Records blocked for read_committed")
    expect(figure).to_contain_text("at most")
    wait_until(lambda: page.evaluate("window.drawn.size") >= 2, "both plots are drawn")
    assert_axes_can_be_read(page, 2)
    screenshot(page, "plots-of-a-topic")
