"""Calls of the store by a move of many partitions: each is a round trip, and a commit.

They are counted, not timed, so that an additional call is noticed on any machine.
"""

from __future__ import annotations

from collections import Counter

import pytest

from barnabas.broker.testing.store.unreliable_calls import Way
from tests.broker.moves import STAYS
from tests.cluster.watched import WatchedCluster
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 24
AT_ONCE = 8
ALWAYS_ASKED = {"heartbeat", "fence_expired", "collect_garbage", "forget", "control"}
"""By the clock, and what is no commit."""


@pytest.fixture
def asked(monkeypatch):
    """Count the calls of the store by the broker's link and the kind of call."""
    found: Counter[tuple[object, str]] = Counter()
    ask = Way._ask

    def counting(way, question, *arguments, **named):
        found[way._link, question.__name__] += 1
        return ask(way, question, *arguments, **named)

    monkeypatch.setattr(Way, "_ask", counting)
    return found


def test_a_batch_is_handed_over_by_one_question_and_read_by_none_but_the_look(asked):
    with WatchedCluster(2, config=STAYS) as cluster:
        giver, taker = 0, 1
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.move_all(TOPIC, giver)
        cluster.send(TOPIC, range(2 * PARTITIONS))
        hand_overs = cluster.brokers[giver].server._member._service._hand_overs
        cluster.on(giver, lambda _: setattr(hand_overs, "_at_once", AT_ONCE))
        asked.clear()
        cluster.move_all(TOPIC, taker)
        giver_asked, taker_asked = (
            {
                question: count
                for (link, question), count in [*asked.items()]
                if link is broker._base._link and question not in ALWAYS_ASKED
            }
            for broker in cluster.brokers
        )
        assert giver_asked["hand_over"] == PARTITIONS // AT_ONCE
        assert giver_asked.keys() == {"hand_over", "poll"}
        assert taker_asked.keys() == {"poll"}, "it brings what is to be read"
        assert sorted(cluster.values(TOPIC)) == list(range(2 * PARTITIONS))


def test_plan_for_several_brokers_is_one_store_call(asked):
    with WatchedCluster(3) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.settle(TOPIC)
        nodes = {each.wanted_node for each in cluster.index.snapshot(0).led}
        assert nodes == {None}, "it is at rest"
        asked.clear()
        cluster.index.drain(cluster.session(2))
        wait_until(lambda: not cluster.leads(2, TOPIC))
        cluster.settle(TOPIC, 0, 1)
        assert sum(count for (_, question), count in asked.items() if question == "want") == 1
