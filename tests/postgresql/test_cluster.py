"""Three brokers as processes over one PostgreSQL: what clients see when one is killed, or ends."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from tests.counterparts.postgresql_servers import Pair, Server
from tests.postgresql.brokers import Member, running
from tests.waiting import wait_until

BROKERS = 3
PARTITIONS = 6
LOGS = PARTITIONS + 3
"""The number of logs of the topic and of the groups' offsets (``Member``)."""
ASK_S = 5
"""librdkafka keeps a question for a broker that has gone until its time is up."""
CONNECTIONS = range(8, 12 + 1)
"""The number of a broker's connections to PostgreSQL (docs/cluster.md): those that read logs open
on demand and stay."""
TOPIC = "orders"


@contextlib.contextmanager
def cluster(address: str, directory: Path) -> Iterator[list[Member]]:
    """Brokers that have started together."""
    members = [Member(directory / f"broker-{number}", address) for number in range(BROKERS)]
    with running(members):
        yield members


def leaders(member: Member) -> dict[int, int]:
    """Return the leader of each partition of the topic, as one broker reports it."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=member.bootstrap_servers)) as admin:
        (found,) = admin.describe_topics([TOPIC])
    return {
        each["partition_index"]: each["leader_id"]
        for each in found["partitions"]
        if not each["error_code"]
    }


def all_know(members: list[Member], nodes: int) -> dict[int, int]:
    """Wait until these brokers agree on who leads, and so many of them do."""
    seen: list[dict[int, int]] = []

    def agree() -> bool:
        seen[:] = [leaders(each) for each in members]
        (first, *others) = seen
        is_whole = len(first) == PARTITIONS and -1 not in first.values()
        is_spread = len({*first.values()}) == nodes
        return is_whole and is_spread and all(each == first for each in others)

    wait_until(agree, lambda: f"{seen}", seconds=60, pause_s=0.2)
    return seen[0]


def make_topic(member: Member) -> None:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=member.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])


def servers_of(members: list[Member]) -> str:
    return ",".join(each.bootstrap_servers for each in members)


def wait_until_all_is_decided(members: list[Member]) -> None:
    """Wait until `read_committed` consumers can read everything.

    Markers are written after the response that ends a transaction, perhaps by its next coordinator.
    """
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]

    def ends(isolation: str) -> list[int]:
        settings = {
            "bootstrap.servers": servers_of(members),
            "group.id": "reader",
            "isolation.level": isolation,
        }
        consumer = Consumer(settings)
        try:
            return [consumer.get_watermark_offsets(each, ASK_S)[1] for each in places]
        finally:
            consumer.close()

    def are_equal() -> bool:
        try:
            return ends("read_committed") == ends("read_uncommitted")
        except (
            KafkaException
        ):  # A takeover is still open, or the request went to a broker that has died.
            return False

    wait_until(are_equal, "every transaction has its markers", seconds=120, pause_s=0.2)


def values_of(members: list[Member], isolation: str = "read_committed") -> Counter[bytes]:
    """Return the copies of each value in the topic, as a librdkafka consumer sees it."""
    wait_until_all_is_decided(members)
    settings = {
        "bootstrap.servers": servers_of(members),
        "group.id": "reader",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        found: Counter[bytes] = Counter()
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(60)
            assert message is not None, f"nothing comes, ends of {ended}"
            error = message.error()
            if error is None:
                found[message.value()] += 1
            elif error.name() == "_PARTITION_EOF":
                ended.add(message.partition())
            else:
                assert error.retriable() or not error.fatal(), error
        return found
    finally:
        consumer.close()


@pytest.mark.slow
def test_three_brokers_are_one_cluster_after_any_one_is_killed(tmp_path):
    with Pair() as pair, cluster(pair.url, tmp_path) as members:
        make_topic(members[0])
        all_know(members, BROKERS)
        expected: Counter[bytes] = Counter()
        expected += produced_and_consumed(members)
        expected += a_transaction(members)
        expected += written_while_one_is_killed(members)
        assert values_of(members[1:]) == expected
        node_of_the_killed = node_id_of(members[0])
        members[0].restart()
        assert node_id_of(members[0]) == node_of_the_killed
        wait_until(lambda: members[0].probe("/readyz") == 200)
        assert values_of(members[:1]) == expected
        # Connections that were left after a timeout end one by one.
        wait_until(
            lambda: CONNECTIONS[0] <= connections_to(pair.primary) / BROKERS <= CONNECTIONS[-1],
            lambda: f"{connections_to(pair.primary)} connections",
        )
        assert [each.terminate() for each in members] == [0] * BROKERS


def connections_to(server: Server) -> int:
    """Return the number of brokers' connections to a server."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'barnabas'"
    ((count,),) = server.execute(statement)
    return count


@pytest.mark.parametrize("end", [Server.crash, Server.pause])
def test_a_failover_of_the_store_has_no_log_read_again(tmp_path, end):
    """Sessions continue, and so do their partitions: flushes without a result are repeated."""
    settings = {"barnabas.lease.ms": "60000", "auto.leader.rebalance.enable": "false"}
    with Pair() as pair:
        members = [
            Member(tmp_path / f"broker-{number}", pair.url, **settings) for number in range(2)
        ]
        with running(members):
            make_topic(members[0])
            all_know(members, 2)
            expected = produced_and_consumed(members)
            # Those of __consumer_offsets open with the first FindCoordinator, and all at once.
            wait_until(
                lambda: sum(read_again(each)[0] for each in members) >= LOGS,
                lambda: f"{[read_again(each) for each in members]}",
            )
            before = [read_again(each) for each in members]
            end(pair.primary)
            pair.standby.promote()
            expected += produced_and_consumed(members)
            assert values_of(members) == expected
            assert [read_again(each) for each in members] == before
            assert not any("session lost" in each.output(limit=1 << 20) for each in members)


def read_again(member: Member) -> tuple[int, int]:
    """Return the numbers of logs that a broker has read from the store, and closed."""
    names = "barnabas_cluster_takeover_seconds_count", "barnabas_cluster_logs_closed_total"
    with urllib.request.urlopen(f"http://127.0.0.1:{member.http_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    loaded, closed = (
        sum(int(float(each.split()[1])) for each in lines if each.startswith(f"{name} "))
        for name in names
    )
    return loaded, closed


def node_id_of(member: Member) -> str:
    text = (member.data_directory / "meta.properties").read_text()
    (line,) = [each for each in text.splitlines() if each.startswith("node.id=")]
    return line


def produced_and_consumed(members: list[Member]) -> Counter[bytes]:
    """Send by one broker, read in a group by another: with kafka-python."""
    values = [b"plain-%d" % number for number in range(60)]
    with contextlib.closing(
        KafkaProducer(bootstrap_servers=members[1].bootstrap_servers)
    ) as producer:
        for sent in [
            producer.send(TOPIC, each, partition=number % PARTITIONS)
            for number, each in enumerate(values)
        ]:
            sent.get(60)
    with contextlib.closing(
        KafkaConsumer(
            TOPIC,
            bootstrap_servers=members[-1].bootstrap_servers,
            group_id="plain",
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
        )
    ) as consumer:
        seen = [next(consumer).value for _ in values]
        consumer.commit()
    assert sorted(seen) == sorted(values)
    return Counter(values)


def a_transaction(members: list[Member]) -> Counter[bytes]:
    """Commit one over partitions of all brokers, and abort another: with librdkafka."""
    producer = Producer({"bootstrap.servers": servers_of(members), "transactional.id": "over-all"})
    producer.init_transactions(60)
    committed = [b"committed-%d" % number for number in range(2 * PARTITIONS)]
    for outcome, values in (
        (producer.commit_transaction, committed),
        (producer.abort_transaction, [b"aborted-%d" % n for n in range(2 * PARTITIONS)]),
    ):
        producer.begin_transaction()
        for number, value in enumerate(values):
            producer.produce(TOPIC, value, partition=number % PARTITIONS)
        producer.flush(60)
        outcome(60)
    return Counter(committed)


def written_while_one_is_killed(members: list[Member]) -> Counter[bytes]:
    """Produce while a broker dies; every value arrives once."""
    producer = Producer({"bootstrap.servers": servers_of(members), "enable.idempotence": True})
    failed: list[str] = []
    acknowledged: Counter[bytes] = Counter()
    killed = threading.Event()

    def told(error, message) -> None:
        if error is not None:
            failed.append(str(error))
        else:
            acknowledged[message.value()] += 1

    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            value = b"killed-%d" % sent
            producer.produce(TOPIC, value, partition=sent % PARTITIONS, on_delivery=told)
            sent += 1
            producer.poll(0.001)

    def kill() -> None:
        members[0].kill()
        killed.set()

    send(100)
    killer = threading.Thread(target=kill)
    killer.start()
    while not killed.is_set():
        send(10)
    killer.join()
    send(200)
    assert producer.flush(60) == 0
    assert failed == []
    assert acknowledged == Counter(b"killed-%d" % number for number in range(sent))
    all_know(members[1:], BROKERS - 1)
    return acknowledged


def test_start_waits_for_an_unavailable_store_and_obeys_a_stop(tmp_path):
    with Server() as server:
        server.stop()
        member = Member(tmp_path, server.url)
        starting = ThreadPoolExecutor(1).submit(member.start)
        wait_until(member.output_path.exists)
        wait_until(lambda: "store of the cluster does not answer" in member.output())
        wait_until(lambda: member.probe("/livez") == 200)
        assert member.probe("/readyz") == 503
        assert member.terminate() == 0
        with pytest.raises(Exception, match="exited 0"):
            starting.result(60)
        assert "broker stops before it has started" in member.output()
        server.start()
        member.start()
        wait_until(lambda: member.probe("/readyz") == 200)
        assert "on this one server" in member.output(), "no warning"
        with urllib.request.urlopen(f"http://127.0.0.1:{member.http_port}/config") as answer:
            shown = {each["key"]: each["value"] for each in json.load(answer)["config"]}
        assert shown["barnabas.metadata"] == "[hidden]"
        assert member.terminate() == 0
