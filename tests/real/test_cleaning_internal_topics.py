"""The coordinators' own topics: compaction changes nothing of what a start loads (K6)."""

import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.testing import Broker

WAIT_SECONDS = 60
CONFIG = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
ROUNDS = 6
COMMITS = 4


def use(broker):
    """Commit offsets plainly and in transactions, some of them aborted, some deleted; seal."""
    servers = broker.bootstrap_servers
    options = {"bootstrap.servers": servers, "transaction.timeout.ms": 600_000}
    producers = [Producer({**options, "transactional.id": f"id-{at}"}) for at in range(3)]
    for producer in producers:
        producer.init_transactions(WAIT_SECONDS)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "plain"})
    for number in range(ROUNDS):
        for commit in range(COMMITS):
            place = TopicPartition("t", 0, number * COMMITS + commit + 1)
            consumer.commit(offsets=[place], asynchronous=False)
        for at, producer in enumerate(producers):
            producer.begin_transaction()
            producer.produce("t", b"v", b"%d" % at)
            member = Consumer({"bootstrap.servers": servers, "group.id": f"group-{at}"})
            offsets = [TopicPartition("t", 0, number * 10 + at)]
            metadata = member.consumer_group_metadata()
            producer.send_offsets_to_transaction(offsets, metadata, WAIT_SECONDS)
            if (number + at) % 3:
                producer.commit_transaction(WAIT_SECONDS)
            else:
                producer.abort_transaction(WAIT_SECONDS)
            member.close()
        broker.call(lambda: roll(broker))
    consumer.close()
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_consumer_groups(["group-2"]).values():
        future.result(WAIT_SECONDS)
    broker.call(lambda: roll(broker))
    return producers


def internal_logs(broker):
    logs = broker.server.logs.logs.values()
    return [log for log in logs if log.topic.startswith("__")]


def roll(broker):
    """Seal the active segments of the internal topics."""
    for log in internal_logs(broker):
        if log.active.size_bytes:
            log.roll(broker.server.logs.journal.group_for(0))


def state(broker):
    """Everything that the coordinators know, as they loaded it, and how much they read for it."""
    server = broker.server
    (groups,) = server.groups.machines
    (transactions,) = server.transactions.machines
    records = server.groups.log.replay.records + server.transactions.log.replay.records
    known = {
        "offsets": groups.offsets._by_group,
        "pending": repr(vars(groups.offsets._pending)),
        "groups": sorted(groups.groups),
        "transactions": {key: repr(each) for key, each in transactions.transactions.items()},
    }
    return known, records


def committed(broker, group):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    asked = [ConsumerGroupTopicPartitions(group)]
    found = admin.list_consumer_group_offsets(asked)[group].result(WAIT_SECONDS)
    return [(place.topic, place.partition, place.offset) for place in found.topic_partitions]


def compact(broker):
    cleaner = broker.server._housekeeping.cleaner
    before = broker.call(lambda: cleaner.counts.passes)
    deadline = time.monotonic() + WAIT_SECONDS

    def is_done():
        cleaner.survey()
        settled = not cleaner._running
        return settled and cleaner.counts.passes >= before + len(internal_logs(broker))

    while not broker.call(is_done):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    broker.call(broker.server.logs.checkpoint)


def test_reload_after_compaction_equals_reload_without():
    with Broker(config=CONFIG) as broker:
        broker.create_topic("t")
        producers = use(broker)
        broker.restart()
        expected, before = broker.call(lambda: state(broker))
        groups = {group: committed(broker, group) for group in ("plain", "group-0", "group-1")}
        assert groups["plain"] == [("t", 0, ROUNDS * COMMITS)]
        compact(broker)
        broker.restart()
        found, after = broker.call(lambda: state(broker))
        assert found == expected
        assert {group: committed(broker, group) for group in groups} == groups
        assert after < before / 2, "as much was replayed as ever"
        # The earlier producer continues.
        producers[0].begin_transaction()
        producers[0].produce("t", b"v", b"again")
        producers[0].commit_transaction(WAIT_SECONDS)
