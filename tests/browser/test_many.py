"""10,000 topics and 100,000 groups: the page asks for what it shows, and shows it as quickly."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.browser.console_broker import ConsoleBroker
from tests.browser.cost import NOTE_LONG_TASKS, watch
from tests.browser.looking import state_of
from tests.counterparts.offsets_client import OffsetsClient
from tests.counterparts.wire_client import WireClient

TOPICS, GROUPS = 10_000, 100_000
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
    topics = [CreatableTopic(topic_name(each), 1, 1, [], []) for each in numbers]
    answer = client.ask(CREATE_TOPICS, CreateTopicsRequest(topics, timeout_ms=60_000), 5)
    assert not any(each.error_code for each in answer.topics)


def commit_offsets(client: WireClient, numbers: range) -> None:
    """Have groups without members commit an offset each."""
    for each in numbers:
        partition = OffsetCommitRequestPartition(0, 0, committed_metadata="")
        topic = OffsetCommitRequestTopic(topic_name(each % TOPICS), partitions=[partition])
        client.send(OFFSET_COMMIT, OffsetCommitRequest(group_name(each), topics=[topic]), 8)
    for _ in numbers:
        (answer,) = client.receive().topics
        assert not answer.partitions[0].error_code


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A broker with as many topics and groups as one should hold."""
    with ConsoleBroker(tmp_path_factory.mktemp("crowded")) as broker:
        with OffsetsClient(broker) as client:
            client.find(group_name(0), 0)
            for first in range(0, TOPICS, AT_ONCE):
                create_topics(client, range(first, first + AT_ONCE))
            for first in range(0, GROUPS, AT_ONCE):
                commit_offsets(client, range(first, first + AT_ONCE))
        yield broker


@pytest.mark.parametrize(
    ("path", "name", "last"),
    [("/topics", topic_name, TOPICS - 1), ("/groups", group_name, GROUPS - 1)],
)
def test_a_page_of_a_long_list(page, crowded, say, path, name, last):
    """Sorted both ways, filtered to the one that is looked for, and live all the while."""
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(crowded.url + path)
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
    cost = watch(page, crowded, SECONDS)
    say(f"{path}: {cost}")
    assert cost.heap_bytes < HEAP_MOST_BYTES


def test_now_is_live_beside_so_many(page, crowded, say):
    page.add_init_script(NOTE_LONG_TASKS)
    page.goto(crowded.url)
    expect(state_of(page)).to_have_class("mark good")
    cost = watch(page, crowded, SECONDS)
    say(f"Now: {cost}")
    assert cost.heap_bytes < HEAP_MOST_BYTES
