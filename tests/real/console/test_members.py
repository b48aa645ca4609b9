"""Members of groups, as librdkafka makes them by both group protocols."""

from __future__ import annotations

import contextlib

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.testing import Broker
from tests.broker.cli.inline import Shell
from tests.broker.console.asking import HTTP, fetch
from tests.broker.console.test_actions import both, path, send
from tests.broker.console.test_views import same
from tests.broker.producers import commit
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def broker():
    with Broker(config=HTTP) as running:
        yield running


@pytest.fixture
def shell(broker, monkeypatch):
    return Shell(monkeypatch, broker.bootstrap_servers)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_and_what_they_read(broker, shell, protocol):
    topic, group = f"read-{protocol}", f"readers-{protocol}"
    broker.create_topic(topic, partitions=2)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "reader-1",
        }
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 2)
    answer = fetch(broker, "groups", group)
    (member,) = answer["members"]
    assert (answer["type"], answer["state"], answer["member_count"]) == (protocol, "Stable", 1)
    assert member["client"] == "reader-1"
    assert member["partitions"] == [{"topic": topic, "partitions": [0, 1]}]
    assert {each["member"] for each in answer["partitions"]} == {member["member"]}
    (described,) = shell("groups", "describe", group, "--format", "json").json
    same(described, answer)
    # Without a committed offset there is nothing to count from: no lag is known, rather than none.
    unknown = dict.fromkeys(("lag", "lag_readable", "lag_blocked"))
    assert {name: answer[name] for name in unknown} == unknown
    (row,) = fetch(broker, "groups", filter=group)["items"]
    assert {name: row[name] for name in unknown} == unknown
    assert fetch(broker, "groups", group, "history")["lag_readable"] == []
    commit(broker, f"{group}-2", topic, 0)
    assert fetch(broker, "groups", f"{group}-2")["lag"] == 0
    (listed,) = fetch(broker, "topics", filter=topic)["items"]
    assert listed["groups"] == 1
    consumer.close()


def test_a_group_with_members_is_left_alone(broker):
    both(broker, "POST", path("topics"), {"topic": "busy", "partitions": 1})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "busy"})
    consumer.subscribe(["busy"])
    with contextlib.closing(consumer):
        wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment())
        for method, where, body in (
            ("POST", path("groups", "busy", "reset-offsets"), {"to": "end", "topic": "busy"}),
            ("DELETE", path("groups", "busy"), {}),
        ):
            status, answer = send(broker, method, where, body)
            assert (status, answer["error"]) == (409, "NON_EMPTY_GROUP")
            assert answer["message"] == "the group has 1 member: stop them first"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_rebalances_are_remembered_with_their_time(protocol):
    with Broker(config=HTTP) as broker:
        broker.create_topic("orders", partitions=2)
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "group.protocol": protocol,
        }
        consumers = [Consumer(config), Consumer(config)]
        seen = [0]
        try:
            for number, consumer in enumerate(consumers, start=1):
                consumer.subscribe(["orders"])

                def shared_out(number=number):
                    for each in consumers[:number]:
                        each.poll(0.1)
                    return all(len(each.assignment()) == 2 // number for each in consumers[:number])

                wait_until(shared_out, f"{number} share the partitions")
                found = fetch(broker, "groups", "readers", "history")
                generations = [each["generation"] for each in found["rebalances"]]
                assert generations == sorted(set(generations))
                assert len(generations) > seen[-1]
                seen.append(len(generations))
                times = [each["time_ms"] for each in found["rebalances"]]
                assert found["rebalances_since_ms"] <= times[0]
                assert times == sorted(times)
                assert times[-1] <= found["as_of"]
        finally:
            for consumer in consumers:
                consumer.close()
        wait_until(lambda: fetch(broker, "groups", "readers")["state"] == "Empty")
        assert len(fetch(broker, "groups", "readers", "history")["rebalances"]) > seen[-1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_replay_at_a_start_is_no_rebalance(protocol):
    with Broker(config=HTTP) as broker:
        broker.create_topic("orders")
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "readers",
                "group.protocol": protocol,
            }
        )
        consumer.subscribe(["orders"])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment())
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
        assert fetch(broker, "groups", "readers", "history")["rebalances"]
        broker.restart()
        assert fetch(broker, "groups", "readers", "history")["rebalances"] == []
