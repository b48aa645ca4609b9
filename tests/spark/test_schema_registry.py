"""Avro with a schema registry, by the lines of docs/spark-recipes.md and Confluent's client.

The registry is Apicurio's. A record is a zero byte, the id of its schema in four bytes, and Avro.
"""

from __future__ import annotations

import json
import re

import confluent_kafka
import pytest
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.checkout import ROOT
from tests.counterparts.apicurio import Registry
from tests.counterparts.jars import avro_jars
from tests.interop.administration import create
from tests.interop.transactional import COMMITTED, read_with_confluent
from tests.products import for_the_night

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

PATIENCE_S = 120
RECORDS = 20
FIRST = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "account", "type": "string"},
        {"name": "cents", "type": "long"},
    ],
}
SECOND = {
    **FIRST,
    "fields": [*FIRST["fields"], {"name": "currency", "type": "string", "default": "EUR"}],
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with Registry(tmp_path_factory.mktemp("apicurio")) as running:
        yield running


@pytest.fixture
def client(registry):
    from confluent_kafka.schema_registry import SchemaRegistryClient

    with SchemaRegistryClient({"url": registry.url}) as opened:
        yield opened


@pytest.fixture(autouse=True, scope="module")
def _with_avro(spark):
    """Add jars to a Spark that runs: it takes no more from `spark.jars`."""
    for jar in avro_jars():
        spark.sql(f"ADD JAR '{jar}'")


# What a user writes, taken from the page.
_PAGE = (ROOT / "docs" / "spark-recipes.md").read_text()
(_RECIPE,) = re.findall(r"^import json\n.*?(?=^```)", _PAGE, re.MULTILINE | re.DOTALL)
_NAMES: dict = {}
exec(_RECIPE, _NAMES)
decoded, encoded = _NAMES["decoded"], _NAMES["encoded"]


# The other side.


def produce(servers, topic, registry, schema, payments):
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer

    context = SerializationContext(topic, MessageField.VALUE)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize = AvroSerializer(client, json.dumps(schema))
        for each in payments:
            producer.produce(topic, None if each is None else serialize(each, context))
    assert producer.flush(PATIENCE_S) == 0


def payment(number, **more):
    return {"account": f"account-{number}", "cents": number, **more}


def read(spark, servers, topic):
    reader = spark.read.format("kafka").option("subscribe", topic)
    return reader.option("kafka.bootstrap.servers", servers).load()


def test_records_of_two_schemas_and_tombstones_are_decoded(spark, barnabas, registry):
    servers = barnabas.bootstrap_servers
    create(servers, "evolving", partitions=1)
    produce(servers, "evolving", registry, FIRST, [payment(n) for n in range(RECORDS)])
    produce(servers, "evolving", registry, SECOND, [payment(99, currency="CHF"), None])
    frame = read(spark, servers, "evolving").orderBy("offset")
    rows = frame.select(decoded(registry.url, "evolving-value").alias("it")).collect()
    expected = [payment(n, currency="EUR") for n in range(RECORDS)]
    found = [row.it and row.it.asDict() for row in rows]
    assert found == [*expected, payment(99, currency="CHF"), None]


def test_schema_that_is_registered_later_ends_the_query(spark, barnabas, registry):
    """Nulls in its place would be a loss."""
    servers = barnabas.bootstrap_servers
    create(servers, "later", partitions=1)
    produce(servers, "later", registry, FIRST, [payment(1)])
    before = decoded(registry.url, "later-value").alias("it")
    (row,) = read(spark, servers, "later").select(before).collect()
    assert row.it.cents == 1
    produce(servers, "later", registry, SECOND, [payment(2, currency="CHF")])
    frame = read(spark, servers, "later").select(before)
    with pytest.raises(Exception, match=r"unknown schema \d+"):
        frame.collect()


@for_the_night(
    beside="tests/spark/test_schema_registry.py"
    "::test_records_of_two_schemas_and_tombstones_are_decoded"
)
def test_results_of_a_pipeline_are_read_by_the_client_of_the_registry(
    spark, barnabas, registry, client, tmp_path
):
    from confluent_kafka.schema_registry import Schema
    from confluent_kafka.schema_registry.avro import AvroDeserializer

    from barnabas.spark_connector.sinks.foreach_batch import two_phase

    servers = barnabas.bootstrap_servers
    for topic in ("payments", "amounts"):
        create(servers, topic, partitions=1)
    produce(servers, "payments", registry, FIRST, [payment(n) for n in range(RECORDS)])
    schema_id = client.register_schema("amounts-value", Schema(json.dumps(SECOND), "AVRO"))
    source = spark.readStream.format("kafka").option("subscribe", "payments")
    source = source.option("kafka.bootstrap.servers", servers)
    payments = source.option("startingOffsets", "earliest").load()
    amounts = payments.select(decoded(registry.url, "payments-value").alias("it"))
    amounts = amounts.selectExpr(
        "named_struct('account', it.account, 'cents', it.cents * 2, 'currency', 'EUR') as it"
    )
    results = amounts.select(encoded("it", schema_id, json.dumps(SECOND)).alias("value"))
    options = {
        "kafka.bootstrap.servers": servers,
        "sinkId": "amounts",
        "topic": "amounts",
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    writer = results.writeStream.foreachBatch(two_phase(options))
    writer = writer.option("checkpointLocation", options["checkpointLocation"])
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    values = read_with_confluent(servers, "amounts", 1, COMMITTED)[0]
    deserialize = AvroDeserializer(client)
    context = SerializationContext("amounts", MessageField.VALUE)
    found = sorted(deserialize(each, context)["cents"] for each in values)
    assert found == [2 * number for number in range(RECORDS)]
