"""Very many topics and groups: the page asks for what it shows, and shows it as quickly.

`make nightly` has 10,000 topics and 100,000 groups, `make test` a part of them.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from barnabas.protocol.messages.create_topics import CREATE_TOPICS
from barnabas.protocol.messages.offset_commit import OFFSET_COMMIT
from tests.browser.console_broker import ConsoleBroker
from tests.browser.cost import NOTE_LONG_TASKS, watch
from tests.browser.looking import state_of
from tests.counterparts.offsets_client import OffsetsClient
from tests.counterparts.wire_client import WireClient
from tests.products import case
from tests.requests import codes_of, commit_request, create_topics_request

COUNTS = [case((1000, 5000), in_test=True), case((10_000, 100_000), in_test=False)]
"""Topics and groups."""
AT_ONCE = 500
SECONDS = 2
HEAP_MOST_BYTES = 30_000_000
PAGE_ROWS = 100

pytestmark = pytest.mark.timeout(900)


def topic_name(number: int) -> str:
    return f"topic-{number:05}"


def group_name(number: int) -> str:
    return f"group-{number:06}"


def create_topics(client: WireClient, numbers: range) -> None:
    request = create_topics_request(*map(topic_name, numbers))
    answer = client.ask(CREATE_TOPICS, request, 5)
    assert not any(each.error_code for each in answer.topics)


def commit_offsets(client: WireClient, numbers: range, topics: int) -> None:
    """Commit an offset of each group, which has no members, for one of ``topics`` topics."""
    for each in numbers:
        place = topic_name(each % topics), 0
        client.send(OFFSET_COMMIT, commit_request(group_name(each), {place: 0}), 8)
    for _ in numbers:
        assert codes_of(client.receive()) == [0]


class Crowded(NamedTuple):
    """A broker with very many topics and groups."""

    broker: ConsoleBroker
    topics: int
    groups: int


@pytest.fixture(scope="module", params=COUNTS, ids=lambda counts: f"{counts[1]}-groups")
def crowded(request, tmp_path_factory):
    topics, groups = request.param
    with ConsoleBroker(tmp_path_factory.mktemp("crowded")) as broker:
        with OffsetsClient(broker) as client:
            client.find(group_name(0), 0)
            for first in range(0, topics, AT_ONCE):
                create_topics(client, range(first, first + AT_ONCE))
            for first in range(0, groups, AT_ONCE):
                commit_offsets(client, range(first, first + AT_ONCE), topics)
        yield Crowded(broker, topics, groups)


@pytest.mark.parametrize(("path", "name"), [("/topics", topic_name), ("/groups", group_name)])
def test_a_page_of_a_long_list(page, crowded, say, path, name):
    """Sort the list both ways, filter it to one row, and watch it live."""
    last = (crowded.topics if name is topic_name else crowded.groups) - 1
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(crowded.broker.url + path)
    expect(state_of(page)).to_have_class("mark good")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(PAGE_ROWS)
    expect(rows.first).to_contain_text(name(0))
    page.locator("button.sorts").first.click()
    expect(rows.first).to_contain_text(name(last))
    page.get_by_role("searchbox").fill(name(last // 2))
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(name(last // 2))
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(PAGE_ROWS)
    cost = watch(page, crowded.broker, SECONDS)
    say(f"{path}: {cost}")
    assert cost.heap_bytes < HEAP_MOST_BYTES


def test_now_is_live_beside_so_many(page, crowded, say):
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(crowded.broker.url)
    expect(state_of(page)).to_have_class("mark good")
    cost = watch(page, crowded.broker, SECONDS)
    say(f"Now: {cost}")
    assert cost.heap_bytes < HEAP_MOST_BYTES
