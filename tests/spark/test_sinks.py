"""Each sink from end to end: what a reader of committed records gets, and that it gets it once."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest
from kafka.partitioner.default import murmur2

from barnabas.spark_connector.checkpoint.checkpoint_files import HadoopFiles, LocalFiles, files_at
from barnabas.spark_connector.errors import RowsMissing
from barnabas.spark_connector.settings.client_options import CONSUMER_OPTIONS, PRODUCER_OPTIONS
from tests.interop.administration import create
from tests.interop.transactional import committed_offset
from tests.products import case, for_the_night
from tests.spark import heap
from tests.spark.judge import open_transactions, until

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

SINGLE, TWO_PHASE, DATA_SOURCE = KINDS = ("single-transaction", "two-phase", "data-source")
PARTITIONS = 3
RECORDS = 60
BASE_MS = 1_790_000_000_000
PATIENCE_S = 60


class Received(NamedTuple):
    """One record of the output."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    partition: int


class Pipeline:
    """Numbers in one topic, and a test's results in another."""

    def __init__(self, spark, servers: str, kind: str, name: str, directory: Path) -> None:
        self.spark, self.servers, self.kind, self.sink_id = spark, servers, kind, f"{name}-{kind}"
        self.input, self.output = f"{self.sink_id}-in", f"{self.sink_id}-out"
        self.checkpoint = str(directory / "checkpoint")
        for topic in (self.input, self.output):
            # The records' times are long ago, and retention follows them.
            create(servers, topic, partitions=PARTITIONS, configs={"retention.ms": "-1"})

    def feed(self, numbers: range) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers})
        for number in numbers:
            producer.produce(
                self.input,
                b"value-%d" % number,
                None if number % 10 == 0 else b"key-%d" % number,
                partition=number % PARTITIONS,
                headers=[("number", b"%d" % number), ("number", None)][: number % 3],
                timestamp=BASE_MS + number,
            )
        assert producer.flush(PATIENCE_S) == 0

    def source(self, per_trigger: int = 2 * RECORDS):
        source = self.spark.readStream.format("kafka").option("subscribe", self.input)
        source = source.option("kafka.bootstrap.servers", self.servers)
        source = source.option("maxOffsetsPerTrigger", per_trigger)
        source = source.option("startingOffsets", "earliest").option("includeHeaders", "true")
        return source.load().select("key", "value", "headers", "timestamp")

    def run(self, frame, **more: str) -> None:
        """Write all input; raises the error of the query."""
        options = {
            "kafka.bootstrap.servers": self.servers,
            "sinkId": self.sink_id,
            "topic": self.output,
            "checkpointLocation": self.checkpoint,
            **more,
        }
        writer = frame.writeStream.option("checkpointLocation", self.checkpoint)
        if self.kind == DATA_SOURCE:
            writer = writer.format("barnabas").options(**options)
        else:
            from barnabas.spark_connector.sinks.foreach_batch import single_transaction, two_phase

            make = single_transaction if self.kind == SINGLE else two_phase
            writer = writer.foreachBatch(make(options))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    def received(self) -> list[Received]:
        """Read all that is committed, by key and value."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        places = [
            confluent_kafka.TopicPartition(self.output, partition, 0)
            for partition in range(PARTITIONS)
        ]
        consumer.assign(places)
        found: list[Received] = []
        unfinished = set(range(PARTITIONS))
        while unfinished:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "a partition does not end"
            if message.error() is None:
                found.append(_received(message))
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                # A partition end that moves is reported once more.
                unfinished.discard(message.partition())
        consumer.close()
        return sorted(found, key=lambda each: each.timestamp)


def _received(message: confluent_kafka.Message) -> Received:
    headers = tuple(message.headers() or ())
    _kind, timestamp = message.timestamp()
    return Received(message.key(), message.value(), headers, timestamp, message.partition())


def expected(numbers: range) -> list[tuple]:
    return [
        (
            None if number % 10 == 0 else b"key-%d" % number,
            b"value-%d" % number,
            tuple([("number", b"%d" % number), ("number", None)][: number % 3]),
            BASE_MS + number,
        )
        for number in numbers
    ]


@pytest.fixture
def pipeline(request, spark, barnabas, tmp_path):
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:40]
    return Pipeline(spark, barnabas.bootstrap_servers, request.param, name, tmp_path)


def kinds(*in_test: str) -> pytest.MarkDecorator:
    """Return the cases of a test of each kind of sink."""
    cases = [case(each, in_test=each in in_test) for each in KINDS]
    return pytest.mark.parametrize("pipeline", cases, indirect=True)


@kinds(*KINDS)
def test_every_row_arrives_once_with_all_it_has(pipeline, barnabas):
    """In several batches, over a restart, with the source's offsets in a group."""
    pipeline.feed(range(RECORDS))
    pipeline.run(pipeline.source(per_trigger=RECORDS // 2))
    assert [each[:4] for each in pipeline.received()] == expected(range(RECORDS))
    pipeline.run(pipeline.source())
    pipeline.feed(range(RECORDS, 2 * RECORDS))
    pipeline.run(pipeline.source())
    received = pipeline.received()
    assert [each[:4] for each in received] == expected(range(2 * RECORDS))
    keyed = [each for each in received if each.key is not None]
    places = [(murmur2(each.key) & 0x7FFFFFFF) % PARTITIONS for each in keyed]
    assert [each.partition for each in keyed] == places
    group = f"spark.{pipeline.sink_id}"
    read = [
        committed_offset(pipeline.servers, group, pipeline.input, partition)
        for partition in range(PARTITIONS)
    ]
    assert read == [2 * RECORDS // PARTITIONS] * PARTITIONS


@kinds("two-phase")
def test_a_failed_task_is_tried_again(pipeline, barnabas):
    """The first attempt of the task fails after some of its rows were taken."""

    def fail_at_first(batches):
        from pyspark import TaskContext

        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            if TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")
            yield batch.slice(batch.num_rows // 2)

    pipeline.feed(range(RECORDS))
    source = pipeline.source()
    pipeline.run(source.mapInArrow(fail_at_first, source.schema))
    assert [each[:4] for each in pipeline.received()] == expected(range(RECORDS))
    until(lambda: open_transactions(barnabas, f"spark.{pipeline.sink_id}"), [], "transactions")


@kinds("data-source")
def test_an_exception_in_the_middle_of_a_batch_leaves_nothing_behind(pipeline, barnabas, tmp_path):
    obstacle = tmp_path / "obstacle"

    def fail_while_there_is_an_obstacle(batches):
        yield from batches
        if obstacle.exists():
            raise RuntimeError("there is an obstacle")

    def transformed():
        source = pipeline.source()
        return source.mapInArrow(fail_while_there_is_an_obstacle, source.schema)

    pipeline.feed(range(RECORDS))
    pipeline.run(transformed())
    pipeline.feed(range(RECORDS, 2 * RECORDS))
    obstacle.touch()
    with pytest.raises(Exception, match="there is an obstacle"):
        pipeline.run(transformed())
    assert [each[:4] for each in pipeline.received()] == expected(range(RECORDS))
    obstacle.unlink()
    pipeline.run(transformed())
    assert [each[:4] for each in pipeline.received()] == expected(range(2 * RECORDS))
    until(lambda: open_transactions(barnabas, f"spark.{pipeline.sink_id}"), [], "transactions")


def test_the_names_of_the_options_of_sparks_kafka_clients(spark):
    of_clients = spark._jvm.org.apache.kafka.clients
    for known, settings in (
        (CONSUMER_OPTIONS, of_clients.consumer.ConsumerConfig),
        (PRODUCER_OPTIONS, of_clients.producer.ProducerConfig),
    ):
        assert set(known) == {f"kafka.{name}" for name in settings.configNames()}


def test_the_files_of_a_checkpoint_in_a_hadoop_file_system(spark, tmp_path):
    """Through the interfaces that HDFS and object stores have, too."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/checkpoint")
    files = HadoopFiles(context, path)
    assert not files.exists("note")
    assert files.read("note") is None
    assert files.names("offsets") == []
    for content in (b"one", b"another"):
        files.replace("note", content)
        assert files.read("note") == content
    assert files.exists("note")
    (tmp_path / "checkpoint" / "offsets").mkdir()
    (tmp_path / "checkpoint" / "offsets" / "3").touch()
    assert files.names("offsets") == ["3"]
    assert not list((tmp_path / "checkpoint").glob("*.tmp*"))
    # A local path is read as it is, by any user.
    found = files_at(f"{tmp_path}/checkpoint")
    assert isinstance(found, LocalFiles)
    assert found.read("note") == b"another"


@for_the_night(
    beside="tests/soak/test_soak.py::test_memory_stays_flat_under_a_load_of_transactions"
)
@pytest.mark.parametrize("kind", heap.KINDS)
def test_driver_heap_stays_flat(spark, barnabas, tmp_path, kind):
    """A sink that kept what it has written would keep 36 MB here; full_heap.py writes 1.4 GB."""
    load = heap.Load(batch_rows=14_000, batches_before=3, batches=12)
    servers = barnabas.bootstrap_servers
    growth = heap.heap_growth_bytes(spark, servers, kind, load, tmp_path)
    assert growth < heap.GROWTH_MAX_BYTES


def test_rows_that_java_has_cut_off_are_noticed(spark, barnabas, tmp_path):
    """Java's serving thread ends within a row, as without memory or with the whole JVM."""
    create(barnabas.bootstrap_servers, "cut-off", partitions=1)
    options = {"kafka.bootstrap.servers": barnabas.bootstrap_servers, "sinkId": "cut-off"}
    from barnabas.spark_connector.sinks.foreach_batch import single_transaction

    sink = single_transaction({**options, "topic": "cut-off", "batchMaxBytes": "100000"})
    rows = spark.range(0, 40_000, 1, 1).selectExpr("cast(repeat('x', 1000) as binary) value")
    batches = sink._encoded(rows)
    next(batches)
    threads = spark.sparkContext._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    serving = [thread for thread in threads if thread.getName().startswith("serve")]
    assert serving
    for thread in serving:
        thread.interrupt()
    with pytest.raises(RowsMissing):
        list(batches)
    assert len(list(sink._encoded(rows))) > 400
