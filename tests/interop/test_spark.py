"""Spark's stock Kafka source and sink: batch, structured streaming, kills, real-time mode."""

import statistics
import threading
import time

import confluent_kafka
import pytest

from tests.interop.administration import create
from tests.interop.transactional import Confluent as Transactional
from tests.products import for_the_night
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
RECORDS = 10_000
REAL_TIME_RECORDS = 100
WARM_UP_RECORDS = 20
# How long the broker keeps a fetch for which nothing comes.
UNWOKEN_MS = 20_000
WAIT_S = 200


@for_the_night(beside="tests/spark/test_sinks.py::test_every_row_arrives_once_with_all_it_has")
def test_a_streaming_job_survives_its_restart_and_the_brokers_kill(
    spark, own_broker, tmp_path, say
):
    from tests.interop.spark_job import Job

    outcome = Job(spark, own_broker, tmp_path, RECORDS).run()
    say(outcome)
    assert outcome.counted == RECORDS
    assert outcome.wrong_keys == []
    assert outcome.results > 0


def test_batch_reads_by_offset_and_by_timestamp(spark, broker, create_topic):
    topic = create_topic(partitions=2, retention_ms="-1")  # For records of long ago.
    base_ms = 1_790_000_000_000
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for i in range(1000):
        headers = [("number", b"%d" % i)]
        producer.produce(topic, b"%d" % i, partition=i % 2, timestamp=base_ms + i, headers=headers)
    assert producer.flush(60) == 0

    def read(**options):
        source = spark.read.format("kafka").option("subscribe", topic)
        source = source.option("kafka.bootstrap.servers", broker.bootstrap_servers)
        return source.options(**options).load()

    assert read().count() == 1000
    assert read(**{"kafka.isolation.level": "read_committed"}).count() == 1000
    assert read(minPartitions="8").count() == 1000
    slice_of_it = read(
        startingOffsets=f'{{"{topic}":{{"0":100,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":150,"1":10}}}}',
    )
    assert slice_of_it.count() == 60
    assert read(startingTimestamp=str(base_ms + 900)).count() == 100
    row = read(includeHeaders="true").where("partition = 1 and offset = 7").first()
    assert bytes(row["value"]) == b"15"
    assert [(h["key"], bytes(h["value"])) for h in row["headers"]] == [("number", b"15")]
    assert row["timestampType"] == 0
    assert row["timestamp"].microsecond == 15_000


def test_read_committed_shows_what_is_committed_and_nothing_else(
    spark, broker, create_topic, tmp_path
):
    """Batch and streaming, over aborted, open and committed transactions side by side."""
    topic = create_topic(partitions=2)
    servers = broker.bootstrap_servers
    options = {
        "subscribe": topic,
        "kafka.bootstrap.servers": servers,
        "startingOffsets": "earliest",
    }
    producers = [Transactional(servers, f"{topic}-{number}") for number in range(3)]
    committed, everything = fill_with_transactions(producers[:2], topic, range(20))
    # What stays open hides what lies behind it in its partition.
    producers[2].begin()
    producers[2].send(topic, 1, b"open")
    hidden, more = fill_with_transactions(producers[:2], topic, range(20, 30))
    everything |= more | {b"open"}
    behind = {value for value in hidden if value.endswith(b"-1")}
    visible = committed | (hidden - behind)

    def batch(isolation: str) -> list[bytes]:
        source = spark.read.format("kafka").options(**options)
        source = source.option("kafka.isolation.level", isolation)
        return [bytes(row["value"]) for row in source.load().select("value").collect()]

    seen: list[bytes] = []

    def take(frame, _batch_id):
        seen.extend(bytes(row["value"]) for row in frame.select("value").collect())

    def stream():
        source = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="40")
        source = source.option("kafka.isolation.level", "read_committed")
        sink = source.load().writeStream.foreachBatch(take)
        return sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    wait_until(lambda: sorted(batch("read_committed")) == sorted(visible), "the last markers")
    assert sorted(batch("read_uncommitted")) == sorted(everything)
    query = stream()
    query.processAllAvailable()
    assert sorted(seen) == sorted(visible)
    query.stop()
    producers[2].commit()
    finally_visible = sorted(committed | hidden | {b"open"})
    wait_until(lambda: sorted(batch("read_committed")) == finally_visible, "the last marker")
    query = stream()
    query.processAllAvailable()
    assert sorted(seen) == finally_visible
    # At the end there is nothing but what is aborted, and the query gets past it.
    producers[2].begin()
    producers[2].send(topic, 0, *(b"aborted" for _ in range(50)))
    producers[2].abort()
    last, _more = fill_with_transactions(producers[:1], topic, range(30, 31))
    wait_until(lambda: len(batch("read_committed")) == len(finally_visible) + len(last), "it")
    query.processAllAvailable()
    query.stop()
    assert sorted(seen) == sorted(last | set(finally_visible))


def fill_with_transactions(
    producers: list[Transactional], topic: str, numbers: range
) -> tuple[set[bytes], set[bytes]]:
    """Commit some, abort some, side by side; return what is committed, and everything."""
    committed: set[bytes] = set()
    everything: set[bytes] = set()
    for number in numbers:
        values = {}
        for turn, producer in enumerate(producers):
            values[producer] = [b"%d-%d-%d" % (number, turn, part) for part in range(2)]
            producer.begin()
            for partition, value in enumerate(values[producer]):
                producer.send(topic, partition, value)
            everything |= set(values[producer])
        for turn, producer in enumerate(producers):
            if (number + turn) % 3 == 0:
                producer.abort()
            else:
                producer.commit()
                committed |= set(values[producer])
    return committed, everything


def test_the_sink_writes_keys_values_and_headers(spark, broker, create_topic):
    from tests.interop.clients import Confluent

    topic = create_topic()
    frame = spark.createDataFrame(
        [("a", "1", [("h", bytearray(b"x"))]), (None, "2", None), ("c", None, None)],
        "key string, value string, headers array<struct<key:string,value:binary>>",
    ).coalesce(1)
    sink = frame.write.format("kafka").option("topic", topic)
    sink = sink.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    sink.option("includeHeaders", "true").save()
    received = Confluent().consume(broker.bootstrap_servers, topic, 0, 3)
    assert [(r.key, r.value, r.headers) for r in received] == [
        (b"a", b"1", (("h", b"x"),)),
        (None, b"2", ()),
        (b"c", None, ()),
    ]


def test_stateless_real_time_mode(spark, broker, tmp_path, say):
    from pyspark.sql import functions as F  # noqa: N812

    servers = broker.bootstrap_servers
    create(servers, "real-time-in", partitions=1)
    create(servers, "real-time-out", partitions=1)
    source = spark.readStream.format("kafka").option("subscribe", "real-time-in")
    results = (
        source.option("kafka.bootstrap.servers", servers)
        .option("startingOffsets", "earliest")
        .option("kafka.fetch.max.wait.ms", str(UNWOKEN_MS))
        .load()
        .select("key", F.upper(F.col("value").cast("string")).alias("value"))
    )
    sink = results.writeStream.format("kafka").option("topic", "real-time-out")
    sink = sink.option("kafka.bootstrap.servers", servers).outputMode("update")
    sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
    # Long enough that no end of a batch falls into the measurement.
    query = sink.trigger(realTime="2 minutes").start()
    sent: dict[bytes, float] = {}
    arrived: list[tuple[bytes, float]] = []
    expected = REAL_TIME_RECORDS + WARM_UP_RECORDS
    consumer = threading.Thread(target=collect, args=(servers, expected, arrived), daemon=True)
    consumer.start()
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for i in range(expected):
        value = b"value-%d" % i
        sent[value.upper()] = time.monotonic()
        producer.produce("real-time-in", value)
        producer.flush(30)
        wait_for_arrival(arrived, 1)
        time.sleep(0.01)
    consumer.join(WAIT_S + 60)
    failure = query.exception()
    query.stop()
    assert failure is None
    assert [value for value, _ in arrived] == list(sent)
    latencies = [at - sent[value] for value, at in arrived[WARM_UP_RECORDS:]]
    say(f"real-time mode: p50 {statistics.median(latencies) * 1000:.1f} ms")
    # Far below the time of a fetch that no append wakes.
    assert statistics.median(latencies) * 1000 < UNWOKEN_MS / 3


def wait_for_arrival(arrived: list[tuple[bytes, float]], count: int) -> None:
    """Wait until so many values came out of the query, which takes a while to start."""
    wait_until(lambda: len(arrived) >= count, "everything comes out of the query", seconds=WAIT_S)


def collect(servers: str, count: int, arrived: list[tuple[bytes, float]]) -> None:
    """Note when each value arrives in the output topic."""
    # Assigned by hand, nothing to commit: a commit would wait for a group coordinator.
    settings = {"group.id": "real-time", "enable.auto.commit": False}
    settings["fetch.wait.max.ms"] = UNWOKEN_MS
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, **settings})
    consumer.assign([confluent_kafka.TopicPartition("real-time-out", 0, 0)])
    deadline = time.monotonic() + WAIT_S
    while len(arrived) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            arrived.append((message.value(), time.monotonic()))
    consumer.close()
