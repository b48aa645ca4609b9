"""Orders get the country of their customer: a stream joined with a table.

    python -m examples.spark_data orders --count 100000
    python -m barnabas.spark run examples/spark_enrichment.py --once

The table is the topic `customers`, of which the last record of each key counts. Each batch reads
it again; a batch that runs again after a crash may see newer customers, and is written once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.spark import Pipeline, Sink, Source, read, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JUDGE = "proving/enrichment_judge.py"  # of `barnabas prove --spark examples/spark_enrichment.py`
ORDER = "order long, customer int, cents long"
CUSTOMER = "customer int, country string"


def customers(spark: SparkSession) -> DataFrame:
    """Return the last record of each customer."""
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    table = read(spark, "customers").groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    table = table.selectExpr(f"from_json(cast(value as string), '{CUSTOMER}') as customer")
    return table.selectExpr("customer.customer", "customer.country")


def with_country(orders: DataFrame) -> DataFrame:
    """Return the orders, each with its country, which is also the key."""
    parsed = orders.selectExpr(f"from_json(cast(value as string), '{ORDER}') as placed")
    known = parsed.selectExpr("placed.order", "placed.customer", "placed.cents")
    joined = known.join(customers(orders.sparkSession), "customer", "left")
    return joined.selectExpr(
        "country as key", "to_json(struct(order, customer, country, cents)) as value"
    )


pipeline = Pipeline(
    source=Source(topic="orders"),
    transform=with_country,
    sink=Sink(sink_id="enrichment", topic="orders-by-country"),
)

if __name__ == "__main__":
    run(pipeline)
