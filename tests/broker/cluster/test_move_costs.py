"""What a move of many partitions asks of the store: each question is a round trip, and a commit.

Counted, not timed: so that a question more is noticed on any machine.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from barnabas.storage.memory_way import Way
from tests.broker.cluster.members import all_served, members, send, values_in
from tests.waiting import wait_until

TOPIC = "orders"
PARTITIONS = 24
AT_ONCE = 8
ALWAYS_ASKED = {"heartbeat", "fence_expired", "collect_garbage", "forget", "control"}
"""By the clock, and what is no commit."""


@pytest.fixture
def asked(monkeypatch):
    """How often each broker has asked the store for what: by its link and the question."""
    found: Counter[tuple[object, str]] = Counter()
    lock = threading.Lock()
    ask = Way._ask

    def counting(way, question, *arguments, **named):
        with lock:
            found[way._link, question.__name__] += 1
        return ask(way, question, *arguments, **named)

    monkeypatch.setattr(Way, "_ask", counting)
    return found


def test_a_batch_is_handed_over_by_one_question_and_read_by_none_but_the_look(asked):
    config = {"auto.leader.rebalance.enable": "false"}
    with members(2, **config) as (store, brokers):
        giver, taker = brokers
        giver.create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        found = giver.call(lambda: giver.server.catalogue.topic(TOPIC))
        ids = [each.partition_id for each in found.partitions]
        store.index.want(dict.fromkeys(ids, giver.node_id))
        wait_until(lambda: giver.leads(TOPIC) == set(range(PARTITIONS)))
        send(giver, TOPIC, range(2 * PARTITIONS), PARTITIONS)
        hand_overs = giver.server._member._service._hand_overs
        giver.call(lambda: setattr(hand_overs, "_at_once", AT_ONCE))
        asked.clear()
        store.index.want(dict.fromkeys(ids, taker.node_id))
        wait_until(lambda: taker.leads(TOPIC) == set(range(PARTITIONS)))
        counts = {
            broker: {
                question: count
                for (link, question), count in [*asked.items()]
                if link is broker.base._link and question not in ALWAYS_ASKED
            }
            for broker in brokers
        }
        assert counts[giver]["hand_over"] == PARTITIONS // AT_ONCE
        assert counts[giver].keys() == {"hand_over", "look"}
        assert counts[taker].keys() == {"look"}, "it brings what is to be read"
        assert sorted(values_in(taker, TOPIC, PARTITIONS)) == list(range(2 * PARTITIONS))


def test_what_is_planned_for_several_brokers_is_one_question(asked):
    with members(3) as (store, brokers):
        brokers[0].create_topic(TOPIC, PARTITIONS)
        all_served(brokers, TOPIC, PARTITIONS)
        leaving = brokers[-1]
        nodes = {each.wanted_node for each in store.index.picture(0).led}
        assert nodes == {None}, "it is at rest"
        asked.clear()
        store.index.drain(leaving.session)
        wait_until(lambda: not leaving.leads(TOPIC))
        all_served(brokers[:2], TOPIC, PARTITIONS)
        assert sum(count for (_, question), count in asked.items() if question == "want") == 1
