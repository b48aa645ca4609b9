"""One broker over PostgreSQL and an S3 server that fails by a script (docs/cluster.md, Failures).

Each acknowledged record is in the log once, after any failure of the server. A lost object is an
error of the partitions that need it, and of no other one.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.errors import KafkaTimeoutError

from barnabas.storage.objects.guard import GUARD_KEY
from tests.counterparts.postgresql_servers import Server
from tests.counterparts.scripted_s3 import Fault, Kind, ScriptedS3
from tests.postgresql.brokers import Member, running
from tests.postgresql.object_stores import (
    BUCKET,
    OBJECT_BYTES_MIN,
    create_topics,
    producer_of,
    read,
    settings_of,
    succeed,
    value_of,
    write,
)
from tests.products import case, for_the_night
from tests.waiting import wait_until

RECORDS = 8
UPLOADS = "wal/"
FAILING_PUTS = {
    "throttled": Fault("PUT", Kind.ERROR, key=UPLOADS, times=3),
    "failed": Fault("PUT", Kind.ERROR, status=500, code="InternalError", key=UPLOADS, times=3),
    "failed-late": Fault("PUT", Kind.ERROR_AFTER_EFFECT, status=500, key=UPLOADS, times=3),
    "reset": Fault("PUT", Kind.RESET, key=UPLOADS, times=3),
    "reset-late": Fault("PUT", Kind.RESET_AFTER_EFFECT, key=UPLOADS, times=3),
    "ghost": Fault("PUT", Kind.GHOST, key=UPLOADS, times=3, later=5),
    "slow": Fault("PUT", Kind.SLOW, key=UPLOADS, seconds=20),
}
FAILING_GETS = [
    Fault("GET", Kind.ERROR, times=3),
    Fault("GET", Kind.RESET, times=3),
    Fault("GET", Kind.CUT, times=3),
    Fault("GET", Kind.SLOW, seconds=2),
]


@pytest.fixture
def store():
    with ScriptedS3() as scripted:
        scripted.create_bucket(BUCKET)
        yield scripted


@pytest.fixture
def member(store, tmp_path):
    with Server() as server:
        broker = Member(tmp_path, server.url, **settings_of(store))
        with running([broker]):
            yield broker


@pytest.mark.slow
def test_records_of_failing_uploads_and_reads_are_there_once(store, member):
    create_topics(member, *FAILING_PUTS)
    written = {}
    for topic, fault in FAILING_PUTS.items():
        store.script.append(fault)
        written[topic] = write(member, topic, RECORDS)
        assert fault not in store.script, topic
    assert {topic: read(member, topic) for topic in written} == written
    succeed(member)
    store.script += FAILING_GETS
    assert {topic: read(member, topic) for topic in written} == written
    assert not set(FAILING_GETS) & set(store.script)


@pytest.mark.parametrize(
    "trouble",
    [
        case("unavailable", in_test=True),
        case("credentials", in_test=False),
        case("bucket", in_test=False),
    ],
)
def test_nothing_is_acknowledged_while_the_store_takes_no_objects(store, member, trouble):
    create_topics(member, "orders")
    before = write(member, "orders", 2)
    if trouble == "unavailable":
        store.script.append(Fault("PUT", Kind.ERROR, times=1_000_000))
    elif trouble == "credentials":
        store.accepted_keys.clear()
    else:
        store.bucket.exists = False
    puts = store.count("PUT")
    value = value_of("orders", 2)
    with contextlib.closing(producer_of(member)) as producer:
        sent = producer.send("orders", value)
        wait_until(lambda: store.count("PUT") >= puts + 3)
        with pytest.raises(KafkaTimeoutError):
            sent.get(0)
        # Records in the memory of the broker are served on.
        assert read(member, "orders") == before
        store.script.clear()
        store.accepted_keys.add(store.access_key)
        store.bucket.exists = True
        sent.get(120)
    assert read(member, "orders") == [*before, value]
    succeed(member)
    assert read(member, "orders") == [*before, value]


@pytest.mark.slow
def test_broker_outlives_a_directory_whose_mount_fails(tmp_path):
    mounted, away = tmp_path / "mounted", tmp_path / "away"
    settings = {
        "barnabas.storage": f"file://{mounted}/prefix",
        "barnabas.flush.object.min.bytes": str(OBJECT_BYTES_MIN),
        "barnabas.flush.ms": "0",
    }
    with Server() as server:
        broker = Member(tmp_path / "broker", server.url, **settings)
        with running([broker]):
            create_topics(broker, "orders")
            values = write(broker, "orders", 2)
            again = "the object store of the cluster answers again"
            troubles = (("gone", "No such file"), ("failing", "Not a directory"))
            for number, (trouble, words) in enumerate(troubles, start=1):
                mounted.rename(away)
                if trouble == "failing":
                    mounted.write_bytes(b"")
                values.append(value_of(trouble, 0))
                with contextlib.closing(producer_of(broker)) as producer:
                    sent = producer.send("orders", values[-1])
                    line_with(broker, f"does not answer: directory {mounted}/prefix", words)
                    with pytest.raises(KafkaTimeoutError):
                        sent.get(5)
                    if trouble == "failing":
                        mounted.unlink()
                    assert not mounted.exists()
                    away.rename(mounted)
                    sent.get(120)
                wait_until(
                    lambda number=number: broker.output(limit=1 << 20).count(again) == number
                )
            assert read(broker, "orders") == values
            succeed(broker)
            assert read(broker, "orders") == values


def test_successor_waits_for_a_store_that_is_unavailable(store, member):
    create_topics(member, "orders")
    written = write(member, "orders", RECORDS)
    store.script.append(Fault("GET", Kind.ERROR, key=UPLOADS, times=1_000_000))
    succeed(member)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read, member, "orders")
        gets = store.count("GET", UPLOADS)
        wait_until(lambda: store.count("GET", UPLOADS) >= gets + 3)
        assert not reading.done()
        store.script.clear()
        assert reading.result(120) == written


LOST = {
    "lost": (Fault("PUT", Kind.LOST, key=UPLOADS), None, "is missing"),
    "damaged": (None, Fault("GET", Kind.DAMAGED, key=UPLOADS, times=1_000_000), "corrupt"),
}


@pytest.mark.parametrize("kind", [case("lost", in_test=True), case("damaged", in_test=False)])
def test_partition_of_a_bad_object_fails_and_others_are_served(store, member, kind):
    """A confirmed object is missing or has another bit: its partition is named."""
    of_put, of_get, words = LOST[kind]
    create_topics(member, "bad", "good")
    written = write(member, "good", 2)
    store.script += [of_put] if of_put is not None else []
    write(member, "bad", 1)
    (number,) = [each.key for each in store.requests if UPLOADS in each.key][-1:]
    if of_get is not None:
        of_get.key = number
        store.script.append(of_get)
    succeed(member)
    assert read(member, "good") == written
    line = line_with(member, "no broker can serve it partition=bad-0")
    assert words in line
    with pytest.raises(KafkaException):
        end_of(member, "bad")


@for_the_night(
    beside="tests/postgresql/test_object_store_faults.py"
    "::test_partition_of_a_bad_object_fails_and_others_are_served"
)
def test_log_is_read_again_once_its_object_has_returned(store, member):
    create_topics(member, "orders")
    written = write(member, "orders", 2)
    wait_until(lambda: store.count("PUT", GUARD_KEY))
    objects, guard = store.bucket.objects, {}
    guard.update((key, each) for key, each in objects.items() if key.endswith(GUARD_KEY))
    store.bucket.objects = guard
    succeed(member)
    line_with(member, "no broker can serve it partition=orders-0")
    store.bucket.objects |= objects
    wait_until(lambda: has_end(member, "orders"), seconds=120, pause_s=0.5)
    assert read(member, "orders") == written


def end_of(member, topic):
    """Return the end offset of a topic; raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": member.bootstrap_servers, "group.id": "reader"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), 5)[1]
    finally:
        consumer.close()


def has_end(member, topic):
    """Return whether a topic is served."""
    try:
        return end_of(member, topic) > 0
    except KafkaException:
        return False


def line_with(member, *words):
    """Return the line of a broker's output that has some words, once there is one."""

    def found():
        lines = member.output(limit=1 << 20).splitlines()
        return [line for line in lines if all(each in line for each in words)]

    wait_until(found, member.output)
    return found()[0]
